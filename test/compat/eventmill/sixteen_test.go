package eventmill

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testinput"
)

// TestTheSixteenKinds of published tools, one of each, in one session without a
// model and in one with: what each needs of the host it gets, unmodified.
func TestTheSixteenKinds(t *testing.T) {
	t.Parallel()
	h := newHost(t, testinput.Host(t))
	h.configure(t, "settings: {wall_logs: {condition_orange: true, workspace_dir: ws}}\n")
	h.must(t, nil, "plugins", "register", "--dev", "sixteen/plugins")
	dir := t.TempDir()
	log := filepath.Join(dir, "auth.log.1")
	if err := os.WriteFile(log, []byte("one root\ntwo\nT0855 T1059.001 T9999 root\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Date(2019, 3, 4, 5, 6, 7, 0, time.UTC)
	if err := os.Chtimes(log, old, old); err != nil {
		t.Fatal(err)
	}
	session := h.session(t)
	id := h.add(t, session, log).ID
	out := filepath.Join(dir, "case", "model.json")
	run := func(tool string, args ...string) (outcome, []byte) {
		t.Helper()
		printed := h.run(t, append([]string{"run", tool, "--session", session, "--json"}, args...)...)
		var got outcome
		if err := json.Unmarshal(printed, &got); err != nil {
			t.Fatalf("%s: %v: %s", tool, err, printed)
		}
		return got, printed
	}
	for _, c := range []struct {
		tool string
		args []string
		want string // the result as JSON, or the code of the failure
	}{
		{"case_investigator", []string{"--", "--file_path", "/srv/elsewhere/auth.log.1"}, `{"answer":"no model: counted only","lines":3}`},
		{"case_investigator", []string{"--", "--file_path", "/srv/elsewhere/none.log"}, "FILE_NOT_FOUND"},
		{"case_navigator", []string{"--", "--path", "auth.log.1"}, `{"meta":{"original_filename":"auth.log.1"},"name":"auth.log.1","year":2019}`},
		{"case_patterns", []string{"--", "--limit", "1", "--limit", "-5", "--words", "a, b", "--text", "7", "--use_llm"}, `{"asked":false,"limit":-5,"text":"7","words":["a","b"]}`},
		{"case_searcher", []string{"--", "--pattern", "root", "--artifact_id", id}, `{"hits":[1,3]}`},
		{"case_searcher", []string{"--", "--artifact_id", id}, "INPUT_VALIDATION_FAILED"},
		{"case_searcher", []string{"--", "--artifact_id", "art_00000000"}, "ARTIFACT_NOT_FOUND"},
		{"intel_reader", []string{"--", "--artifact_id", id}, `{"enterprise":null,"keys":["mitre_techniques"],"known":{"T0855":["Impair Process Control"],"T1059.001":["Execution"]},"path":true,"usage":null}`},
		{"wall_logs", []string{"--", "--path", "/var/log/fw.log"}, `{"calls":1,"orange":true,"place":"ws"}`},
		{"wall_logs", []string{"--", "--path", "/var/log/fw.log"}, `{"calls":2,"orange":true,"place":"ws"}`},
		{"capture_search", []string{"--", "--ip", "10.0.0.1"}, "INPUT_VALIDATION_FAILED"},
		{"capture_oracle", nil, "NO_CAPTURE"},
		{"capture_loader", nil, `{"packets":2}`},
		{"capture_search", []string{"--", "--ip", "192.0.2"}, `{"class":"CaptureLoader","hits":["10.0.0.1 192.0.2.7"]}`},
		{"capture_flows", nil, `{"flows":2}`},
		{"capture_hunter", nil, `{"context":false,"found":2}`},
		{"capture_oracle", nil, "LLM_UNAVAILABLE"},
		{"path_drawer", nil, `{"visualization":"graph"}`},
		{"capture_reporter", nil, `{"notes":2}`},
		{"risk_scorer", []string{"--", "--payload", "text"}, `{"llm":false,"score":4}`},
		{"risk_scorer", []string{"--", "--payload", "text", "--broken"}, "LLM_UNAVAILABLE"},
		{"model_writer", []string{"--", "--title", "t", "--output_path", out}, `{"n":1}`},
		{"report_digest", nil, `{"summary":"# digest"}`},
	} {
		got, printed := run(c.tool, c.args...)
		result, err := json.Marshal(got.Result)
		if err != nil {
			t.Fatal(err)
		}
		if said := string(result); got.OK && said != c.want || !got.OK && (got.ErrorCode == nil || *got.ErrorCode != c.want) {
			t.Errorf("%s %q: want %s\n%.1500s", c.tool, c.args, c.want, printed)
		}
		switch {
		case c.tool == "capture_flows" && got.Summary != "  two flows \n", c.tool == "report_digest" && got.Summary != strings.Repeat("d", 3000):
			t.Errorf("%s: the summary is %.60q", c.tool, got.Summary)
		case c.tool == "path_drawer" && len(got.Artifacts) != 3, c.tool == "report_digest" && len(got.Artifacts) != 1, c.tool == "model_writer" && len(got.Artifacts) != 2:
			t.Errorf("%s: artifacts %v", c.tool, got.Artifacts)
		case c.want == "LLM_UNAVAILABLE" && c.tool == "capture_oracle" && *got.Message != "  a model is\nneeded: connect one  ":
			t.Errorf("%s: the message is %q", c.tool, *got.Message)
		}
	}
	if raw, err := os.ReadFile(out); err != nil || string(raw) != `{"model": "t", "n": 1}` {
		t.Errorf("exported: %s, %v", raw, err)
	}
	// What is not typed at the command line is written nowhere.
	other := filepath.Join(dir, "other.json")
	given := filepath.Join(dir, "input.json")
	if err := os.WriteFile(given, []byte(`{"output_path": "`+other+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, printed := run("model_writer", "--input", "@"+given); !got.OK || len(got.Artifacts) != 2 {
		t.Errorf("an export by a file: %s", printed)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("a path that came in a file was written to")
	}

	h.models(t, "")
	got, printed := run("intel_reader", "--", "--artifact_id", id)
	if usage, _ := got.Result["usage"].(m); !got.OK || usage["prompt_tokens"] != 10.0 || usage["completion_tokens"] != 5.0 || usage["total_tokens"] != 15.0 || len(usage) != 3 {
		t.Errorf("with a model: %.1500s", printed)
	}
}
