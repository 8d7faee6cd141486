package near_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/near"
)

func TestTheNamesThatWereProbablyMeantAreFound(t *testing.T) {
	t.Parallel()
	known := strings.Fields("priority failureMode before after deadlineMs accountants Email.ApplyDraft Email.GenerateDraft mail/send")
	for asked, want := range map[string]string{
		"prioritiy": "priority", "failure_mode": "failureMode", "deadline": "deadlineMs", "deadline-ms": "deadlineMs", "acountants": "accountants", "befroe": "before",
		"email.applydraft": "Email.ApplyDraft", "mail/sned": "mail/send", "x": "", "once": "", "": "", "somethingelse": "",
	} {
		if got := strings.Join(near.Names(asked, known, 1), " "); got != want {
			t.Errorf("%q: %q, want %q", asked, got, want)
		}
	}
	if got := near.Hint("Email.Draft", []string{"Email.Drafts", "Email.Draft2"}); got != "; did you mean Email.Draft2 or Email.Drafts?" {
		t.Errorf("%q", got)
	}
}
