package service

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/store"
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
	Identities map[string]account `json:"identities"` // by provider
}

// An account is what somebody is called elsewhere.
type account struct {
	Email   *string `json:"email"`
	Subject string  `json:"subject"`
}

func identityOfCaller(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	if err := decode(identityCurrent, args, &nothing{}); err != nil {
		return nil, err
	}
	links, err := g.links(ctx, identityCurrent)
	if err != nil {
		return nil, err
	}
	who := person{ID: g.call.Principal.ID, Name: g.call.Principal.ID, Identities: accounts(links)}
	who.Email = emailOf(g.call.Principal.ID)
	for _, link := range links {
		if who.Email == nil {
			who.Email = emailOf(link.ExternalID)
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
	links, err := g.links(ctx, identityPrimary)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Email *string `json:"email"`
	}
	answer.Email = accounts(links)[in.Provider].Email
	return answer, nil
}

// identityFound answers for one provider: who has that account, or which account
// somebody has. Kinds are a provider, or one with _email or _directory behind it.
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
	if link == nil { // then it is somebody's name here
		theirs, err := g.broker.Store.IdentitiesOf(ctx, g.call.Tenant, "user", in.Value)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(theirs, func(row store.IdentityRow) bool { return row.Provider == provider }); i >= 0 {
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

// links returns what links whoever the call is of.
func (g *grant) links(ctx context.Context, method string) ([]store.IdentityRow, error) {
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

// accounts returns one account of each provider: the first that is an address,
// and else the first.
func accounts(links []store.IdentityRow) map[string]account {
	all := map[string]account{}
	for _, link := range links {
		if had, found := all[link.Provider]; !found || had.Email == nil && emailOf(link.ExternalID) != nil {
			all[link.Provider] = account{emailOf(link.ExternalID), link.ExternalID}
		}
	}
	return all
}

// emailOf returns text where it can be the address of a mailbox.
func emailOf(text string) *string {
	name, host, found := strings.Cut(text, "@")
	if !found || name == "" || host == "" || strings.ContainsAny(text, " \t<>\"") || strings.Contains(host, "@") {
		return nil
	}
	return &text
}
