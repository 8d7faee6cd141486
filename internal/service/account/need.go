package account

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// A Use is a call of a plugin that acts with accounts.
type Use struct {
	Tenant     string
	Subject    string // the call's principal, as secrets name them
	Name       string // of the operation, for people
	Operation  *plugin.Auth
	Identities []plugin.Auth   // what the plugin as a whole requires
	Overlay    json.RawMessage // what the host alone decides about the call: a person wrote it, never a plugin
	OwnOnly    bool            // Check looks for users' accounts alone; what another mode lacks, the plugin hears when it asks
}

// An Ask is what a plugin asks for, within what it declares. All but the provider
// may be empty.
type Ask struct {
	Provider string
	Scopes   []string
	Mode     string
	Subject  string
}

// An Answer is a token and what it is for: of a user, the mail address of the
// account or "me"; of a delegate, whom it stands in for; of a service account,
// nothing. Both are nil where no mode is chosen.
type Answer struct {
	Token  *string `json:"token"`
	Target *string `json:"target"`
	Mode   string  `json:"mode,omitempty"`
}

// A chosen is what a call is given of one provider.
type chosen struct {
	mode     string
	scopes   []string
	subject  string // of a delegate; "" until it is determined
	hint     string
	optional bool
}

// A choice is what the caller chose for one call.
type choice struct {
	Mode    string   `json:"mode"`
	Subject string   `json:"subject"`
	Scopes  []string `json:"scopes"`
}

// choices returns what was chosen, by provider.
func (u *Use) choices() map[string]choice {
	if len(u.Overlay) == 0 {
		return nil
	}
	var o struct {
		Auth map[string]json.RawMessage `json:"auth"`
	}
	if json.Unmarshal(u.Overlay, &o) != nil {
		return nil
	}
	all := map[string]choice{}
	for provider, raw := range o.Auth {
		var c choice
		if json.Unmarshal(raw, &c) == nil {
			all[provider] = c
		}
	}
	return all
}

// declared returns what the plugin declares of a provider, the operation's own
// first.
func (u *Use) declared(provider string) []plugin.Auth {
	var all []plugin.Auth
	if u.Operation != nil && u.Operation.Provider == provider {
		all = append(all, *u.Operation)
	}
	for _, auth := range u.Identities {
		if auth.Provider == provider {
			if auth.Mode == "" && len(auth.AllowedModes) == 0 {
				auth.Mode = User
			}
			all = append(all, auth)
		}
	}
	return all
}

// choose returns what a call is given of a provider: in the mode that the plugin
// asks for, else the one chosen for the call, else the declared one. A person who
// chooses one decides; a plugin asks for no mode that is neither declared nor
// chosen. It is nil where no mode is chosen.
func (u *Use) choose(ask Ask) (*chosen, error) {
	declared := u.declared(ask.Provider)
	picked, named := u.choices()[ask.Provider]
	c := chosen{mode: or(ask.Mode, picked.Mode), subject: or(ask.Subject, picked.Subject), optional: len(declared) > 0}
	var modes, scopes []string
	for _, auth := range declared {
		modes = append(append(modes, auth.Mode), auth.AllowedModes...)
		scopes = append(scopes, auth.Scopes...)
		c.mode, c.hint = or(c.mode, auth.Mode), or(c.hint, auth.SubjectHint)
		c.optional = c.optional && auth.Optional
		if len(c.scopes) == 0 {
			c.scopes = auth.Scopes
		}
	}
	modes = append(modes, picked.Mode)
	if len(picked.Scopes) > 0 {
		c.scopes, scopes = picked.Scopes, append(scopes, picked.Scopes...)
	}
	if named && !slices.ContainsFunc(modes, func(mode string) bool { return mode != "" }) {
		modes = append(modes, User) // naming a provider for a call is a requirement of its own
	}
	switch {
	case c.mode == "":
		return nil, nil
	case !slices.Contains(modes, c.mode) || c.mode != User && c.mode != ServiceAccount && c.mode != DomainDelegate:
		return nil, plugin.Errorf(plugin.CodeServiceDenied, "%s does not declare that it acts with %.128s as %.64q; its manifest says how under op_auth or required_identities", u.Name, ask.Provider, c.mode)
	case picked.Subject != "" && ask.Subject != "" && !strings.EqualFold(picked.Subject, ask.Subject):
		return nil, plugin.Errorf(plugin.CodeServiceDenied, "%s asked to act for %.128q, and another subject was chosen for this call", u.Name, ask.Subject)
	}
	if len(ask.Scopes) == 0 {
		return &c, checkScopes(c.scopes)
	}
	if err := checkScopes(ask.Scopes); err != nil {
		return nil, err
	}
	for _, scope := range ask.Scopes {
		if !slices.Contains(scopes, scope) && (c.mode != User || len(scopes) > 0) {
			e := plugin.Errorf(plugin.CodeServiceDenied, "%s asked %s for the scope %s, which its manifest does not declare", u.Name, ask.Provider, scope)
			e.Details = details(ask.Provider, c.mode, ask.Scopes)
			return nil, e
		}
	}
	c.scopes = ask.Scopes
	return &c, nil
}

// Resolve returns the token that a call acts with, and what it is for.
func (a *Accounts) Resolve(ctx context.Context, u Use, ask Ask) (Answer, error) {
	if ask.Mode != "" {
		if err := a.supports(ask.Provider, ask.Mode); err != nil {
			return Answer{}, err
		}
	}
	c, err := u.choose(ask)
	if err != nil || c == nil {
		return Answer{}, err
	}
	if c.mode != User && len(c.scopes) == 0 {
		return Answer{}, missing(ask.Provider, c.mode, nil, "%s names no scopes for which %s would give a token; its manifest does under op_auth", u.Name, ask.Provider)
	}
	answer, err := a.give(ctx, &u, ask.Provider, c)
	if c.optional && plugin.CodeOf(err) == plugin.CodeMissingIdentity {
		return Answer{}, nil
	}
	return answer, err
}

func (a *Accounts) give(ctx context.Context, u *Use, provider string, c *chosen) (Answer, error) {
	k := Key{u.Tenant, u.Subject, provider}
	p, err := a.provider(provider)
	if err != nil {
		return Answer{}, err
	}
	switch c.mode {
	case ServiceAccount:
		token, err := a.mint(ctx, u.Tenant, p, c.scopes, "")
		if err != nil {
			return Answer{}, err
		}
		return Answer{Token: &token, Mode: c.mode}, nil
	case DomainDelegate:
		subject, err := a.subject(ctx, k, p, c)
		if err != nil {
			return Answer{}, err
		}
		token, err := a.mint(ctx, u.Tenant, p, c.scopes, subject)
		if err != nil {
			return Answer{}, err
		}
		return Answer{&token, &subject, c.mode}, nil
	}
	r, err := a.user(ctx, k, c.scopes)
	if err != nil {
		return Answer{}, err
	}
	target := or(r.Email, "me")
	return Answer{&r.Access, &target, c.mode}, nil
}

// subject returns the user whom a delegate impersonates: the call's own
// principal, by an address that an administrator or the provider vouches for,
// or a user whom the configuration names.
func (a *Accounts) subject(ctx context.Context, k Key, p *Provider, c *chosen) (string, error) {
	own, err := a.addresses(ctx, k)
	if err != nil {
		return "", err
	}
	if c.subject == "" {
		hinted := strings.TrimSuffix(strings.TrimPrefix(c.hint, "identity:"), "_email")
		if c.hint != "" && hinted != k.Provider { // an address that is known elsewhere
			if own, err = a.linked(ctx, Key{k.Tenant, k.Subject, hinted}); err != nil {
				return "", err
			}
		}
		if len(own) == 0 {
			return "", missing(p.Name, DomainDelegate, c.scopes, "it is not known for whom %s is to stand in: no address of the caller is linked; an administrator links one: mortise identities link %s ADDRESS PRINCIPAL", p.Name, or(hinted, p.Name))
		}
		return own[0], nil
	}
	is := func(address string) bool { return strings.EqualFold(address, c.subject) }
	if slices.ContainsFunc(own, is) || p.Service != nil && slices.ContainsFunc(p.Service.Subjects, func(pattern string) bool { return matches(pattern, c.subject) }) {
		return c.subject, nil
	}
	return "", plugin.Errorf(plugin.CodeServiceDenied, "the service account of %s does not stand in for %.200q here: it is no address of the caller; an administrator adds others under auth: providers: %s: service_account: subjects in mortise.yaml", p.Name, c.subject, p.Name)
}

// matches reports whether an address is the pattern, or of its domain.
func matches(pattern, address string) bool {
	if domain, found := strings.CutPrefix(pattern, "*@"); found {
		name, host, ok := strings.Cut(address, "@")
		return ok && name != "" && strings.EqualFold(host, domain)
	}
	return strings.EqualFold(pattern, address)
}

// addresses returns the mail addresses of a principal at a provider that it, or
// an administrator, vouches for.
func (a *Accounts) addresses(ctx context.Context, k Key) ([]string, error) {
	all, err := a.linked(ctx, k)
	if err != nil {
		return nil, err
	}
	r, err := a.load(ctx, k)
	if err != nil {
		return nil, err
	}
	if r != nil && r.Gone == "" && r.Verified && r.Email != "" && !slices.Contains(all, r.Email) {
		all = append(all, r.Email)
	}
	return all, nil
}

// linked returns those that an administrator vouches for.
func (a *Accounts) linked(ctx context.Context, k Key) ([]string, error) {
	if a.Addresses == nil {
		return nil, nil
	}
	return a.Addresses(ctx, k)
}

// Check refuses a call whose accounts are not there, before its plugin runs: what
// the operation, the plugin as a whole, and what was chosen for the call require.
func (a *Accounts) Check(ctx context.Context, u Use) error {
	var providers []string
	add := func(provider string) {
		if !slices.Contains(providers, provider) {
			providers = append(providers, provider)
		}
	}
	if u.Operation != nil {
		add(u.Operation.Provider)
	}
	for _, auth := range u.Identities {
		add(auth.Provider)
	}
	for provider := range u.choices() {
		add(provider)
	}
	slices.Sort(providers)
	for _, provider := range providers {
		c, err := u.choose(Ask{Provider: provider})
		if plugin.CodeOf(err) == plugin.CodeServiceDenied { // the caller chose it, not the plugin
			return missing(provider, u.choices()[provider].Mode, nil, "%s", plugin.AsError(err).Message)
		}
		if err != nil {
			return err
		}
		if c == nil || c.optional || u.OwnOnly && c.mode != User {
			continue
		}
		if err := a.there(ctx, &u, provider, c); err != nil {
			return forOperation(u.Name, err)
		}
	}
	return nil
}

// there reports whether a token can be had, without a request to a provider for
// a token that may go unused: only a user's token is renewed.
func (a *Accounts) there(ctx context.Context, u *Use, provider string, c *chosen) error {
	p, err := a.provider(provider)
	if err != nil {
		return withMode(err, c)
	}
	k := Key{u.Tenant, u.Subject, provider}
	if c.mode == User {
		// Each requirement counts here, while a token is for one of them.
		scopes := c.scopes
		for _, auth := range u.declared(provider) {
			if !auth.Optional && (auth.Mode == "" || auth.Mode == User) {
				scopes = union(scopes, auth.Scopes)
			}
		}
		_, err := a.user(ctx, k, scopes)
		return err
	}
	if _, _, err := a.keyOf(ctx, u.Tenant, p); err != nil {
		return withMode(err, c)
	}
	if c.mode == DomainDelegate {
		_, err = a.subject(ctx, k, p, c)
	}
	return err
}

func union(all, more []string) []string {
	all = slices.Clone(all)
	for _, scope := range more {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// withMode says in which mode, and for which scopes, something is missing.
func withMode(err error, c *chosen) error {
	known := plugin.AsError(err)
	var d struct {
		Provider string `json:"provider"`
	}
	if known.Code != plugin.CodeMissingIdentity || json.Unmarshal(known.Details, &d) != nil {
		return err
	}
	e := *known
	e.Details = details(d.Provider, c.mode, c.scopes)
	return &e
}

// forOperation says which operation an account is missing for.
func forOperation(name string, err error) error {
	e := *plugin.AsError(err)
	e.Message = name + " cannot run: " + e.Message
	return &e
}
