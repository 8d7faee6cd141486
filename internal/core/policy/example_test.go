package policy_test

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// TestTheExampleOfTheContract is the policy of the kernel contracts, 5.6: by
// name, by tag and by effect.
func TestTheExampleOfTheContract(t *testing.T) {
	t.Parallel()
	e := open(t, policy.Options{Sources: []policy.Source{policy.Files("../../../docs/examples/policies", "kernel-contract.cedar")}})
	operation := func(name string, kind plugin.Kind, tag string, effects ...string) *plugin.Target {
		of := target(name, name, kind, effects...) // as the kernel dialect names them
		if tag != "" {
			of.Operation.PolicyTags = []string{tag}
		}
		return of
	}
	plain := policy.Standing{}
	enabled := policy.Standing{Roles: []string{"gmail_enabled"}}
	agreed := policy.Standing{Consent: []string{"gmail_send"}}
	both := policy.Standing{Roles: []string{"gmail_enabled"}, Consent: []string{"gmail_send"}}
	draft := operation("Email.GenerateDraft", plugin.Agent, "draft_only")
	apply := operation("Email.ApplyDraft", plugin.Operator, "writes_final", "db_write")
	applyAlias := operation("Apply.EmailDraft", plugin.Operator, "", "db_write")
	send := operation("Gmail.SendEmail", plugin.Operator, "external_send", "gmail_send")
	sendAlias := operation("Gmail.Send", plugin.Operator, "", "gmail_send")
	for _, c := range []struct {
		name     string
		target   *plugin.Target
		standing policy.Standing
		want     plugin.Verdict
		reason   string
	}{
		{"a draft, by any user", draft, plain, plugin.Allow, "kernel-contract.cedar:12 drafts_are_free"},
		{"a draft that says it sends", operation("Email.GenerateDraft", plugin.Agent, "", "gmail_send"), plain, plugin.Deny, ""},
		{"apply", apply, both, plugin.AllowWithApproval, "kernel-contract.cedar:21 apply_draft_is_gated asks for approval: it writes the final mail; read the draft first"},
		{"apply by its other name", applyAlias, plain, plugin.AllowWithApproval, ""},
		{"a final write by its tag", operation("Report.Publish", plugin.Operator, "writes_final", "s3_final_write"), plain, plugin.AllowWithApproval, "kernel-contract.cedar:39 final_writes_are_gated asks for approval: it writes final data"},
		{"send, by a user without roles", send, plain, plugin.Deny, "kernel-contract.cedar:66 sending_needs_enablement_and_consent forbids it: sending mail has to be enabled for you, and needs your consent"},
		{"send, enabled, without consent", send, enabled, plugin.Deny, ""},
		{"send, with consent, not enabled", send, agreed, plugin.Deny, ""},
		{"send, enabled and with consent", send, both, plugin.Allow, "kernel-contract.cedar:51 gmail_send_email"},
		{"send by its other name", sendAlias, plain, plugin.Deny, ""},
		{"send by its other name, enabled and with consent", sendAlias, both, plugin.Allow, ""},
		{"a sender under another name", operation("Mail.Blast", plugin.Operator, "", "gmail_send"), plain, plugin.Deny, "kernel-contract.cedar:66 sending_needs_enablement_and_consent forbids it: sending mail has to be enabled for you, and needs your consent"},
		{"a sender that says so by tag alone", operation("Mail.Post", plugin.Operator, "external_send"), plain, plugin.Deny, ""},
		{"a sender that would write final data", operation("Mail.Both", plugin.Operator, "writes_final", "gmail_send"), plain, plugin.Deny, ""},
		{"anything else", operation("Disk.Wipe", plugin.Operator, "", "db_write"), both, plugin.Deny, ""},
	} {
		d := e.Ask(&policy.Question{Target: c.target, Standing: &c.standing, Call: &plugin.Call{Tenant: "t", Principal: plugin.Principal{Type: "user", ID: "ann"}}})
		if d.Verdict != c.want || c.reason != "" && d.Reasons[0] != c.reason {
			t.Errorf("%s: got %s %q, want %s %q", c.name, d.Verdict, d.Reasons, c.want, c.reason)
		}
	}
}
