package host

import (
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/plugin"
)

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
