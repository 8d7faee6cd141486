package host

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/plugin"
)

// IdentitiesPlugin is what stands for the identity links themselves where policy
// is asked who may configure them.
const IdentitiesPlugin = "mortise.identities"

// What one link may have.
const (
	maxExternal = 200 // characters of a provider, and of an id there
	maxScopes   = 64
	maxScope    = 200 // bytes of one scope
)

// An Identity links a user of another system to a principal here, with the
// scopes that the link grants.
type Identity struct {
	Provider   string    `json:"provider"`
	ExternalID string    `json:"external_id"`
	Principal  string    `json:"principal"`         // as the configuration names them
	Adapter    string    `json:"adapter,omitempty"` // the one that may speak of them
	Scopes     []string  `json:"scopes"`
	By         string    `json:"by"` // who linked them
	At         time.Time `json:"at"`
}

// Identities are the identity links of the host's tenant, as one principal may
// see and change them. What is refused is on the record.
type Identities struct {
	g       *Guard
	by      plugin.Principal
	caller  *Caller
	asker   func() string
	adapter string
}

// For returns the links, restricted to one adapter. Only that adapter may then
// act for the linked users.
func (i Identities) For(adapter string) Identities {
	i.adapter = adapter
	return i
}

// List returns all links, by provider and id.
func (i Identities) List(ctx context.Context) ([]Identity, error) {
	if err := i.may(ctx, "list", ""); err != nil {
		return nil, err
	}
	rows, err := i.g.Store.Identities(ctx, i.g.Tenant)
	if err != nil {
		return nil, err
	}
	all := make([]Identity, len(rows))
	for n := range rows {
		all[n] = identityOf(&rows[n])
	}
	return all, nil
}

// Link links a user of another system to a principal here. It replaces an
// earlier link of that user, which the ledger entry keeps.
func (i Identities) Link(ctx context.Context, provider, externalID, to string, scopes ...string) (Identity, error) {
	if err := i.may(ctx, "link", subjectOf(provider, externalID)); err != nil {
		return Identity{}, err
	}
	if err := i.g.letsIn(ctx, i.caller, use{kind: plugin.EntryIdentityRefused, subject: subjectOf(provider, externalID), action: "link"}); err != nil {
		return Identity{}, err
	}
	if err := checkExternal(provider, externalID); err != nil {
		return Identity{}, err
	}
	who := principal.Parse(to)
	switch {
	case who.Type == "agent":
		return Identity{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is an agent; link a user of another system to a user or a service", to)
	case !i.g.Known(i.g.Tenant, who):
		return Identity{}, plugin.Errorf(plugin.CodeNotFound, "there is no principal %.255q; mortise.yaml names %s", to, strings.Join(i.g.now().names, ", "))
	case i.g.administers(who) && !i.g.administers(i.by):
		why := plugin.Errorf(plugin.CodePolicyDenied, "%s may not link users of other systems to the administrator", principal.Name(i.by))
		return Identity{}, i.g.refuse(ctx, i.by, use{kind: plugin.EntryIdentityRefused, subject: subjectOf(provider, externalID), action: "link"}, why, plugin.Decision{})
	}
	scopes = slices.Compact(slices.Sorted(slices.Values(scopes)))
	if err := checkScopes(scopes); err != nil {
		return Identity{}, err
	}
	row := identityRow{
		Tenant: i.g.Tenant, Provider: provider, ExternalID: externalID, PrincipalType: who.Type, PrincipalID: who.ID,
		Scopes: scopes, Adapter: i.adapter, By: principal.Name(i.by), Asker: i.asker(), At: i.g.moment(),
	}
	err := i.g.Store.Write(ctx, func(tx Tx) error {
		was, err := tx.Identity(ctx, row.Tenant, provider, externalID)
		if err != nil {
			return err
		}
		body := evidenceOf(identityOf(&row))
		if was != nil {
			body["was"] = evidenceOf(identityOf(was))
		}
		if err := tx.PutIdentity(row); err != nil {
			return err
		}
		return i.g.Note(tx, i.by, plugin.EntryIdentityLinked, subjectOf(provider, externalID), body)
	})
	return identityOf(&row), err
}

// Unlink takes a link back: nothing more is begun in that name. Plans that were
// made by then go on; they can be cancelled.
func (i Identities) Unlink(ctx context.Context, provider, externalID string) (Identity, error) {
	if err := i.may(ctx, "unlink", subjectOf(provider, externalID)); err != nil {
		return Identity{}, err
	}
	var gone Identity
	err := i.g.Store.Write(ctx, func(tx Tx) error {
		gone = Identity{}
		was, err := tx.Identity(ctx, i.g.Tenant, provider, externalID)
		if err != nil {
			return err
		}
		if was == nil {
			return plugin.Errorf(plugin.CodeNotFound, "%.200q on %.200q has no link; 'mortise identities list' shows all links", externalID, provider)
		}
		gone = identityOf(was)
		if _, err := tx.DeleteIdentity(i.g.Tenant, provider, externalID); err != nil {
			return err
		}
		return i.g.Note(tx, i.by, plugin.EntryIdentityGone, subjectOf(provider, externalID), evidenceOf(gone))
	})
	return gone, err
}

// may refuses an unauthorized principal and records the refusal.
func (i Identities) may(ctx context.Context, what, subject string) error {
	u := use{plugin.EntryIdentityRefused, subject, what, what + " identities"}
	if err := i.g.authorise(ctx, i.by, i.g.part(IdentitiesPlugin), u); err != nil || what == "list" {
		return err
	}
	return i.g.recent(ctx, i.caller, u)
}

func identityOf(row *identityRow) Identity {
	return Identity{
		Provider: row.Provider, ExternalID: row.ExternalID, Principal: principal.Name(plugin.Principal{Type: row.PrincipalType, ID: row.PrincipalID}),
		Adapter: row.Adapter, Scopes: append([]string{}, row.Scopes...), By: row.By, At: row.At,
	}
}

// evidenceOf is what the ledger keeps of a link.
func evidenceOf(i Identity) map[string]any {
	body := map[string]any{"provider": i.Provider, "external_id": i.ExternalID, "principal": i.Principal, "scopes": i.Scopes, "by": i.By}
	if i.Adapter != "" {
		body["adapter"] = i.Adapter
	}
	return body
}

// subjectOf names a user of another system in a ledger entry, truncated to the
// maximum length of a link.
func subjectOf(provider, externalID string) string {
	cut := func(text string) string {
		if runes := []rune(strings.ToValidUTF8(text, "?")); len(runes) > maxExternal {
			return string(runes[:maxExternal])
		}
		return strings.ToValidUTF8(text, "?")
	}
	return cut(provider) + ":" + cut(externalID)
}

// checkExternal refuses an external id that an adapter may not use, or that is
// not readable.
func checkExternal(provider, externalID string) error {
	for what, text := range map[string]string{"provider": provider, "external id": externalID} {
		if n := utf8.RuneCountInString(text); n == 0 || n > maxExternal || !utf8.ValidString(text) ||
			strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return plugin.Errorf(plugin.CodeInvalidInput, "the %s is not 1 to %d printable characters", what, maxExternal)
		}
	}
	return nil
}

func checkScopes(scopes []string) error {
	if len(scopes) > maxScopes {
		return plugin.Errorf(plugin.CodeLimitExceeded, "%d scopes; a link has at most %d", len(scopes), maxScopes)
	}
	for _, scope := range scopes {
		if scope == "" || len(scope) > maxScope || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return plugin.Errorf(plugin.CodeInvalidInput, "%.200q is no scope; write one as manifests do under permissions, such as email:send", scope)
		}
	}
	return nil
}
