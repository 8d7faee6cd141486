package plugins_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// lose makes a call whose answer the backend keeps to itself, and returns its id.
func (s *scene) lose(hangUp, operation, input, key string) string {
	s.Helper()
	s.mu.Lock()
	s.hangUp = hangUp
	s.mu.Unlock()
	res, err := s.call(operation, input, key, "*")
	if err == nil || res.Status != plugin.Unknown {
		s.Fatalf("%s: %s %v", operation, res.Status, err)
	}
	if _, err := s.call(operation, input, key, "*"); plugin.CodeOf(err) != plugin.CodeOutcomeUnknown {
		s.Fatalf("again with its key: %v", err)
	}
	return res.CallID
}

// ask asks the operator how a call ended, as `mortise calls settle ID --ask`
// does, and returns the state that it is in then.
func (s *scene) ask(id string) store.CallState {
	s.Helper()
	if err := s.app.Kernel.Reconcile(s.Context(), "local", id); err != nil {
		s.Fatal(err)
	}
	row, err := s.app.Ledger.Call(s.Context(), "local", id)
	if err != nil {
		s.Fatal(err)
	}
	return row.State
}

// TestOutreachUnknownOutcomeIsFoundOut: the other side hangs up instead of
// answering, once, with the request carried out or not. Nothing is repeated
// before the operator has looked, and there is one mail, one email, in the end.
func TestOutreachUnknownOutcomeIsFoundOut(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	put, post := "PUT /funding_emails/demo-910", "POST /gmail/v1/users/me/messages/send"
	look, read := "GET /gmail/v1/users/me/messages", "GET /funding_emails/demo-910"
	for _, c := range []struct {
		hangUp, operation, dir, example string
		found                           store.CallState
		asked                           []string
	}{
		{"stored", "Gmail.Send", "gmail_send", "Gmail.Send.plain", store.CallSucceeded, []string{post, look}},
		{"unstored", "Gmail.Send", "gmail_send", "Gmail.Send.plain", store.CallQueued, []string{post, look, look, post}},
		{"stored", "Apply.EmailDraft", "apply_email_draft", "Apply.EmailDraft.one", store.CallSucceeded, []string{put, read}},
		{"unstored", "Apply.EmailDraft", "apply_email_draft", "Apply.EmailDraft.one", store.CallQueued, []string{put, read, put}},
	} {
		name := c.operation + " " + c.hangUp
		s.mu.Lock()
		s.requests, s.mails, s.emails = nil, nil, map[string][]byte{}
		s.mu.Unlock()
		input := s.example(c.dir, c.example)
		if c.operation == "Apply.EmailDraft" {
			input = strings.Replace(input, `"id"`, fmt.Sprintf(`"backend": "http://%s", "id"`, s.addr), 1)
		}
		id := s.lose(c.hangUp, c.operation, input, name)
		if state := s.ask(id); state != c.found {
			t.Errorf("%s: found out that it is %s", name, state)
		}
		if c.found == store.CallQueued {
			if _, err := s.app.Kernel.Await(t.Context(), "local", id); err != nil { // as `mortise calls wait` does
				t.Errorf("%s: %v", name, err)
			}
		}
		var data map[string]any
		if res := s.must(c.operation, input, name, &data); !res.Replayed || res.CallID != id || data["id"] == "" {
			t.Errorf("%s: its key answers with %+v", name, res)
		}
		if seen := s.seen(); !slices.Equal(seen, c.asked) || len(s.mails)+len(s.emails) != 1 {
			t.Errorf("%s: asked %v; %d mails and %d emails", name, seen, len(s.mails), len(s.emails))
		}
	}
}

// TestOutreachOutcomeIsRepeatedUnderItsKey: the system that takes outcomes knows
// a repetition by its key, so the host repeats what was never answered.
func TestOutreachOutcomeIsRepeatedUnderItsKey(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	s.hangUp = "stored"
	lost, err := s.call("ExternalSystem.WriteOutcome", s.example("write_outcome", "ExternalSystem.WriteOutcome.done"), "one", "*")
	if err != nil || lost.Status != plugin.InProgress {
		t.Fatalf("%s %v", lost.Status, err)
	}
	if res, err := s.app.Kernel.Await(t.Context(), "local", lost.CallID); err != nil || res.Status != plugin.Succeeded {
		t.Errorf("%s %v", res.Status, err)
	}
	if want := []string{"POST /outcomes", "POST /outcomes"}; !slices.Equal(s.seen(), want) || len(s.outcomes) != 1 || s.outcomes[""] != nil {
		t.Errorf("asked %v, and there is %s", s.seen(), s.outcomes)
	}
}

// TestOutreachPreviewsShowWhatWouldHappen: who is asked reads what would be
// sent or written, before anything is.
func TestOutreachPreviewsShowWhatWouldHappen(t *testing.T) {
	t.Parallel()
	s := openGoverned(t)
	for _, c := range []struct{ operation, dir, example, want string }{
		{"Gmail.Send", "gmail_send", "Gmail.Send.plain", `"I read your paper."`},
		{"Apply.EmailDraft", "apply_email_draft", "Apply.EmailDraft.one", `"subject":"Your work on radioactivity"`},
		{"ExternalSystem.WriteOutcome", "write_outcome", "ExternalSystem.WriteOutcome.done", `"reference":"chat:7f"`},
	} {
		res, err := s.call(c.operation, s.example(c.dir, c.example), "", "*")
		if err != nil || res.Approval == nil {
			t.Fatalf("%s: %s %v", c.operation, res.Status, err)
		}
		if !strings.Contains(compact(t, res.Approval.Preview), c.want) {
			t.Errorf("%s shows %s", c.operation, res.Approval.Preview)
		}
	}
	for _, request := range s.seen() {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("a preview asked %s", request)
		}
	}
}
