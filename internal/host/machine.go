package host

import (
	"context"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/approval"
)

// A Machine is a program that presented a token which an identity provider signed, verified.
type Machine struct {
	Issuer, Subject string   // as the token has them
	Principal       string   // whom the configuration makes of it
	Scopes          []string // of [Scopes]; read alone if empty
	Operations      []string // all if empty
	Groups          []string // that the token gives, as the configuration maps them
	Expires         time.Time
}

// machine returns the caller that a machine is. It is the subject of the issuer, and no one
// else where an approval takes a second person: not the principal by another way, nor another
// principal that the same subject is made. A subject that is a user's, and was unlinked or
// disabled, is refused like any token.
func (a *Authenticator) machine(ctx context.Context, m *Machine) (Caller, error) {
	g := a.host.parts.Guard
	who, err := g.Member(principal.Name(principal.Parse(m.Principal)))
	if err != nil || who.Type == "agent" || g.administers(who) || len(m.Issuer) > maxSubject || len(m.Subject) > maxSubject {
		return Caller{}, ErrToken
	}
	users, err := g.Store.Users(ctx, g.Tenant)
	if err != nil {
		return Caller{}, err
	}
	asker := oidcAsker(m.Issuer, m.Subject)
	for _, row := range []*userRow{named(users, principal.Name(who)), ownerOf(users, asker)} {
		if row != nil && (!row.DisabledAt.IsZero() || slices.ContainsFunc(row.Identities, func(id userIdentity) bool { return id.Asker == asker && !id.UnlinkedAt.IsZero() })) {
			return Caller{}, ErrToken
		}
	}
	scopes := m.Scopes
	if len(scopes) == 0 {
		scopes = []string{ScopeRead}
	}
	who.Groups = m.Groups
	return Caller{Principal: who, Asker: approval.Entrusted(asker, userAsker(who)), Scopes: ordered(scopes), Operations: m.Operations, Expires: m.Expires}, nil
}

// maxSaid is how many groups of a claim are looked at.
const maxSaid = 1000

// MappedGroups returns the groups that a claim gives, which is a text or a list of texts, in
// order and each once. What is not mapped gives nothing.
func MappedGroups(claim any, mapped map[string][]string) []string {
	return groupsFor(SaidGroups(claim, mapped), mapped)
}

// SaidGroups returns what a claim says that is mapped to groups, in order and each once.
func SaidGroups(claim any, mapped map[string][]string) (said []string) {
	all, _ := claim.([]any)
	if text, is := claim.(string); is {
		all = []any{text}
	}
	for _, one := range all[:min(len(all), maxSaid)] {
		if text, _ := one.(string); len(mapped[text]) > 0 {
			said = append(said, text)
		}
	}
	slices.Sort(said)
	return slices.Compact(said)
}

// groupsFor returns the groups that are mapped to what a claim said, in order and each once.
func groupsFor(said []string, mapped map[string][]string) (groups []string) {
	for _, text := range said {
		groups = append(groups, mapped[text]...)
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}
