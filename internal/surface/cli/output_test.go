package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/secret"
)

// full is a disk that takes nothing more.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestWhatIsNotWrittenIsAFailure, of every command that prints.
func TestWhatIsNotWrittenIsAFailure(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, args := range [][]string{{"version"}, {"plugins", "list"}, {"calls", "list", "--json"}, {"help"}} {
		var errs bytes.Buffer
		if status := Run(secret.NewScrubber(), append([]string{"--home", home}, args...), strings.NewReader(""), full{}, &errs); status != exitInternal || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%s ends with %d: %s", args, status, &errs)
		}
	}
}

// TestAKeyThatIsGivenIsNotEmpty holds for each command that takes one.
func TestAKeyThatIsGivenIsNotEmpty(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", "a/b", "--key", ""}, {"plans", "submit", "a/b", "--key="}} {
		var errs bytes.Buffer
		if status := Run(secret.NewScrubber(), append([]string{"--home", t.TempDir()}, args...), strings.NewReader(""), &bytes.Buffer{}, &errs); status != exitUsage || !strings.Contains(errs.String(), "1 to 255 printable") {
			t.Errorf("%s ends with %d: %s", args, status, &errs)
		}
	}
}
