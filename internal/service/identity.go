package service

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

const (
	identityName    = "identity"
	identityCurrent = "identity.current"
	identityLookup  = "identity.lookup"
	identityPrimary = "identity.primary_email"
)

// A person is the value of identity.current.
type person struct {
	ID         string             `json:"user_id"`
	Email      *string            `json:"email"`
	Name       string             `json:"name"`
	Identities map[string]account `json:"identities"` // by provider, one of each

	// Providers are all accounts of each, as Shu's host.identity has them.
	Providers map[string][]providerAccount `json:"providers"`
}

// A providerAccount is one account at a provider.
type providerAccount struct {
	ID          string   `json:"account_id"`
	Email       *string  `json:"primary_email"`
	DisplayName *string  `json:"display_name"`
	Scopes      []string `json:"scopes"`
}

// An account is the identity of a user in another system.
type account struct {
	Email   *string `json:"email"`
	Subject string  `json:"subject"`
}

func identityOfCaller(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	if err := decode(identityCurrent, args, &nothing{}); err != nil {
		return nil, err
	}
	providers := map[string][]providerAccount{}
	all, order, err := g.accountsOf(ctx, identityCurrent, func(provider string, is account, scopes []string) {
		listed := providers[provider]
		same := slices.IndexFunc(listed, func(one providerAccount) bool {
			return one.ID == is.Subject || one.Email != nil && is.Email != nil && strings.EqualFold(*one.Email, *is.Email)
		})
		if same >= 0 { // linked and connected
			listed[same].Scopes = append(listed[same].Scopes, scopes...)
			if listed[same].Email == nil {
				listed[same].Email = is.Email
			}
			return
		}
		providers[provider] = append(listed, providerAccount{ID: is.Subject, Email: is.Email, Scopes: append([]string{}, scopes...)})
	})
	if err != nil {
		return nil, err
	}
	who := person{ID: g.call.Principal.ID, Name: g.call.Principal.ID, Identities: all, Providers: providers}
	who.Email = emailOf(g.call.Principal.ID)
	for _, provider := range order {
		if who.Email == nil {
			who.Email = all[provider].Email
		}
	}
	return who, nil
}

func identityEmail(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	var in struct {
		Provider string `json:"provider"`
	}
	if err := decode(identityPrimary, args, &in); err != nil {
		return nil, err
	}
	all, _, err := g.accounts(ctx, identityPrimary)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Email *string `json:"email"`
	}
	answer.Email = all[in.Provider].Email
	return answer, nil
}

// identityFound answers for one provider: which user has that account, or which account
// a user has. Kinds are a provider, or one with _email or _directory behind it.
func identityFound(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	var in struct {
		Kind  string `json:"kind"`
		Value string `json:"value"`
	}
	if err := decode(identityLookup, args, &in); err != nil {
		return nil, err
	}
	if in.Kind == "" || in.Value == "" {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: kind and value are not empty", identityLookup)
	}
	if g.broker.Store == nil {
		return nil, nowhere(identityLookup)
	}
	provider := strings.TrimSuffix(strings.TrimSuffix(in.Kind, "_email"), "_directory")
	link, err := g.broker.Store.Identity(ctx, g.call.Tenant, provider, in.Value)
	if err != nil {
		return nil, err
	}
	if link == nil { // then it is a user's name here
		theirs, err := g.broker.Store.IdentitiesOf(ctx, g.call.Tenant, "user", in.Value)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(theirs, func(row identityRow) bool { return row.Provider == provider }); i >= 0 {
			link = &theirs[i]
		}
	}
	if link == nil {
		return stored{}, nil
	}
	return struct {
		Found bool `json:"found"`
		Value any  `json:"value"`
	}{true, struct {
		ID string `json:"user_id"`
		account
	}{link.PrincipalID, account{emailOf(link.ExternalID), link.ExternalID}}}, nil
}

// maxLinks is how many links of one principal count.
const maxLinks = 256

// links returns the links of the principal of the call.
func (g *grant) links(ctx context.Context, method string) ([]identityRow, error) {
	if g.broker.Store == nil {
		return nil, nowhere(method)
	}
	kind := g.call.Principal.Type
	if kind == "" {
		kind = "user"
	}
	rows, err := g.broker.Store.IdentitiesOf(ctx, g.call.Tenant, kind, g.call.Principal.ID)
	return rows[:min(len(rows), maxLinks)], err
}

// accounts returns one account of each provider, and the providers in order: what an
// administrator linked, the first that is an address before the first, and beside it
// the accounts that the principal of the call connected.
func (g *grant) accounts(ctx context.Context, method string) (all map[string]account, order []string, err error) {
	return g.accountsOf(ctx, method, func(string, account, []string) {})
}

// accountsOf is accounts, and calls each with every account on the way.
func (g *grant) accountsOf(ctx context.Context, method string, each func(provider string, is account, scopes []string)) (all map[string]account, order []string, err error) {
	links, err := g.links(ctx, method)
	if err != nil {
		return nil, nil, err
	}
	all = map[string]account{}
	add := func(provider string, is account, scopes []string) {
		each(provider, is, scopes)
		had, found := all[provider]
		if !found {
			order = append(order, provider)
		}
		if !found || had.Email == nil && is.Email != nil {
			all[provider] = is
		}
	}
	for _, link := range links {
		add(link.Provider, account{emailOf(link.ExternalID), link.ExternalID}, nil)
	}
	if g.broker.Accounts == nil {
		return all, order, nil
	}
	connected, err := g.broker.Accounts.Connected(ctx, g.call)
	for _, one := range connected {
		add(one.Provider, account{emailOf(one.Email), one.Subject}, one.Scopes)
	}
	return all, order, err
}

// Identity returns what a schema's x-binding identity:FIELD stands for: user_id, email
// or name of the principal of the call; PROVIDER_email, the address there; or PROVIDER,
// the account name there.
func (b *Broker) Identity(ctx context.Context, call *plugin.Call, field string) (value string, found bool, err error) {
	g := &grant{broker: b, call: call}
	all, order, err := g.accounts(ctx, identityName)
	if err != nil {
		return "", false, err
	}
	address := func(of *string) (string, bool, error) {
		if of == nil {
			return "", false, nil
		}
		return *of, true, nil
	}
	switch provider, isEmail := strings.CutSuffix(field, "_email"); {
	case field == "user_id", field == "id", field == "name":
		return call.Principal.ID, true, nil
	case field == "email":
		email := emailOf(call.Principal.ID)
		for _, name := range order {
			if email == nil {
				email = all[name].Email
			}
		}
		return address(email)
	case isEmail:
		return address(all[provider].Email)
	default:
		is, linked := all[field]
		return is.Subject, linked, nil
	}
}

// emailOf returns text where it can be the address of a mailbox.
func emailOf(text string) *string {
	name, host, found := strings.Cut(text, "@")
	if !found || name == "" || host == "" || strings.ContainsAny(text, " \t<>\"") || strings.Contains(host, "@") {
		return nil
	}
	return &text
}
