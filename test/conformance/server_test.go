package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// revisions are those that the suite has requirements for, with how many scenarios of servers
// each has, and how many of them are excepted.
var revisions = []struct {
	name                 string
	required, exceptions int
}{{"2026-07-28", 37, 5}, {"2025-11-25", 30, 8}}

// The official suite passes against a host that serves, for each revision that it has a set of
// requirements for, but for what the files of expected failures name with a reason. With
// MORTISE_CONFORMANCE_ARGS (as "--scenario caching --spec-version 2026-07-28 --verbose") it is
// run once, with those arguments in place of a set.
func TestServerRequirements(t *testing.T) {
	if args := strings.Fields(os.Getenv("MORTISE_CONFORMANCE_ARGS")); len(args) > 0 {
		h := serve(t)
		text, err := suite(t.Context(), t, append([]string{"server", "--url", h.signedIn()}, args...)...).CombinedOutput()
		t.Logf("%s", text)
		if err != nil {
			t.Error(err)
		}
		return
	}
	for _, r := range revisions {
		t.Run(r.name, func(t *testing.T) {
			out := t.TempDir()
			cmd := suite(t.Context(), t, "server", "--url", serve(t).signedIn(), "--requirements", r.name, "--expected-failures", "expected-"+r.name+".yml", "-o", out)
			text, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, text)
			}
			required := requirements(t, r.name, "server")
			passed, failed := results(t, out, required)
			t.Logf("%s: of %d scenarios for servers %d passed and %d are excepted: %s", r.name, len(required), len(passed), len(failed), strings.Join(failed, ", "))
			if len(required) != r.required || len(passed)+len(failed) != r.required || len(failed) != r.exceptions {
				t.Errorf("of %d scenarios %d passed and %d did not; want %d, of which %d are excepted", len(required), len(passed), len(failed), r.required, r.exceptions)
			}
		})
	}
}

// requirements are the scenarios for servers, or clients, that the suite's own list has for a revision.
func requirements(t *testing.T, revision, of string) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("node_modules", "@modelcontextprotocol", "conformance", "requirements", revision+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all, in := map[string]bool{}, false
	for _, line := range strings.Split(string(raw), "\n") {
		if name, is := strings.CutPrefix(line, "  - "); is && in {
			all[strings.TrimSpace(name)] = true
		} else if line != "" && line[0] != ' ' && line[0] != '#' {
			in = line == of+":"
		}
	}
	return all
}

// resultName is the name of the directory of the results of a scenario.
var resultName = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT`)

// results are the scenarios of a set that passed and that did not: with a check that failed, or
// that warned.
func results(t *testing.T, dir string, of map[string]bool) (passed, failed []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := resultName.FindStringSubmatch(e.Name())
		if name == nil || !of[name[1]] {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name(), "checks.json"))
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct{ Status string }
		if err := json.Unmarshal(raw, &checks); err != nil {
			t.Fatal(err)
		}
		good := len(checks) > 0
		for _, c := range checks {
			good = good && c.Status != "FAILURE" && c.Status != "WARNING"
		}
		if good {
			passed = append(passed, name[1])
		} else {
			failed = append(failed, name[1])
		}
	}
	return passed, failed
}
