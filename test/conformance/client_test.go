package conformance

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// clientRevisions are those that the suite has requirements of clients for, with how many
// scenarios each has, and how many of them are excepted in part or whole.
var clientRevisions = []struct {
	name                 string
	required, exceptions int
	short                []string // what runs of them in a short run
}{
	{"2026-07-28", 32, 2, []string{"tools_call", "http-invalid-tool-headers", "auth/scope-step-up"}},
	{"2025-11-25", 18, 1, []string{"initialize", "sse-retry"}},
}

// The host that mounts a server passes what the official suite requires of clients, but for what
// expected-client-REVISION.yml names with a reason. The suite starts this test binary as the
// client, once for each scenario; MORTISE_CONFORMANCE_CLIENT names another one, with its
// arguments. With MORTISE_CONFORMANCE_CLIENT_ARGS (as "--scenario sse-retry --spec-version
// 2025-11-25 --verbose") it is run once, with those arguments in place of a set.
func TestClientRequirements(t *testing.T) {
	command := os.Getenv("MORTISE_CONFORMANCE_CLIENT")
	if command == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		command = self + " client"
	}
	if args := strings.Fields(os.Getenv("MORTISE_CONFORMANCE_CLIENT_ARGS")); len(args) > 0 {
		text, err := suite(t.Context(), t, append([]string{"client", "--command", command, "-o", t.TempDir()}, args...)...).CombinedOutput()
		t.Logf("%s", text)
		if err != nil {
			t.Error(err)
		}
		return
	}
	for _, r := range clientRevisions {
		t.Run(r.name, func(t *testing.T) {
			if testing.Short() {
				for _, scenario := range r.short {
					text, err := suite(t.Context(), t, "client", "--command", command, "--scenario", scenario, "--spec-version", r.name, "-o", t.TempDir()).CombinedOutput()
					if err != nil {
						t.Errorf("%s: %v\n%s", scenario, err, text)
					}
				}
				t.Skipf("a short run has %s alone", strings.Join(r.short, ", "))
			}
			text, err := suite(t.Context(), t, "client", "--command", command, "--requirements", r.name, "--expected-failures", "expected-client-"+r.name+".yml", "-o", t.TempDir()).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, text)
			}
			required, excepted := requirements(t, r.name, "client"), excepted(t, "expected-client-"+r.name+".yml")
			t.Logf("%s: of %d scenarios for clients %d are excepted: %s", r.name, len(required), len(excepted), strings.Join(excepted, ", "))
			if len(required) != r.required || len(excepted) != r.exceptions {
				t.Errorf("of %d scenarios %d are excepted; want %d of %d", len(required), len(excepted), r.exceptions, r.required)
			}
		})
	}
}

// exception is a line of a file of expected failures: a scenario, and perhaps one check of it.
var exception = regexp.MustCompile(`(?m)^  - ([^:\s]+)(:\S+)?$`)

// excepted returns the scenarios that a file of expected failures names.
func excepted(t *testing.T, file string) (scenarios []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range exception.FindAllStringSubmatch(string(text), -1) {
		scenarios = append(scenarios, found[1])
	}
	slices.Sort(scenarios)
	return slices.Compact(scenarios)
}
