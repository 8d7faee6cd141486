package app

import (
	"context"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A use is one use of the host's own surface by a principal: what is refused of
// it leaves an entry.
type use struct {
	kind    plugin.EntryKind // of the entry
	subject string           // of the entry
	action  string           // the verb, for the record
	what    string           // what the principal may not do, for the message
}

// Bounds of what an entry of a refusal repeats, which may be unchecked input.
const (
	maxRefusedSubject = 512
	recordTime        = 10 * time.Second
)

// authorise returns nil where policy lets a principal configure target. Otherwise
// it records the refusal and returns it.
func (a *App) authorise(ctx context.Context, by plugin.Principal, target *plugin.Target, u use) error {
	return a.require(ctx, by, u, a.Policy.May(policy.Configure, target, a.call(by)))
}

// require returns nil where a decision allows the use. Otherwise it records the
// refusal and returns it: nothing waits for an approval here.
func (a *App) require(ctx context.Context, by plugin.Principal, u use, d plugin.Decision) error {
	if d.Verdict == plugin.Allow {
		return nil
	}
	return a.refuse(ctx, by, u, refusalOf(by, u.what, d), d)
}

// refuse records that a use was refused, and returns why. Where that cannot be
// recorded it returns the reason for that instead; the use is refused all the same.
// A caller who goes away meanwhile does not prevent the entry.
func (a *App) refuse(ctx context.Context, by plugin.Principal, u use, why *plugin.Error, d plugin.Decision) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	body := map[string]any{"action": u.action, "code": why.Code, "message": why.Message}
	if d.Policy != "" {
		body["policy"] = d.Policy
	}
	if why.Code == plugin.CodeNotFound && len(d.Reasons) > 0 { // the caller does not hear this
		body["reason"] = d.Reasons[0]
	}
	err := a.Store.Write(ctx, func(tx store.Tx) error { return a.note(tx, by, u.kind, refusedSubject(u.subject), body) })
	if err != nil {
		return err
	}
	return why
}

// refusedSubject returns a subject that no one has checked yet as an entry can
// have it.
func refusedSubject(text string) string {
	if len(text) > maxRefusedSubject {
		text = text[:maxRefusedSubject]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "?"), "?")
}

// hostTarget stands for a part of the host, such as mortise.agents, where policy is
// asked who may configure it.
func hostTarget(name string) *plugin.Target {
	return &plugin.Target{Manifest: &plugin.Manifest{Name: name, Version: Version, Dialect: "native"}}
}

// refusalOf says that a principal may not do something of the host's own. Such
// things are done or refused at once: nothing waits for a person here.
func refusalOf(by plugin.Principal, what string, d plugin.Decision) *plugin.Error {
	reason := d.Reasons[0]
	if d.Verdict == plugin.AllowWithApproval {
		reason = "it would take an approval, and this cannot wait for one: " + reason
	}
	return plugin.Errorf(plugin.CodePolicyDenied, "%s may not %s: %s", MemberName(by), what, reason)
}
