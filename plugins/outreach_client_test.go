package plugins_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheReceiverSpeaksAsGmailDoes has Google's own client library sign in, send, search,
// and read threads and history at the stand-in.
func TestTheReceiverSpeaksAsGmailDoes(t *testing.T) {
	t.Parallel()
	if os.Getenv("MORTISE_GMAIL_CLIENT") == "" {
		t.Skip("the client library is fetched from the registry of npm: MORTISE_GMAIL_CLIENT=1 does, and make test-long")
	}
	needs(t, "python3", "node", "npm")
	dir := t.TempDir()
	script, err := os.ReadFile("outreach/receiver/tests/client.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "client.mjs"), script, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "@googleapis/gmail@18.0.0")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := &story{T: t, root: t.TempDir()}
	receiver := s.startReceiver()
	run := exec.CommandContext(t.Context(), "node", "client.mjs", receiver.String())
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "the client is content") {
		t.Errorf("%v\n%s", err, out)
	}
}
