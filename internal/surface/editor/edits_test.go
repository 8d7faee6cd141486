package editor

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"
)

// edits of a file by its user, after the host was written into it: comments, members and tables at
// places that are drawn.
type edits struct {
	*rand.Rand
	n int
}

func (r *edits) next() int { r.n++; return r.n }

// inJSON puts comments and members between the tokens of a text.
func (r *edits) inJSON(text string) string {
	for range 1 + r.IntN(6) {
		var between, begins []int // places between tokens; behind an opening brace
		for i, quoted := 0, false; i < len(text); i++ {
			switch rest := text[i:]; {
			case quoted && text[i] == '\\':
				i++
			case text[i] == '"':
				if !quoted {
					between = append(between, i)
				}
				quoted = !quoted
			case quoted:
			case strings.HasPrefix(rest, "//"):
				i += strings.IndexByte(rest, '\n')
			case strings.HasPrefix(rest, "/*"):
				i += strings.Index(rest, "*/") + 1
			case strings.ContainsRune("{}[],:", rune(text[i])):
				between = append(between, i, i+1)
				if text[i] == '{' {
					begins = append(begins, i+1)
				}
			}
		}
		at := between[r.IntN(len(between))]
		with := fmt.Sprintf("/* c%d */", r.next())
		switch r.IntN(3) {
		case 0:
			with = fmt.Sprintf(" // c%d\n", r.n)
		case 1:
			at = begins[r.IntN(len(begins))]
			with = fmt.Sprintf(`"x%d": {"command": "y", "args": []}, `, r.n)
		}
		text = text[:at] + with + text[at:]
	}
	return text
}

// inTOML puts comments, keys and tables at lines of a text.
func (r *edits) inTOML(text string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n")+"\n", "\n")
	lines = lines[:len(lines)-1]
	for range 1 + r.IntN(6) {
		at := r.IntN(len(lines) + 1)
		n := r.next()
		headers := []int{len(lines)}
		for i, line := range lines {
			if strings.HasPrefix(line, "[") {
				headers = append(headers, i)
			}
		}
		with := fmt.Sprintf("# c%d\n", n)
		switch r.IntN(4) {
		case 0:
			if at < len(lines) && strings.TrimSpace(lines[at]) != "" && !strings.Contains(lines[at], "'''") {
				lines[at] = strings.TrimSuffix(lines[at], "\n") + fmt.Sprintf(" # c%d\n", n)
				continue
			}
		case 1: // a table before another
			at = headers[r.IntN(len(headers))]
			name := []string{`"mortise.x%d"`, `"mor tise%d"`, `mortise%d`, `mortise-x%d`, `"mcp_servers.mortise%d"`}[r.IntN(5)]
			with = fmt.Sprintf("[mcp_servers."+name+"]\ncommand = \"y\"\n", n)
		case 2: // keys of the table before
			at = headers[r.IntN(len(headers))]
			with = fmt.Sprintf([]string{"x%d = 1\n", "y%d = \"[mcp_servers.mortise]\"\n", "list%d = [ # inside\n  1, 2]\n", "z%d = '''[mcp_servers.mortise] '''\n"}[r.IntN(4)], n)
		}
		lines = slices.Insert(lines, at, with)
	}
	return strings.Join(lines, "")
}

// meaningOf returns what a configuration says.
func meaningOf(t *testing.T, file, text string) map[string]any {
	t.Helper()
	top := map[string]any{}
	var err error
	if filepath.Ext(file) == ".toml" {
		err = toml.Unmarshal([]byte(text), &top)
	} else {
		var standard []byte
		if standard, err = hujson.Standardize([]byte(text)); err == nil {
			err = json.Unmarshal(standard, &top)
		}
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return top
}

// serversIn returns the object of servers of a meaning.
func serversIn(top map[string]any) map[string]any {
	for _, name := range []string{"mcpServers", "servers", "mcp", "mcp_servers"} {
		if servers, is := top[name].(map[string]any); is {
			return servers
		}
	}
	return map[string]any{}
}

// Whatever a user has changed since, undo takes the entry away and nothing else, and a second connect
// changes the entry's own values and nothing else: other servers, members and comments stay, and so
// do files of the user with a name like that of a copy.
func TestWhatAUserChangedStays(t *testing.T) {
	t.Parallel()
	for _, p := range Programs() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			before, err := os.ReadFile(filepath.Join("testdata", p.Name+".before"))
			if err != nil {
				t.Fatal(err)
			}
			for seed := range 80 {
				dir := t.TempDir()
				own, err := p.File(Places{Home: dir, Config: filepath.Join(dir, ".config")}, "")
				if err != nil {
					t.Fatal(err)
				}
				write := func(name, text string) {
					if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				text := func() string {
					raw, err := os.ReadFile(own)
					if err != nil {
						t.Fatal(err)
					}
					return string(raw)
				}
				write(own, string(before))
				write(own+keptMark, "of the user")
				change, err := p.Put(own, entry)
				if err != nil || change.Write() != nil {
					t.Fatal(err)
				}
				copied := change.Kept
				r := &edits{Rand: rand.New(rand.NewPCG(uint64(seed), 7))}
				edited := r.inJSON
				if filepath.Ext(own) == ".toml" {
					edited = r.inTOML
				}
				changed := edited(text())
				write(own, changed)
				want := meaningOf(t, own, changed)

				other := Entry{Name: entry.Name, Command: "/opt/other/mortise", Args: []string{"mcp"}, Env: map[string]string{"MORTISE_CONFIG": "/etc/m.yaml"}}
				if seed%2 == 0 {
					if change, err = p.Put(own, other); err != nil || change.Write() != nil {
						t.Fatalf("%v\n%s", err, changed)
					}
					again := text()
					comments(t, r.n, changed, again)
					is := meaningOf(t, own, again)
					if got := serversIn(is)[entry.Name].(map[string]any); fmt.Sprintf("%v %v", got["command"], got["args"]) != "/opt/other/mortise [mcp]" && fmt.Sprint(got["command"]) != "[/opt/other/mortise mcp]" {
						t.Errorf("after a second connect the entry is %v in\n%s", got, again)
					}
					for _, name := range []string{"env", "environment"} {
						env, is := serversIn(is)[entry.Name].(map[string]any)[name].(map[string]any)
						if is && (env["MORTISE_CONFIG"] != "/etc/m.yaml" || env["MORTISE_HOME"] != nil) {
							t.Errorf("after a second connect the variables are %v", env)
						}
					}
					if same(is, want, entry.Name); !reflect.DeepEqual(is, want) {
						t.Errorf("a second connect of\n%s\nmakes\n%s", changed, again)
					}
					for name := range serversIn(meaningOf(t, own, changed))[entry.Name].(map[string]any) {
						if _, there := serversIn(meaningOf(t, own, again))[entry.Name].(map[string]any)[name]; !there {
							t.Errorf("a second connect takes %s out of the entry", name)
						}
					}
				}
				undo, err := p.Undo(own, other)
				if err != nil || undo.Write() != nil {
					t.Fatalf("%v\n%s", err, changed)
				}
				after := text()
				comments(t, r.n, changed, after)
				is := meaningOf(t, own, after)
				if same(is, want, entry.Name); !reflect.DeepEqual(is, want) || strings.Contains(after, entry.Command) {
					t.Errorf("undo of\n%s\nmakes\n%s", changed, after)
				}
				if kept, err := os.ReadFile(own + keptMark); err != nil || string(kept) != "of the user" {
					t.Errorf("a file of the user is gone: %q, %v", kept, err)
				}
				if kept, err := os.ReadFile(copied); err != nil || string(kept) != string(before) || undo.Left != copied {
					t.Errorf("the copy of what was there before is gone: %v", err)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// same takes one entry out of two meanings.
func same(a, b map[string]any, name string) {
	delete(serversIn(a), name)
	delete(serversIn(b), name)
}

// comments reports comments that one text has and another has not, or more than once.
func comments(t *testing.T, n int, before, after string) {
	t.Helper()
	for i := range n + 1 {
		for _, form := range []string{"// c%d\n", "/* c%d */", "# c%d\n"} {
			if comment := fmt.Sprintf(form, i); strings.Contains(before, comment) && strings.Count(after, comment) != 1 {
				t.Errorf("the comment %q stands %d times, in\n%s\nthat was\n%s", comment, strings.Count(after, comment), after, before)
			}
		}
	}
}

// The same holds for the commands that run before and after each tool: what is ours goes, and what a
// user has beside it stays.
func TestWhatAUserChangedOfHooksStays(t *testing.T) {
	t.Parallel()
	code, _ := Find("claude-code")
	p, is := code.Hooks()
	if !is {
		t.Fatal("it has no hooks")
	}
	command := Entry{Name: HostName, Command: "/opt/mortise/bin/mortise", Args: []string{"hook", "claude-code"}}
	const before = `{
  // of the user
  "model": "large",
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo ' hook claude-code'"}]} /* mine */
    ],
    "Stop": [{"hooks": []}]
  }
}
`
	for seed := range 80 {
		file := filepath.Join(t.TempDir(), "settings.json")
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		change, err := p.Put(file, command)
		if err != nil || change.Write() != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := &edits{Rand: rand.New(rand.NewPCG(uint64(seed), 11))}
		changed := r.inJSON(string(raw))
		if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		want := meaningOf(t, file, changed)
		other := command
		other.Command = "/opt/other/mortise"
		if change, err = p.Put(file, other); err != nil || change.Write() != nil {
			t.Fatalf("%v\n%s", err, changed)
		}
		again, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		comments(t, r.n, changed, string(again))
		if n := strings.Count(string(again), "/opt/other/mortise hook claude-code || exit 2"); n != 3 || strings.Contains(string(again), "/opt/mortise/bin") {
			t.Errorf("after a second connect %d commands are the host's in\n%s", n, again)
		}
		undo, err := p.Undo(file, other)
		if err != nil || undo.Write() != nil {
			t.Fatalf("%v\n%s", err, changed)
		}
		after, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		comments(t, r.n, changed, string(after))
		if got := meaningOf(t, file, string(after)); !reflect.DeepEqual(withoutOurs(got), withoutOurs(want)) || strings.Contains(string(after), "/opt/other/mortise") {
			t.Errorf("undo of\n%s\nmakes\n%s", changed, after)
		}
		if t.Failed() {
			return
		}
	}
}

// withoutOurs takes the elements of the host out of a meaning, and the lists that have no others.
func withoutOurs(top map[string]any) map[string]any {
	all, _ := top["hooks"].(map[string]any)
	for name, list := range all {
		elements, is := list.([]any)
		if !is || name == "Stop" {
			continue
		}
		kept := slices.DeleteFunc(slices.Clone(elements), func(e any) bool { return strings.Contains(fmt.Sprint(e), "mortise hook claude-code") })
		if all[name] = kept; len(kept) == 0 {
			delete(all, name)
		}
	}
	return top
}
