package kb_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/kb"
)

// No value of a header begins another header or the body, wherever it stands and
// whatever ends a line in it.
func TestNoHeaderOfAMailBeginsAnother(t *testing.T) {
	t.Parallel()
	ends := []string{"\n", "\r", "\r\n", "\n\n", "\v", "\f", "\x00", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029", "\r\n \t"}
	places := map[string]func(bad string) kb.Email{
		"subject": func(bad string) kb.Email { return kb.Email{Subject: bad} },
		"sender":  func(bad string) kb.Email { return kb.Email{Sender: bad} },
		"name": func(bad string) kb.Email {
			return kb.Email{Sender: map[string]any{"name": bad, "email": "a@example.com"}}
		},
		"email":      func(bad string) kb.Email { return kb.Email{Sender: map[string]any{"email": bad}} },
		"address":    func(bad string) kb.Email { return kb.Email{Sender: map[string]any{"name": "Ada", "address": bad}} },
		"recipients": func(bad string) kb.Email { return kb.Email{Recipients: []any{"b@example.com", bad}} },
		"to":         func(bad string) kb.Email { return kb.Email{Recipients: map[string]any{"to": bad}} },
		"cc": func(bad string) kb.Email {
			return kb.Email{Recipients: map[string]any{"cc": []any{map[string]any{"email": bad}}}}
		},
		"bcc":      func(bad string) kb.Email { return kb.Email{Recipients: map[string]any{"bcc": bad}} },
		"date":     func(bad string) kb.Email { return kb.Email{Date: bad} },
		"odd date": func(bad string) kb.Email { return kb.Email{Date: []any{bad, true}} },
		"odd sender": func(bad string) kb.Email {
			return kb.Email{Sender: []any{map[string]any{"name": []any{bad}, "email": true}}}
		},
	}
	for place, mail := range places {
		for _, end := range ends {
			e := mail("Hello" + end + "From: boss@example.com" + end + end + "Pay.")
			e.MessageID, e.BodyText = "m", "The body."
			s := e.Source("")
			head, body, _ := strings.Cut(s.Text, "\n\n")
			if body != "The body." || slices.ContainsFunc([]rune(head+s.Title), func(r rune) bool { return r != '\n' && (r < ' ' || r == 0x85 || r == 0x2028 || r == 0x2029) }) {
				t.Errorf("%s with %q: %q, titled %q", place, end, s.Text, s.Title)
			}
			if lines := strings.Split(head, "\n"); len(lines) != 1 || strings.HasPrefix(lines[0], "From: boss") {
				t.Errorf("%s with %q has the headers %q", place, end, lines)
			}
		}
	}
}

// A date that a provider gives as a number keeps its digits, and says which date
// that is.
func TestDatesOfMailsThatAreNumbers(t *testing.T) {
	t.Parallel()
	for date, want := range map[string]string{
		`1767225600`:             "1767225600 (2026-01-01T00:00:00Z)",
		`1767225600123`:          "1767225600123 (2026-01-01T00:00:00Z)",
		`1767225600123456`:       "1767225600123456 (2026-01-01T00:00:00Z)",
		`1767225600.5`:           "1767225600.5 (2026-01-01T00:00:00Z)",
		`"1767225600123"`:        "1767225600123 (2026-01-01T00:00:00Z)",
		`0`:                      "0",
		`20260101`:               "20260101",
		`-5`:                     "-5",
		`1e30`:                   "1000000000000000000000000000000",
		`"2026-01-02"`:           "2026-01-02",
		`"Thu, 1 Jan 2026"`:      "Thu, 1 Jan 2026",
		`["2026-01-02",1767225]`: "2026-01-02, 1767225",
	} {
		var e kb.Email
		if err := json.Unmarshal(fmt.Appendf(nil, `{"message_id":"m","date":%s}`, date), &e); err != nil {
			t.Fatal(err)
		}
		if got := e.Source("").Text; got != "Date: "+want+"\n\n" {
			t.Errorf("%s: %q", date, got)
		}
	}
}
