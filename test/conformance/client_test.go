package conformance

import (
	"os"
	"path/filepath"
	"testing"
)

// A program that speaks the protocol as a client passes what the suite requires of clients.
// MORTISE_CONFORMANCE_CLIENT names it, with its arguments; the suite starts it once for each
// scenario, with the address of a server as its last argument. The file
// expected-client-REVISION.yml has what is excepted, where there is one.
func TestClientRequirements(t *testing.T) {
	command := os.Getenv("MORTISE_CONFORMANCE_CLIENT")
	if command == "" {
		t.Skip("MORTISE_CONFORMANCE_CLIENT names no client: the host mounts no servers of the protocol yet")
	}
	for _, r := range revisions {
		t.Run(r.name, func(t *testing.T) {
			args := []string{"client", "--command", command, "--requirements", r.name, "-o", t.TempDir()}
			if file := "expected-client-" + r.name + ".yml"; exists(file) {
				args = append(args, "--expected-failures", file)
			}
			text, err := suite(t.Context(), t, args...).CombinedOutput()
			t.Logf("%s", text)
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func exists(file string) bool {
	_, err := os.Stat(filepath.Clean(file))
	return err == nil
}
