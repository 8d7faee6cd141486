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

func TestNamesThatAreEasilyTakenForEachOther(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		alike bool
	}{
		{"github", "git-hub", true}, {"github", "GitHub", true}, {"github", "g1thub", true}, {"github", "githubb", true}, {"github", "gihtub", true}, {"microsoft", "micros0ft", true},
		{"github", "gitlab", false}, {"db1", "db2", false}, {"warehouse1", "warehouse2", false}, {"mail", "main", false}, {"linear", "github", false},
	} {
		if near.Alike(c.a, c.b) != c.alike || near.Alike(c.b, c.a) != c.alike {
			t.Errorf("Alike(%q, %q) is not %t", c.a, c.b, c.alike)
		}
	}
}
