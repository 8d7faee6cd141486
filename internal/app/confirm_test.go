package app_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// TestAConfirmationTakesSelf: a requester confirms their own call only where a permit to approve it
// has @self, and in a browser with a recent sign-in; a principal that may approve it does not confirm
// it for them, and each refusal is on record with its code.
func TestAConfirmationTakesSelf(t *testing.T) {
	t.Parallel()
	needPython(t)
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy: {files: [policies], configure: [root], groups: {people: [ann, cas, bob]}}\n")
	write(t, home, "policies/p.cedar", `
@id("waits") @approval("it is kept") permit (principal, action == Action::"execute", resource == Operation::"posting/post");
@id("approvers") permit (principal, action == Action::"approve", resource);
@id("own") @self("allow") permit (principal == User::"cas", action == Action::"approve", resource == Operation::"posting/post");
`)
	a := open(t, home)
	register(t, a, posting(t), false)
	as := func(id string) (plugin.Principal, host.API) {
		p := plugin.Principal{Type: "user", ID: id, Scopes: []string{"*"}}
		return p, a.As(p)
	}
	ask := func(id string) string {
		by, _ := as(id)
		res, err := a.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: by, Origin: plugin.OriginMCP, Operation: "posting/post", Input: json.RawMessage(`{"text":"` + id + `"}`)})
		if err != nil || res.Approval == nil {
			t.Fatalf("%+v, %v", res, err)
		}
		return res.Approval.ID
	}
	refusals := func() (n int) {
		entries, _, err := a.As(a.Principal).Ledger().List(t.Context(), host.EntryQuery{Kind: string(plugin.EntryApprovalRefused), Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	_, ann := as("ann")
	_, bob := as("bob")
	_, cas := as("cas")
	anns, cass := ask("ann"), ask("cas")
	for what, c := range map[string]struct {
		api host.API
		id  string
	}{"without @self": {ann, anns}, "what another asked for": {cas, anns}, "by an approver": {bob, cass}} {
		before := refusals()
		if err := c.api.Approvals().MayConfirm(t.Context(), c.id); plugin.CodeOf(err) != plugin.CodeApprovalSelf || refusals() != before {
			t.Errorf("%s: may: %v, %d entries", what, err, refusals()-before)
		}
		if _, err := c.api.Approvals().Confirm(t.Context(), c.id, true, ""); plugin.CodeOf(err) != plugin.CodeApprovalSelf || refusals() != before+1 {
			t.Errorf("%s: %v, %d entries", what, err, refusals()-before)
		}
	}
	for age, want := range map[time.Duration]plugin.Code{time.Hour: plugin.CodeSignInRequired, time.Minute: ""} {
		by, _ := as("cas")
		browser := a.Host.For(host.Caller{Principal: by, Scopes: []string{host.ScopeApprove}, Session: "s1", SignedInAt: a.Store.Now().Add(-age)}).Approvals()
		before := refusals()
		if err := browser.MayConfirm(t.Context(), cass); plugin.CodeOf(err) != want || refusals() != before {
			t.Errorf("signed in %s ago: may: %v, %d entries", age, err, refusals()-before)
		}
		if want == "" {
			continue
		}
		if _, err := browser.Confirm(t.Context(), cass, true, ""); plugin.CodeOf(err) != want || refusals() != before+1 {
			t.Errorf("signed in %s ago: %v, %d entries", age, err, refusals()-before)
		}
	}
	if row, err := cas.Approvals().Confirm(t.Context(), cass, true, "yes"); err != nil || row.DecidedBy != "cas" {
		t.Errorf("with @self: %+v, %v", row, err)
	}
	if _, err := cas.Approvals().Confirm(t.Context(), cass, true, "again"); plugin.CodeOf(err) != plugin.CodeApprovalUsed {
		t.Errorf("a second time: %v", err)
	}
}
