package adapter

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

// principal maps a user of another system to a principal of this host, with the
// scopes of the link and no others, and returns who linked them. A link belongs to one adapter: what another
// adapter says of the same user counts for nothing.
func (in *Inbound) principal(ctx context.Context, tenant, adapter string, who External) (p plugin.Principal, linker string, err error) {
	var row *identityRow
	if !strings.ContainsFunc(who.Provider+who.ExternalID, func(r rune) bool { return !unicode.IsPrint(r) }) { // no link has such a name
		if row, err = in.Store.Identity(ctx, tenant, who.Provider, who.ExternalID); err != nil {
			return p, "", err
		}
	}
	link := "mortise identities link " + word(who.Provider) + " " + word(who.ExternalID) + " PRINCIPAL --adapter " + word(adapter) + " --scope SCOPE"
	if row == nil {
		return p, "", plugin.Errorf(plugin.CodeMissingIdentity,
			"%q on %q is linked to no principal of this host; to link it: %s", who.ExternalID, who.Provider, link)
	}
	if row.Adapter != adapter {
		return p, "", plugin.Errorf(plugin.CodeMissingIdentity,
			"the link of %q on %q is not for the adapter %s, and a link belongs to one adapter; to have this one speak of them: %s", who.ExternalID, who.Provider, adapter, link)
	}
	p = plugin.Principal{Type: row.PrincipalType, ID: row.PrincipalID, Scopes: append([]string{}, row.Scopes...)}
	if p.Type == "agent" || !in.Known(tenant, p) {
		return plugin.Principal{}, "", plugin.Errorf(plugin.CodeMissingIdentity,
			"%q on %q is linked to %s, whom mortise.yaml no longer names; to link it to another principal: %s", who.ExternalID, who.Provider, p.ID, link)
	}
	slices.Sort(p.Scopes)
	return p, row.Linker(), nil
}

// plainWord needs no quotes in a shell.
var plainWord = pattern.New(`^[A-Za-z0-9_@%+:,./][A-Za-z0-9_@%+=:,./-]*$`)

// word writes what came from outside so that a shell takes it for one word and
// nothing else.
func word(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
