package eventmill

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testinput"
)

// teller says all that a tool can say, by every way that there is.
const teller = `
import logging
from framework.plugins.protocol import ToolResult, ValidationResult

class Teller:
    def metadata(self): return {"tool_name": "teller", "version": "1.0.0"}
    def validate_inputs(self, payload): return ValidationResult(ok=True)
    def execute(self, payload, context):
        for logger in (context.logger, logging.getLogger("eventmill.plugins.teller"), logging.getLogger("a.library")):
            logger.debug("told as debug")
            logger.info("told as info")
            logger.warning("told as a warning")
            logger.error("told as an error")
        print("printed")
        if payload.get("raises"): raise ValueError("out of range")
        read = lambda path: open(path).read()
        paths = [payload[name] for name in ("path", "file_path", "log_file") if name in payload] + list(payload.get("file_paths") or [])
        return ToolResult(ok=True, result={"read": [read(path) for path in paths], "payload": {k: v for k, v in payload.items() if k == "output_path"}})
    def summarize_for_llm(self, result): return "  " + "s" * 2500 + "\n"
`

// tellerTree writes a tree with that tool and two neighbours that cannot be read.
func tellerTree(t *testing.T) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "plugins")
	for path, text := range map[string]string{
		"teller/tool.py":       teller,
		"teller/manifest.json": `{"tool_name":"teller","version":"1.0.0","pillar":"log_analysis","display_name":"Teller","description_short":"Tells.","entry_point":"tool.py","class_name":"Teller"}`,
		"half/manifest.json":   `{"tool_name":`,
		"listed/manifest.json": `[]`,
	} {
		path = filepath.Join(tree, "log_analysis", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// registerTeller registers the tree, whose neighbours are refused.
func (h *host) registerTeller(t *testing.T) {
	t.Helper()
	out, errs, err := h.command(t, "plugins", "register", "--dev", tellerTree(t))
	if statusOf(err) != exitInput || !strings.Contains(string(out), "registered teller") || !strings.Contains(string(errs), "half") || !strings.Contains(string(errs), "listed") {
		t.Fatalf("registering: %v\n%s%s", err, out, errs)
	}
}

func TestTheConsoleOfATool(t *testing.T) {
	t.Parallel()
	h := newHost(t, testinput.Host(t))
	h.registerTeller(t)
	session := h.session(t)
	for _, c := range []struct {
		args         []string
		info, faults bool
	}{
		{[]string{"run", "teller"}, false, false},
		{[]string{"run", "teller"}, false, false}, // a linked tree is read again for every process
		{[]string{"run", "teller", "--session", session}, false, false},
		{[]string{"run", "teller", "--session", session, "--json"}, false, false},
		{[]string{"run", "teller", "--session", session, "--debug"}, true, false},
		{[]string{"run", "teller", "--session", session, "--", "--raises"}, false, true},
	} {
		_, errs, _ := h.command(t, c.args...)
		said := string(errs)
		for text, times := range map[string]int{
			"told as info": map[bool]int{true: 2}[c.info], "told as a warning": 3, "told as an error": 3, "printed": 1, "is passed over": 0,
			"error   ValueError: out of range": map[bool]int{true: 1}[c.faults], "error   Traceback": map[bool]int{true: 1}[c.faults],
		} {
			if n := strings.Count(said, text); n != times {
				t.Errorf("%q: %q stands there %d times, want %d\n%s", c.args, text, n, times, said)
			}
		}
	}
}

// TestASummaryIsOneAndTheSame on a terminal and in JSON, with a session and without.
func TestASummaryIsOneAndTheSame(t *testing.T) {
	t.Parallel()
	h := newHost(t, testinput.Host(t))
	h.registerTeller(t)
	want := "  " + strings.Repeat("s", 2500) + "\n"
	for _, args := range [][]string{{"run", "teller"}, {"run", "teller", "--session", h.session(t)}} {
		shown, _, err := h.command(t, args...)
		if err != nil || !strings.HasPrefix(string(shown), want) {
			t.Errorf("%q: %v: %.80q", args, err, shown)
		}
		printed, _, err := h.command(t, append(args, "--json")...)
		var answer struct {
			Summary string `json:"summary"`
		}
		if err != nil || json.Unmarshal(printed, &answer) != nil || answer.Summary != want {
			t.Errorf("%q --json: %v: %.80q", args, err, answer.Summary)
		}
	}
}

// TestFilesThatAreTyped are read, however they are typed; those of an input that
// a program may have written are not, and the host's own never.
func TestFilesThatAreTyped(t *testing.T) {
	t.Parallel()
	h := newHost(t, testinput.Host(t))
	h.registerTeller(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Symlink(filepath.Join(h.home, "ledger.key"), filepath.Join(dir, "link.log")); err != nil {
		t.Fatal(err)
	}
	session := h.session(t)
	for i, c := range []struct {
		args []string // ONE, TWO, DIR, HOME of the host, and GIVEN, which names ONE
		want string   // "" where the tool finds no file
	}{
		{[]string{"--", "--path", "ONE"}, `["one"]`},
		{[]string{"--", "--path=ONE"}, `["one"]`},
		{[]string{"--", `{"path": "ONE"}`}, `["one"]`},
		{[]string{"--", `{"path": "ONE"}`, "--log_file", "TWO"}, `["one","two"]`},
		{[]string{"--input", `{"file_path": "ONE"}`}, ""}, // which a program may have written
		{[]string{"--", "--path", "HOME/ledger.key"}, ""},
		{[]string{"--", "--path", "DIR/link.log"}, ""},
		{[]string{"--set", "file_path=ONE"}, `["one"]`},
		{[]string{"--", `{"file_paths": ["ONE", "TWO"]}`}, `["one","two"]`},
		{[]string{"--input", "@GIVEN", "--", "--path", "TWO"}, `["two"]`},
		{[]string{"--input", "@GIVEN"}, ""},
		{[]string{"--", "--path", "DIR"}, ""},
		{[]string{"--", "--path", "DIR/none.log"}, ""},
	} {
		// Other files each time: what was registered once is found by its name.
		one, two := write(fmt.Sprintf("one-%d.log", i), "one"), write(fmt.Sprintf("two-%d.log", i), "two")
		places := strings.NewReplacer("ONE", one, "TWO", two, "DIR", dir, "HOME", h.home, "GIVEN", write("input.json", `{"path": "`+one+`"}`))
		args := []string{"run", "teller", "--session", session, "--json"}
		for _, arg := range c.args {
			args = append(args, places.Replace(arg))
		}
		printed, errs, _ := h.command(t, args...)
		got := outcomeOf(t, printed, nil)
		result, _ := got.Result.(m)
		read, err := json.Marshal(result["read"])
		if err != nil || got.OK != (c.want != "") || got.OK && string(read) != c.want {
			t.Errorf("%q: %v, %s, want %s\n%.600s", c.args, got.OK, read, c.want, printed)
		}
		if said := dir + " is artifact art_"; c.args[len(c.args)-1] == "DIR" && !strings.Contains(string(errs), said) {
			t.Errorf("nothing says %q: %s", said, errs) // this tool opens it as a file
		}
	}

	name := "typed-by-name.log"
	if err := os.WriteFile(name, []byte("here"), 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(name)
	if got, printed := h.toldOf(t, session, name); got != `["here"]` {
		t.Errorf("by its name alone: %s\n%.600s", got, printed)
	}
	session = h.session(t)
	h.add(t, session, write(name, "there"))
	if got, printed := h.toldOf(t, session, name); got != `["there"]` {
		t.Errorf("the session's: %s\n%.600s", got, printed)
	}

	// A path of an earlier answer is that artifact, and no other file.
	listed := h.run(t, "run", "teller", "--session", session, "--json")
	var answer struct {
		Artifacts []struct {
			Path string `json:"path"`
		} `json:"artifacts"`
	}
	if err := json.Unmarshal(listed, &answer); err != nil || len(answer.Artifacts) != 1 {
		t.Fatalf("%v: %.600s", err, listed)
	}
	before := len(h.artifacts(t, session))
	if got, printed := h.toldOf(t, session, answer.Artifacts[0].Path); !strings.Contains(got, "read") {
		t.Errorf("%s\n%.600s", got, printed)
	}
	if n := len(h.artifacts(t, session)); n != before+1 { // its own result, and no copy
		t.Errorf("%d artifacts after %d", n, before)
	}
}

// toldOf has the tool read one file and returns what it says of it.
func (h *host) toldOf(t *testing.T, session, path string) (string, []byte) {
	t.Helper()
	printed := h.run(t, "run", "teller", "--session", session, "--json", "--", "--path", path)
	result, _ := outcomeOf(t, printed, nil).Result.(m)
	read, err := json.Marshal(result["read"])
	if err != nil {
		t.Fatal(err)
	}
	return string(read), printed
}
