package ledger

import (
	"context"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// keyPrefixes are how the keys begin that something besides callers chose.
var keyPrefixes = map[string]string{
	"":                   "k:",
	plugin.KeyOfProposal: "q:",
	plugin.KeyOfEvent:    "w:",
	plugin.KeyOfReply:    "r:",
}

// StoredKey returns the key under which a call burns. One unique index serves all
// origins: each has a prefix of its own, so that none can take another's key.
//
//	p:PLAN/STEP    a step of a plan
//	k:KEY          a caller's own
//	q:, w:, r:     a submission's, an event's, a reply's: see plugin.KeyOfProposal and the others
//	o:PLUGIN/KEY   the key that a plugin gave with operations.call
//	f:PLACE        a time of a schedule
//	n:PLACE        a call that another made or enqueued
//	c:ID           a call that has no other key
func StoredKey(call *plugin.Call) string {
	switch {
	case call.Plan != "":
		return "p:" + call.Plan + "/" + call.Trace.Step
	case call.Key != "":
		if name, found := strings.CutPrefix(call.KeyOf, plugin.KeyOfPlugin); found {
			return "o:" + name + "/" + call.Key
		}
		if prefix, known := keyPrefixes[call.KeyOf]; known {
			return prefix + call.Key
		}
		return "x:" + call.KeyOf + "/" + call.Key
	case call.Place != "" && call.Origin == plugin.OriginFeed:
		return "f:" + call.Place
	case call.Place != "":
		return "n:" + call.Place
	}
	return ownKey(call.ID)
}

// ownKey is the key of a call that has no other: no caller can name it.
func ownKey(id string) string { return "c:" + id }

// OldKey returns the key that a call of this origin had before keys were told
// apart by what made them, "" where it had no other than [StoredKey].
func OldKey(call *plugin.Call) string {
	if call.Key == "" || call.KeyOf == "" || call.Plan != "" {
		return ""
	}
	return keyPrefixes[""] + call.Key
}

// LookupCall is [Ledger.Lookup] for a call of operation. It finds calls of older
// versions of the host as well: by their origin, which is none that a caller has.
func (l *Ledger) LookupCall(ctx context.Context, call *plugin.Call, operation string) (*Prior, error) {
	prior, err := l.Lookup(ctx, call.Tenant, operation, StoredKey(call))
	old := OldKey(call)
	if prior != nil || err != nil || old == "" || call.Origin == plugin.OriginCLI {
		return prior, err
	}
	row, err := l.st.CallByKey(ctx, call.Tenant, operation, old)
	if err != nil || row == nil || row.Origin != string(call.Origin) {
		return nil, err
	}
	return priorOf(ctx, l.st, row)
}
