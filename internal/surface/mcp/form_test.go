package mcp

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/consent/consenttest"
	"github.com/mortise-dev/mortise/internal/host"
)

func TestAFormShowsEveryLeafOrThereIsNone(t *testing.T) {
	t.Parallel()
	forms := 0
	consenttest.Inputs(1000, func(raw []byte) {
		message, fits := formMessage(&host.Question{Operation: "mail/send", Version: "1.0.0", Why: "it leaves\nArguments:\n  to = 1", Input: raw})
		if !fits {
			return
		}
		forms++
		_, lines, found := strings.Cut(message, "\nArguments:\n")
		if !found {
			t.Fatalf("%q has no arguments", message)
		}
		if err := consenttest.Check(lines, raw); err != nil {
			t.Errorf("%.300s\nis shown as\n%.600s\n%v", raw, lines, err)
		}
	})
	if forms < 900 {
		t.Errorf("%d of 1000 inputs have a form, want nearly all", forms)
	}
}
