package eventmill

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testinput"
)

// porter reads what it finds at any path of its payload, writes where it is told
// to, and registers what is not finished.
const porter = `
import os
from framework.plugins.protocol import ToolResult, ValidationResult

def texts(value):
    if isinstance(value, str):
        return [value]
    return [text for one in (value.values() if isinstance(value, dict) else value if isinstance(value, list) else []) for text in texts(one)]

class Porter:
    def metadata(self): return {"tool_name": "porter", "version": "1.0.0"}
    def validate_inputs(self, payload): return ValidationResult(ok=True)
    def execute(self, payload, context):
        found = []
        for path in texts({k: v for k, v in payload.items() if k not in ("output_path", "report_path", "dest_dir")}):
            if os.path.isfile(path):
                with open(path) as file: found.append(file.read())
            for at, _, names in os.walk(path):
                for name in sorted(names):
                    inside = os.path.join(at, name)
                    found.append(os.path.relpath(inside, path) + " " + open(inside).read() + " " + str(int(os.stat(inside).st_mtime)))
        for name in ("output_path", "report_path"):
            if name in payload and payload.get("how") != "nothing":
                if payload.get("how") == "folder":
                    os.makedirs(payload[name])
                    open(os.path.join(payload[name], "inside.txt"), "w").write("inside")
                else:
                    os.makedirs(os.path.dirname(payload[name]) or ".", exist_ok=True)
                    with open(payload[name], {"append": "a", "new": "x"}.get(payload.get("how"), "w")) as file: file.write("made")
        if "dest_dir" in payload:
            os.makedirs(payload["dest_dir"], exist_ok=True)
            for name in ("a.txt", "b.txt"): open(os.path.join(payload["dest_dir"], name), "w").write(name)
        if "late" in payload:
            refs = []
            for i, when in enumerate(("before", "never", "twice", "same", "gone")):
                if when in ("twice", "same", "gone"): open(f"{i}.txt", "w").write("first")
                refs.append(context.register_artifact("text", f"{i}.txt", "porter", {}))
                if when in ("before", "twice"): open(f"{i}.txt", "w").write("the end")
                if when == "gone": os.unlink(f"{i}.txt")
            found = [ref.artifact_id for ref in refs]
        if payload.get("fails"): return ToolResult(ok=False, error_code="PORTER_FAILED", message="no")
        return ToolResult(ok=True, result={"found": found})
    def summarize_for_llm(self, result): return "done"
`

const porterManifest = `{"tool_name":"porter","version":"1.0.0","pillar":"log_analysis","display_name":"Porter","description_short":"Carries.","entry_point":"tool.py","class_name":"Porter"}`

// A desk is an analyst's working directory.
type desk struct {
	*host
	dir, session string
}

func newDesk(t *testing.T) desk {
	h := newHost(t, testinput.Host(t))
	tree := filepath.Join(t.TempDir(), "plugins")
	for name, text := range map[string]string{"tool.py": porter, "manifest.json": porterManifest} {
		put(t, filepath.Join(tree, "log_analysis", "porter", name), text)
	}
	h.must(t, nil, "plugins", "register", "--dev", tree)
	return desk{h, t.TempDir(), h.session(t)}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// at runs the tool from the working directory, under an ordinary umask.
func (d desk) at(t *testing.T, args ...string) (got answered, found, errs string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `umask 027; exec "$0" "$@"`, d.binary, "run", "porter", "--session", d.session, "--json"}, args...)...)
	cmd.Dir, cmd.Env = d.dir, append(os.Environ(), "MORTISE_HOME="+d.home)
	var told strings.Builder
	cmd.Stderr = &told
	printed, _ := cmd.Output()
	got = outcomeOf(t, printed, nil)
	result, _ := got.Result.(m)
	read, err := json.Marshal(result["found"])
	if err != nil {
		t.Fatal(err)
	}
	return got, string(read), told.String() + string(printed)
}

// TestAToolThatWritesFindsWhatIsThere where a person named the file: it appends
// to it or refuses to replace it, and a call that fails leaves the file alone.
func TestAToolThatWritesFindsWhatIsThere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	absolute := filepath.Join(d.dir, "ex", "abs.txt")
	for _, c := range []struct {
		name, had string // no file where it is "-"
		args      []string
		ok        bool
		want      string
	}{
		{"relative", "keepme\n", []string{"--", "--output_path", "ex/NAME", "--how", "append"}, true, "keepme\nmade"},
		{"--set", "keepme\n", []string{"--set", "output_path=ex/NAME", "--set", "how=append"}, true, "keepme\nmade"},
		{"object", "keepme\n", []string{"--", `{"output_path":"ex/NAME","how":"append"}`}, true, "keepme\nmade"},
		{"absolute", "keepme\n", []string{"--", "--output_path", d.dir + "/ex/NAME", "--how", "append"}, true, "keepme\nmade"},
		{"replaced", "long enough\n", []string{"--", "--output_path", "ex/NAME"}, true, "made"},
		{"same length", "four", []string{"--", "--output_path", "ex/NAME"}, true, "made"},
		{"exclusive", "keepme\n", []string{"--", "--output_path", "ex/NAME", "--how", "new"}, false, "keepme\n"},
		{"exclusive and empty", "", []string{"--", "--output_path", "ex/NAME", "--how", "new"}, false, ""},
		{"failed", "keepme\n", []string{"--", "--output_path", "ex/NAME", "--how", "append", "--fails"}, false, "keepme\n"},
		{"untouched", "keepme\n", []string{"--", "--output_path", "ex/NAME", "--how", "nothing"}, true, "keepme\n"},
		{"fresh", "-", []string{"--", "--output_path", "ex/NAME", "--how", "append"}, true, "made"},
	} {
		file := strings.ReplaceAll(c.name, " ", "-") + ".txt"
		path := filepath.Join(d.dir, "ex", file)
		if c.had != "-" {
			put(t, path, c.had)
		}
		var args []string
		for _, arg := range c.args {
			args = append(args, strings.ReplaceAll(arg, "NAME", file))
		}
		got, _, told := d.at(t, args...)
		raw, err := os.ReadFile(path)
		if got.OK != c.ok || err != nil || string(raw) != c.want {
			t.Errorf("%s: ok %v, %q, %v, want %v, %q\n%.800s", c.name, got.OK, raw, err, c.ok, c.want, told)
		}
		mode := map[bool]os.FileMode{true: 0o640, false: 0o600}[c.had == "-"] // a new file has the umask's, another its own
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want mode %v", c.name, info.Mode(), err, mode)
		}
	}
	// What an earlier call of the session left in the plugin's working directory
	// is not what is there for the person.
	if err := os.Remove(filepath.Join(d.dir, "ex", "fresh.txt")); err != nil {
		t.Fatal(err)
	}
	d.at(t, "--", "--output_path", "ex/fresh.txt", "--how", "append")
	if raw, err := os.ReadFile(filepath.Join(d.dir, "ex", "fresh.txt")); err != nil || string(raw) != "made" {
		t.Errorf("after it was deleted: %q, %v", raw, err)
	}
	// A link leads to the file.
	put(t, absolute, "keepme\n")
	if err := os.Symlink(absolute, filepath.Join(d.dir, "link.txt")); err != nil {
		t.Fatal(err)
	}
	_, _, told := d.at(t, "--", "--output_path", "link.txt", "--how", "append")
	if raw, err := os.ReadFile(absolute); err != nil || string(raw) != "keepme\nmade" {
		t.Errorf("through a link: %q, %v\n%.800s", raw, err, told)
	}
}

// TestADirectoryIsLoadedAsOne: typed where a file may be, in whatever form, or
// added before, a tool lists the files in it by their names and times. Links are
// left out, and so is a directory of more files than are added at once.
func TestADirectoryIsLoadedAsOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, text := range map[string]string{"a.log": "one", "sub/b.log": "two"} {
		path := filepath.Join(d.dir, "logs", name)
		put(t, path, text)
		if err := os.Chtimes(path, time.Unix(1_500_000_000, 0), time.Unix(1_500_000_000, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(d.dir, "logs", "link")); err != nil {
		t.Fatal(err)
	}
	const want = `["a.log one 1500000000","sub/b.log two 1500000000"]`
	for _, args := range [][]string{
		{"--", "--path", "logs"}, {"--", `{"log_files": ["logs/"]}`}, {"--set", "path=./logs"}, {"--", `{"pair": {"left_path": "logs/"}}`}, {"--", "--file", filepath.Join(d.dir, "logs")},
	} {
		if got, found, told := d.at(t, args...); !got.OK || found != want || !strings.Contains(told, "1 entries of") {
			t.Errorf("%q: %s\n%.800s", args, found, told)
		}
	}
	var added struct {
		Artifacts []struct{ ID, Type, Name string } `json:"artifacts"`
	}
	d.must(t, &added, "artifacts", "add", filepath.Join(d.dir, "logs"), "--session", d.session, "--json")
	if one := added.Artifacts[0]; one.Type != "text" || one.Name != "logs" {
		t.Errorf("%+v", added)
	}
	if _, found, told := d.at(t, "--input", fmt.Sprintf(`{"artifact_id":%q}`, added.Artifacts[0].ID)); !strings.Contains(found, want[1:len(want)-1]) {
		t.Errorf("by its id: %s\n%.800s", found, told)
	}
	for i := range 1001 {
		put(t, filepath.Join(d.dir, "many", fmt.Sprint(i)), "x")
	}
	if got, found, told := d.at(t, "--", "--path", "many"); !got.OK || found != "[]" || !strings.Contains(told, "over 1000 files") {
		t.Errorf("many: %s\n%.800s", found, told)
	}
	if _, errs, err := d.command(t, "artifacts", "add", filepath.Join(d.dir, "many"), "--session", d.session); statusOf(err) != exitInput || !strings.Contains(string(errs), "over 1000 files") {
		t.Errorf("many, added: %v: %s", err, errs)
	}
}

// TestWhatIsWrittenElsewhereIsToldOf: by an argument that is no output
// by its name, a directory, a call that is not waited for.
func TestWhatIsWrittenElsewhereIsToldOf(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, c := range []struct {
		args []string
		told []string
	}{
		{[]string{"--", "--report_path", "out/report.md"}, []string{"report_path", "out/report.md", "mortise artifacts get art_"}},
		{[]string{"--", "--dest_dir", "out/two"}, []string{"dest_dir", "a directory", "a.txt", "b.txt"}},
		{[]string{"--", "--output_path", "out/folder", "--how", "folder"}, []string{"output_path", "a directory", "inside.txt"}},
		{[]string{"--input", `{"report_path":"given.md"}`}, []string{"given.md"}}, // which a program may have written
		{[]string{"--no-wait", "--", "--output_path", "later.txt"}, []string{"later.txt", "'mortise artifacts get"}},
	} {
		got, _, told := d.at(t, c.args...)
		if !got.OK && c.args[0] != "--no-wait" {
			t.Errorf("%q: %.800s", c.args, told)
		}
		for _, text := range c.told {
			if !strings.Contains(told, text) {
				t.Errorf("%q: nothing of %q in\n%.1500s", c.args, text, told)
			}
		}
	}
	for _, name := range []string{"given.md", "out", "later.txt"} {
		if _, err := os.Stat(filepath.Join(d.dir, name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	// A file of that name that is there is read, and never replaced.
	put(t, filepath.Join(d.dir, "mine.md"), "mine")
	if got, _, told := d.at(t, "--", "--report_path", "mine.md"); got.OK {
		t.Errorf("a file to read was written: %.800s", told)
	}
	if raw, _ := os.ReadFile(filepath.Join(d.dir, "mine.md")); string(raw) != "mine" {
		t.Errorf("it is %q now", raw)
	}
}

// TestFilesAreFoundWhereverTheyAreTyped in an input: in lists, in objects, in
// lists of objects, by every way of typing.
func TestFilesAreFoundWhereverTheyAreTyped(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	names := []string{"events.json", "fw.log", "data.csv", "report.html"}
	for _, name := range names {
		put(t, filepath.Join(d.dir, name), name)
	}
	for i, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--", "--files", "events.json"}, `["events.json"]`},
		{[]string{"--", "--files", `["events.json","fw.log"]`}, `[]`}, // text: no schema says that it is a list
		{[]string{"--", `{"files":["events.json","fw.log"]}`}, `["events.json","fw.log"]`},
		{[]string{"--", `{"paths":["events.json"]}`}, `["events.json"]`},
		{[]string{"--", `{"pair":{"left_path":"fw.log"}}`}, `["fw.log"]`},
		{[]string{"--", `{"items":[{"file":"data.csv"},{"file":"fw.log"}]}`}, `["data.csv","fw.log"]`},
		{[]string{"--", `{"a":{"b":[{"c":{"log_files":["report.html"]}}]}}`}, `["report.html"]`},
		{[]string{"--set", "pair.left_path=fw.log"}, `["fw.log"]`},
		{[]string{"--set", `log_files=["report.html"]`}, `["report.html"]`},
		{[]string{"--set", `pair={"left_path":"fw.log"}`}, `["fw.log"]`},
		{[]string{"--", `{"title":"fw.log","notes":["data.csv"]}`}, `[]`}, // which say of themselves that they are text
		{[]string{"--input", `{"files":["events.json"],"pair":{"left_path":"fw.log"}}`}, `[]`},
		{[]string{"--input", `{"pair":{"left_path":"fw.log"}}`, "--set", "pair.right_path=data.csv"}, `["data.csv"]`},
	} {
		// Other files each time: what was registered once is found by its name.
		from := d.dir
		d.dir = t.TempDir()
		var args []string
		for _, arg := range c.args {
			for _, name := range names {
				arg = strings.ReplaceAll(arg, name, fmt.Sprint(i, name))
			}
			args = append(args, arg)
		}
		for _, name := range names {
			put(t, filepath.Join(d.dir, fmt.Sprint(i, name)), name)
		}
		if got, found, told := d.at(t, args...); !got.OK || found != c.want {
			t.Errorf("%q: %s, want %s\n%.800s", c.args, found, c.want, told)
		}
		d.dir = from
	}
	// With several artifacts of the name the file of the working directory counts.
	for _, text := range []string{"first", "second"} {
		other := filepath.Join(t.TempDir(), "fw.log")
		put(t, other, text)
		d.add(t, d.session, other)
	}
	for _, args := range [][]string{{"--", "--path", "fw.log"}, {"--", "--path", "./fw.log"}, {"--", `{"pair":{"left_path":"fw.log"}}`}} {
		if got, found, told := d.at(t, args...); !got.OK || found != `["fw.log"]` {
			t.Errorf("%q: %s\n%.800s", args, found, told)
		}
	}
}

// TestAnIdThatWasHandedOutIsThereAtTheEnd with the content that the file has then.
func TestAnIdThatWasHandedOutIsThereAtTheEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, fails := range []bool{false, true} {
		args := []string{"--", "--late"}
		if fails {
			args = append(args, "--fails")
		}
		got, _, told := d.at(t, args...)
		if got.OK == fails || len(got.Artifacts) != 4 {
			t.Fatalf("%d artifacts: %.1500s", len(got.Artifacts), told)
		}
		if fails {
			continue
		}
		result, _ := got.Result.(m)
		ids, _ := result["found"].([]any)
		for i, want := range []string{"the end", "", "the end", "first", "first"} {
			id, _ := ids[i].(string)
			raw, _, err := d.command(t, "artifacts", "get", id, "--session", d.session)
			if string(raw) != want || (err == nil) != (want != "") {
				t.Errorf("%d, %s: %q, %v, want %q", i, id, raw, err, want)
			}
		}
	}
}
