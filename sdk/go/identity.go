package mortise

// named is the argument of services that take a name.
type named struct {
	Name string `json:"name"`
}

// SecretsGet reads a secret that the operation declares: the user's own or the
// one that an administrator has set, as its allowed_scope says. found is false
// where none is set. The host takes the value out of what it shows and records.
func (c *Call) SecretsGet(name string) (value string, found bool, err error) {
	found, err = c.lookUp("secrets.get", named{name}, &value)
	return value, found, err
}

// SecretsSet sets a secret of the call's principal for this plugin, a text of 1
// to 65536 bytes. The operation is an operator with the effect secret_write.
func (c *Call) SecretsSet(name, value string) error {
	return c.Service("secrets.set", struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}{name, value}, nil)
}

// SecretsDelete deletes what [Call.SecretsSet] sets, and reports whether it was
// set. The operation is an operator with the effect secret_write.
func (c *Call) SecretsDelete(name string) (deleted bool, err error) {
	return c.remove("secrets.delete", named{name})
}

// An AuthRequest asks for a token of a connected account. What is empty is as
// the operation declares it under auth, and the rest may only be narrower.
type AuthRequest struct {
	Provider string   `json:"provider"`          // such as google
	Scopes   []string `json:"scopes,omitempty"`  // the provider's names
	Mode     string   `json:"mode,omitempty"`    // user, service_account or domain_delegate
	Subject  string   `json:"subject,omitempty"` // whom a delegate stands in for
}

// An AuthToken is a token of an account. Token and Target are empty where no
// mode is chosen, or where what is missing is declared as optional.
type AuthToken struct {
	Token  string `json:"token"`  // as it is sent, without "Bearer"
	Target string `json:"target"` // whose account it is
	Mode   string `json:"mode"`   // in which it was obtained
}

// AuthResolve returns a token of an account that a person has connected, or of
// one of the host's service accounts. It fails with missing_identity where the
// account is not connected, and with service_denied for a mode, a scope or a
// subject beyond what is declared and configured.
func (c *Call) AuthResolve(request AuthRequest) (token AuthToken, err error) {
	err = c.Service("auth.resolve", request, &token)
	return token, err
}

// An Identity is who the call is of. What is not known is empty.
type Identity struct {
	UserID     string                     `json:"user_id"`
	Email      string                     `json:"email"`
	Name       string                     `json:"name"`
	Identities map[string]LinkedIdentity  `json:"identities"` // by provider
	Providers  map[string][]LinkedAccount `json:"providers"`  // connected accounts, by provider
}

// A LinkedIdentity is who a user is with one provider.
type LinkedIdentity struct {
	Email   string `json:"email"` // empty where it is not known
	Subject string `json:"subject"`
}

// A LinkedAccount is an account that a user has connected.
type LinkedAccount struct {
	AccountID    string   `json:"account_id"`
	PrimaryEmail string   `json:"primary_email"`
	DisplayName  string   `json:"display_name"`
	Scopes       []string `json:"scopes"`
}

// IdentityCurrent returns who the call is of.
func (c *Call) IdentityCurrent() (who Identity, err error) {
	err = c.Service("identity.current", struct{}{}, &who)
	return who, err
}

// A FoundIdentity is what [Call.IdentityLookup] finds.
type FoundIdentity struct {
	UserID  string `json:"user_id"`
	Email   string `json:"email"`
	Subject string `json:"subject"`
}

// IdentityLookup finds a user by an identity. kind is a provider, or one with
// _email or _directory behind it; value is an id there, or a user here. found is
// false where there is none.
func (c *Call) IdentityLookup(kind, value string) (who FoundIdentity, found bool, err error) {
	found, err = c.lookUp("identity.lookup", struct {
		Kind  string `json:"kind"`
		Value string `json:"value"`
	}{kind, value}, &who)
	return who, found, err
}

// IdentityPrimaryEmail returns the caller's address with a provider, empty where
// it is not known.
func (c *Call) IdentityPrimaryEmail(provider string) (email string, err error) {
	var answer struct {
		Email string `json:"email"`
	}
	err = c.Service("identity.primary_email", struct {
		Provider string `json:"provider"`
	}{provider}, &answer)
	return answer.Email, err
}
