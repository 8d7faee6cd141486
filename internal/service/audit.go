package service

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

const (
	auditName = "audit"
	auditLog  = "audit.log"

	auditEvent   = 200      // bytes of an event
	auditDetails = 16 << 10 // bytes of the details
	auditsOfCall = 64
)

// An auditing is what a plugin says.
type auditing struct {
	Event   string         `json:"event"`
	Details jsontext.Value `json:"details"`
}

// auditing reads the arguments of audit.log, and counts.
func (g *grant) auditing(args json.RawMessage) (in auditing, err error) {
	if err := decode(auditLog, args, &in); err != nil {
		return in, err
	}
	switch {
	case in.Event == "" || len(in.Event) > auditEvent || strings.ContainsFunc(in.Event, func(r rune) bool { return !unicode.IsPrint(r) }):
		return in, plugin.Errorf(plugin.CodeInvalidInput, "%s: event has 1 to %d bytes that can be printed", auditLog, auditEvent)
	case len(in.Details) > auditDetails:
		return in, plugin.Errorf(plugin.CodeInputTooLarge, "%s: details have %d bytes; at most %d are kept", auditLog, len(in.Details), auditDetails)
	case g.broker.Store == nil:
		return in, nowhere(auditLog)
	case g.audits.Add(1) > auditsOfCall:
		return in, plugin.Errorf(plugin.CodeLimitExceeded, "%s: one call puts at most %d events on record", auditLog, auditsOfCall)
	}
	return in, nil
}

// audited puts what the plugin says on record, as something that it says.
func audited(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	in, err := g.auditing(args)
	if err != nil {
		return nil, err
	}
	body, err := json2.Marshal(struct {
		CallID    string         `json:"call_id"`
		Operation string         `json:"operation"`
		Event     string         `json:"event"`
		Details   jsontext.Value `json:"details,omitzero"`
	}{g.call.ID, g.target.Name(), in.Event, in.Details}, json2.Deterministic(true))
	if err != nil {
		return nil, err
	}
	entry := plugin.Entry{
		At: time.Now().UTC().Truncate(time.Microsecond), Tenant: g.call.Tenant, Kind: plugin.EntryPluginAudit, Subject: g.call.ID,
		Principal: g.call.Principal.Member(), Body: json.RawMessage(body),
	}
	return nothing{}, g.broker.Store.Write(ctx, func(tx ledger.Tx) error { tx.Append(entry); return nil })
}

func auditedDry(g *grant, _ context.Context, args json.RawMessage) (any, *plugin.Change, error) {
	in, err := g.auditing(args)
	if err != nil {
		return nil, nil, err
	}
	return nothing{}, &plugin.Change{Target: in.Event, After: json.RawMessage(in.Details), Summary: "put on record"}, nil
}
