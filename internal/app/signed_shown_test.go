package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// showerPlugin shows what it would do.
func showerPlugin() {
	p := mortise.New("shower", "1.0.0")
	type message struct {
		To string `json:"to"`
	}
	same := func(_ *mortise.Call, in message) (message, error) { return in, nil }
	mortise.Operator(p, "send", "Send to one.", same, mortise.Effects("mail_send"), mortise.WithPreview(same))
	p.Run()
}

// asksHome has a plan and a call that each wait for an approval.
func asksHome(t *testing.T) (a *app.App, v *plan.View, ofPlan, ofCall *store.ApprovalRow) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy: {files: [gates.cedar], groups: {people: [ann, bob]}}\napprovals: {by: [bob]}\nintents: {Gate.Meet: planner}\n", "gates.cedar",
		"@id(\"all\") permit (principal, action, resource) unless { resource in Plugin::\"shower\" };\n@id(\"gate\") @approval(\"it is gated\") permit (principal, action == Action::\"execute\", resource in Plugin::\"shower\");\n")
	a = open(t, home)
	for name, more := range map[string]string{
		"shower":  fmt.Sprintf("runner: {kind: process, command: [%q, shower]}\n", self),
		"planner": fmt.Sprintf("operations:\n  plan: {kind: agent, description: Propose., allowed_actions: [shower/send]}\nrunner: {kind: process, command: [%q, planner, shower/send]}\n", self),
	} {
		source := filepath.Join(home, "source", name)
		write(t, source, "manifest.yaml", fmt.Sprintf("name: %s\nversion: 1.0.0\nowner: test\ndescription: A test.\n%s", name, more))
		register(t, a, source, false)
	}
	v, err = a.Plans.Submit(t.Context(), plan.Submission{
		Tenant: "local", Principal: ann, Agent: "planner", Origin: plugin.OriginCLI, Asker: "os:1",
		Input: json.RawMessage(`{"intent":{"type":"Gate.Meet","payload":{"operation":"shower/send","input":{"to":"EVIL"}}}}`),
	})
	if err != nil || v.Approval == nil {
		t.Fatalf("%+v, %v", v, err)
	}
	call := asking(plugin.OriginCLI, "shower/send", `{"to":"EVIL"}`)
	call.Key, call.Asker = "k", "os:1"
	res, err := a.Kernel.Call(t.Context(), call)
	if err != nil || res.Status != plugin.PendingApproval {
		t.Fatalf("%+v, %v", res, err)
	}
	rows := map[string]*store.ApprovalRow{}
	for _, kind := range []string{store.SubjectPlan, store.SubjectCall} {
		asked, err := a.Store.Approvals(t.Context(), store.ApprovalFilter{Tenant: "local", SubjectKind: kind})
		if err != nil || len(asked) != 1 || asked[0].PreviewHash == "" {
			t.Fatalf("%s: %+v, %v", kind, asked, err)
		}
		rows[kind] = &asked[0]
	}
	return a, v, rows[store.SubjectPlan], rows[store.SubjectCall]
}

// What a person is shown before they decide, and what their answer is about, is what was
// asked and what would run, whatever another writes into the database meanwhile: the
// answer is refused, and so is the sight of it.
func TestWhatAPersonDecidesOnIsWhatWouldRun(t *testing.T) {
	t.Parallel()
	a, v, ofPlan, ofCall := asksHome(t)
	ctx := t.Context()
	bob := plugin.Principal{Type: "user", ID: "bob", Scopes: []string{"*"}}
	approvers := a.Host.Approvers()
	body := func(hash string) string {
		return `UPDATE bodies SET data = CAST(replace(CAST(data AS TEXT), 'EVIL', 'good') AS BLOB) WHERE hash = '` + hash + `'`
	}
	gone := func(hash string) string { return `UPDATE bodies SET data = NULL WHERE hash = '` + hash + `'` }
	planRow, err := a.Store.Plan(ctx, "local", v.ID)
	if err != nil {
		t.Fatal(err)
	}
	callRow, err := a.Store.Call(ctx, "local", ofCall.SubjectID)
	if err != nil {
		t.Fatal(err)
	}
	tables := []string{"plans", "steps", "calls", "bodies"}
	for _, table := range tables {
		past(t, a.Home, "CREATE TABLE was_"+table+" AS SELECT * FROM "+table)
	}
	for name, edit := range map[string]struct {
		of        *store.ApprovalRow
		statement string
	}{
		"the input of a step":      {ofPlan, `UPDATE steps SET input = replace(input, 'EVIL', 'good')`},
		"its name":                 {ofPlan, `UPDATE steps SET step_id = 'harmless'`},
		"its operation":            {ofPlan, `UPDATE steps SET operation = 'shower/show'`},
		"its version":              {ofPlan, `UPDATE steps SET version = '1.0.1'`},
		"its package":              {ofPlan, `UPDATE steps SET package_digest = 'sha256:other'`},
		"its order":                {ofPlan, `UPDATE steps SET needs = '["s0"]'`},
		"its gate":                 {ofPlan, `UPDATE steps SET gate = 'none'`},
		"why it has one":           {ofPlan, `UPDATE steps SET why = 'it is a formality'`},
		"the steps":                {ofPlan, `DELETE FROM steps`},
		"the labels of a plan":     {ofPlan, `UPDATE plans SET labels = '["private"]'`},
		"for whom it is":           {ofPlan, `UPDATE plans SET principal = 'bob'`},
		"which agent it is of":     {ofPlan, `UPDATE plans SET agent = 'other/agent'`},
		"the hash of a plan":       {ofPlan, `UPDATE plans SET plan_hash = 'sha256:other'`},
		"the preview of a plan":    {ofPlan, body(ofPlan.PreviewHash)},
		"no preview of a plan":     {ofPlan, gone(ofPlan.PreviewHash)},
		"what an agent said":       {ofPlan, body(planRow.RequestHash)},
		"nothing that it said":     {ofPlan, gone(planRow.RequestHash)},
		"the preview of a call":    {ofCall, body(ofCall.PreviewHash)},
		"no preview of a call":     {ofCall, gone(ofCall.PreviewHash)},
		"no row of a preview":      {ofCall, `DELETE FROM bodies WHERE hash = '` + ofCall.PreviewHash + `'`},
		"the arguments of a call":  {ofCall, body(callRow.RequestHash)},
		"no arguments of a call":   {ofCall, gone(callRow.RequestHash)},
		"arguments under a hash":   {ofCall, `UPDATE calls SET request_hash = '` + planRow.RequestHash + `'`},
		"the hash of its input":    {ofCall, `UPDATE calls SET input_hash = 'sha256:other'`},
		"the labels of a call":     {ofCall, `UPDATE calls SET labels = '["private"]'`},
		"the operation of a call":  {ofCall, `UPDATE calls SET operation = 'shower/show'`},
		"the version that it is":   {ofCall, `UPDATE calls SET version = '1.0.1'`},
		"who acts for the asker":   {ofCall, `UPDATE calls SET actor = 'boss'`},
		"a call that asks nothing": {ofCall, `UPDATE calls SET request_hash = ''`},
	} {
		past(t, a.Home, edit.statement)
		if q, err := approvers.Question(ctx, edit.of); !errors.Is(err, store.ErrTampered) {
			t.Errorf("%s: the approval is shown: %+v, %v", name, q, err)
		}
		if edit.of == ofPlan {
			shown, err := a.As(a.Principal).Plans().Get(ctx, v.ID, "show")
			preview := edit.statement == body(ofPlan.PreviewHash) || edit.statement == gone(ofPlan.PreviewHash) // not part of it
			if !preview && !errors.Is(err, store.ErrTampered) {
				t.Errorf("%s: the plan is shown: %+v, %v", name, shown, err)
			}
		}
		row, err := a.Approvals.Decide(ctx, approval.Answer{Tenant: "local", ID: edit.of.ID, Approve: true, By: bob, Asker: "os:2"})
		if !errors.Is(err, store.ErrTampered) {
			t.Errorf("%s: it is approved: %+v, %v", name, row, err)
		}
		if now, err := a.Store.Approval(ctx, "local", edit.of.ID); err != nil || now.State != store.ApprovalOpen {
			t.Fatalf("%s: the approval is %+v, %v", name, now, err)
		}
		for _, table := range tables {
			past(t, a.Home, "DELETE FROM "+table, "INSERT INTO "+table+" SELECT * FROM was_"+table)
		}
	}
	for name, statement := range map[string]string{
		"a step": `UPDATE steps SET input = replace(input, 'EVIL', 'good')`, "why": `UPDATE steps SET why = 'it is a formality'`, "no steps": `DELETE FROM steps`,
	} {
		past(t, a.Home, statement)
		foundByVerify(t, name, a.Home, "steps")
		past(t, a.Home, "DELETE FROM steps", "INSERT INTO steps SELECT * FROM was_steps")
	}
	past(t, a.Home, gone(ofCall.PreviewHash))
	if row, err := a.Approvals.Decide(ctx, approval.Answer{Tenant: "local", ID: ofCall.ID, By: bob, Asker: "os:2"}); err != nil || row.State != store.ApprovalDenied {
		t.Errorf("it cannot be denied: %+v, %v", row, err)
	}
	if row, err := a.Approvals.Decide(ctx, approval.Answer{Tenant: "local", ID: ofPlan.ID, Approve: true, By: bob, Asker: "os:2"}); err != nil || row.State != store.ApprovalApproved {
		t.Errorf("as it was asked: %+v, %v", row, err)
	}
}
