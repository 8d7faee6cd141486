package host

import (
	"context"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/plugin"
)

// Linked returns a link if its principal is still one whom others may speak as, and nil otherwise:
// if the configuration does not name them, if they are an agent, or if their user is disabled.
func (g *Guard) Linked(ctx context.Context, link *identityRow) (*identityRow, error) {
	if link == nil {
		return nil, nil
	}
	who := plugin.Principal{Type: link.PrincipalType, ID: link.PrincipalID}
	if who.Type == "agent" || !g.Known(link.Tenant, who) {
		return nil, nil
	}
	if disabled, err := g.disabled(ctx, who); disabled || err != nil {
		return nil, err
	}
	return link, nil
}

// disabled reports whether the user of a principal is disabled.
func (g *Guard) disabled(ctx context.Context, who plugin.Principal) (bool, error) {
	users, err := g.Store.Users(ctx, g.Tenant)
	if err != nil {
		return false, err
	}
	user := named(users, principal.Name(who))
	return user != nil && !user.DisabledAt.IsZero(), nil
}

// Sender returns who the sender of a channel's message is, what they are to its agent, and
// the asker behind them. A linked sender has the principal and the scopes of the link; any
// other is a guest without scopes.
func Sender(link *identityRow, channel, id string) (who plugin.Principal, role, asker string) {
	if link == nil || link.Adapter != "" { // an adapter's link is no channel's
		return plugin.Principal{Type: "user", ID: config.SenderPrefix + channel + ":" + id, Scopes: []string{}}, "guest", ""
	}
	who = plugin.Principal{Type: link.PrincipalType, ID: link.PrincipalID, Scopes: link.Scopes}
	return who, "user", approval.Linked("channel:"+channel+"/"+id, link.Linker(), who.Member())
}
