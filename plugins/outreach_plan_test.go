package plugins_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// openGoverned opens a scene as README.md of the set configures it, with
// changes: texts and what stands in their place.
func openGoverned(t *testing.T, changes ...string) *scene {
	t.Helper()
	config, err := os.ReadFile("outreach/mortise.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return openConfigured(t, strings.NewReplacer(changes...).Replace(string(config)))
}

func (s *scene) submit(input, key string) *plan.View {
	s.Helper()
	view, err := s.app.Plans.Submit(s.Context(), plan.Submission{
		Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "local:owner", Scopes: []string{"*"}}, Origin: plugin.OriginCLI,
		Agent: "Switchboard", Input: json.RawMessage(input), Key: key,
	})
	if err != nil {
		s.Fatal(err)
	}
	return view
}

func (s *scene) decide(view *plan.View, who string, approve bool) error {
	_, err := s.app.Approvals.Decide(s.Context(), approval.Answer{
		Tenant: "local", ID: view.Approval.ID, Approve: approve, By: plugin.Principal{Type: "user", ID: who}, Reason: "read it",
	})
	return err
}

func (s *scene) run(id string) *plan.View {
	s.Helper()
	view, err := s.app.Plans.Run(s.Context(), "local", id)
	if err != nil {
		s.Fatal(err)
	}
	return view
}

// TestOutreachPlanSendsOneMail follows the way from an intent to a mail:
// nothing happens before a person agrees, and everything once.
func TestOutreachPlanSendsOneMail(t *testing.T) {
	t.Parallel()
	s := openGoverned(t)
	input := s.example("switchboard", "Switchboard.send")
	waiting := s.submit(input, "demo-1")
	var steps []string
	for _, step := range waiting.Steps {
		steps = append(steps, step.ID+" "+step.Operation+" "+step.Gate)
	}
	if want := []string{
		"s1 Email.GenerateDraft/Email.GenerateDraft none",
		"s2 Text.Score/Text.Score none",
		"s3 Apply.EmailDraft/Apply.EmailDraft human_apply",
		"s4 Gmail.Send/Gmail.Send human_apply",
	}; !slices.Equal(steps, want) || waiting.State != store.PlanPending {
		t.Fatalf("%s: %q", waiting.State, steps)
	}
	if err := s.decide(waiting, "local:owner", true); err == nil {
		t.Error("who asked could agree too")
	}
	if stays := s.run(waiting.ID); stays.State != store.PlanPending || len(s.seen()) != 0 {
		t.Fatalf("%s before it was approved, and asked %v", stays.State, s.seen())
	}
	if err := s.decide(waiting, "ada", true); err != nil {
		t.Fatal(err)
	}
	done := s.run(waiting.ID)
	if done.State != store.PlanSucceeded {
		t.Fatalf("%s: %+v", done.State, done)
	}
	if again := s.submit(input, "demo-1"); again.ID != waiting.ID || s.run(again.ID).State != store.PlanSucceeded {
		t.Errorf("another plan: %s, not %s", again.ID, waiting.ID)
	}
	if want := []string{"PUT /funding_emails/funding-2026-910", "POST /gmail/v1/users/me/messages/send"}; !slices.Equal(s.seen(), want) {
		t.Errorf("asked %v", s.seen())
	}
	var email struct {
		Subject string `json:"subject"`
		Body    string `json:"body"`
	}
	if err := json.Unmarshal(s.emails["funding-2026-910"], &email); err != nil {
		t.Fatal(err)
	}
	m := readMail(t, s.mails[0])
	if m.subject != email.Subject || m.body != strings.ReplaceAll(email.Body, "\n", "\r\n") {
		t.Errorf("what was sent is not what was final: %+v, %+v", m, email)
	}
}

// TestOutreachPlanDeniedSendsNothing: one no is the end of it.
func TestOutreachPlanDeniedSendsNothing(t *testing.T) {
	t.Parallel()
	s := openGoverned(t)
	waiting := s.submit(s.example("switchboard", "Switchboard.send"), "")
	if err := s.decide(waiting, "ada", false); err != nil {
		t.Fatal(err)
	}
	if end := s.run(waiting.ID); end.State != store.PlanFailed || len(s.seen()) != 0 {
		t.Errorf("%s, asked %v", end.State, s.seen())
	}
}

// TestOutreachDraftingNeedsNoApproval: a plan without effects runs as it is.
func TestOutreachDraftingNeedsNoApproval(t *testing.T) {
	t.Parallel()
	s := openGoverned(t)
	plan := s.submit(s.example("switchboard", "Switchboard.generate"), "")
	if done := s.run(plan.ID); done.State != store.PlanSucceeded || len(done.Steps) != 2 || len(s.seen()) != 0 {
		t.Errorf("%s: %+v, asked %v", done.State, done.Steps, s.seen())
	}
}

// TestOutreachRefusesToSendWithoutConsent: neither by a plan nor by a call, with
// the role alone or the consent alone.
func TestOutreachRefusesToSendWithoutConsent(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][]string{
		"no consent":  {`{"local:owner": [gmail_send]}`, `{}`},
		"not enabled": {`{gmail_enabled: ["local:owner"]}`, `{gmail_enabled: []}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openGoverned(t, change...)
			if view := s.submit(s.example("switchboard", "Switchboard.send"), ""); view.ID != "" || !strings.Contains(string(view.Answer), "Gmail.Send") {
				t.Errorf("there is a plan: %+v", view)
			}
			if _, err := s.call("Gmail.Send", s.example("gmail_send", "Gmail.Send.plain"), "", "*"); plugin.CodeOf(err) != plugin.CodePolicyDenied {
				t.Errorf("%v", err)
			}
		})
	}
}
