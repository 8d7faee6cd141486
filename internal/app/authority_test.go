package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/adapter"
	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/handed"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// readerPlugin opens every path that it finds anywhere in its input, and
// returns what it could read.
func readerPlugin(name string) {
	p := mortise.New(name, "1.0.0")
	mortise.Tool(p, "read", "Read what the input names.", func(_ *mortise.Call, in map[string]any) (map[string]any, error) {
		var texts []string
		var walk func(v any)
		walk = func(v any) {
			switch v := v.(type) {
			case string:
				texts = append(texts, v)
			case []any:
				for _, item := range v {
					walk(item)
				}
			case map[string]any:
				for _, item := range v {
					walk(item)
				}
			}
		}
		walk(in)
		read := []string{}
		for _, path := range texts {
			for _, path := range []string{path, strings.TrimPrefix(path, "file://")} {
				if text, err := os.ReadFile(path); err == nil {
					read = append(read, string(text[:min(len(text), 200)]))
				}
				entries, _ := os.ReadDir(path)
				for _, entry := range entries {
					if text, err := os.ReadFile(filepath.Join(path, entry.Name())); err == nil {
						read = append(read, string(text[:min(len(text), 200)]))
					}
				}
			}
		}
		return map[string]any{"read": read}, nil
	})
	p.Run()
}

// passerPlugin asks for operations with inputs that its caller gave it as text,
// so that nothing on the way has looked at them.
func passerPlugin() {
	p := mortise.New("passer", "1.0.0")
	type asked struct {
		Method string `json:"method"`
		Input  string `json:"input"`
		Files  []any  `json:"artifacts,omitempty"` // which may be passed on
	}
	mortise.Operator(p, "pass", "Ask for the reader.", func(c *mortise.Call, in asked) (map[string]any, error) {
		input := json.RawMessage(in.Input)
		var data any
		var err error
		if in.Method == "scheduler.enqueue" {
			err = c.Service(in.Method, map[string]any{"operation": "reader/read", "params": input}, &data)
		} else {
			err = c.Call("reader/read", input, &data)
		}
		var refused *mortise.ServiceError
		if errors.As(err, &refused) {
			return map[string]any{"code": refused.Code, "message": refused.Message}, nil
		}
		return map[string]any{"data": data}, err
	}, mortise.Effects("schedule_write"))
	p.Run()
}

// A stolen is what a form of asking for a file came to by one origin.
type stolen struct {
	code    plugin.Code
	message string
	text    string // all that came back
}

func cameBack(res plugin.Result, err error) stolen {
	s := stolen{text: string(res.Data)}
	if err != nil {
		s.code, s.message = plugin.CodeOf(err), plugin.AsError(err).Message
	}
	return s
}

// thieves are the origins by which an input reaches the reader that the person
// whose file it is has not written.
var thieves = map[string]func(t *testing.T, a *app.App, input string) stolen{
	"cli input": func(t *testing.T, a *app.App, input string) stolen {
		return cameBack(a.Kernel.Call(t.Context(), asking(plugin.OriginCLI, "reader/read", input)))
	},
	"cli in a session": func(t *testing.T, a *app.App, input string) stolen {
		call := asking(plugin.OriginCLI, "reader/read", input)
		s, err := a.Sessions.Create(t.Context(), "local", session.Open{Name: "own"})
		if err != nil {
			t.Fatal(err)
		}
		call.Session = s.ID
		return cameBack(a.Kernel.Call(t.Context(), call))
	},
	"operations.call": func(t *testing.T, a *app.App, input string) stolen {
		return passed(t, a, "operations.call", input)
	},
	"scheduler.enqueue": func(t *testing.T, a *app.App, input string) stolen {
		s := passed(t, a, "scheduler.enqueue", input)
		var said struct {
			Data struct {
				ID string `json:"id"`
			} `json:"data"`
		}
		if json.Unmarshal([]byte(s.text), &said) != nil || said.Data.ID == "" {
			return s
		}
		res, err := a.Kernel.Await(t.Context(), "local", said.Data.ID)
		if plugin.CodeOf(err) == plugin.CodeNotFound {
			return s // an earlier answer to the same input was given at once
		}
		return cameBack(res, err)
	},
	"a feed": func(t *testing.T, a *app.App, input string) stolen {
		id, err := feed(t, a, "reader/read", input)
		if err != nil {
			return cameBack(plugin.Result{}, err)
		}
		res, err := a.Schedules.Run(t.Context(), "local", id)
		if err == nil && res.Status == plugin.InProgress {
			res, err = a.Kernel.Await(t.Context(), "local", res.CallID)
		}
		return cameBack(res, err)
	},
	"an agent's tool": func(t *testing.T, a *app.App, input string) stolen {
		call := asking(plugin.OriginAgent, "reader/read", input)
		call.Agent, call.Actor = "desk", "agent:desk"
		return cameBack(a.Kernel.Call(t.Context(), call))
	},
	"a plan's step": func(t *testing.T, a *app.App, input string) stolen {
		v, err := a.Plans.Submit(t.Context(), plan.Submission{
			Tenant: "local", Principal: ann, Agent: "planner", Origin: plugin.OriginCLI,
			Input: json.RawMessage(fmt.Sprintf(`{"intent":{"type":"Gate.Meet","payload":{"operation":"reader/read","input":%s}}}`, input)),
		})
		return stepped(t, a, v, err)
	},
	"an adapter's event": func(t *testing.T, a *app.App, input string) stolen {
		v, err := a.Adapters.Deliver(t.Context(), adapter.Delivery{
			Tenant: "local", Adapter: "chat", By: plugin.Principal{Type: "user", ID: "root", Scopes: []string{"*"}}, Origin: plugin.OriginAdapter,
			Event: json.RawMessage(fmt.Sprintf(`{"operation":"reader/read","input":%s}`, input)),
		})
		return stepped(t, a, v, err)
	},
}

func passed(t *testing.T, a *app.App, method, input string, files ...plugin.File) stolen {
	asked := map[string]any{"method": method, "input": input}
	var named []any
	for _, f := range files {
		named = append(named, map[string]any{"artifact_id": f.Handle})
		asked["artifacts"] = named
	}
	raw, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	call := asking(plugin.OriginCLI, "passer/pass", string(raw))
	call.Files = files
	s := cameBack(a.Kernel.Call(t.Context(), call))
	var refused struct {
		Code    plugin.Code `json:"code"`
		Message string      `json:"message"`
	}
	if json.Unmarshal([]byte(s.text), &refused) == nil && refused.Code != "" {
		s.code, s.message = refused.Code, refused.Message
	}
	return s
}

// stepped takes a plan to its end and returns what its step came to.
func stepped(t *testing.T, a *app.App, v *plan.View, err error) stolen {
	if err != nil {
		return cameBack(plugin.Result{}, err)
	}
	if v, err = a.Plans.Run(t.Context(), "local", v.ID); err != nil {
		return cameBack(plugin.Result{}, err)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	s := stolen{text: string(raw)}
	if v.Error != nil {
		s.code, s.message = v.Error.Code, v.Error.Message
	}
	for _, step := range v.Steps {
		if step.CallID == "" {
			continue
		}
		res, err := a.Kernel.Await(t.Context(), "local", step.CallID)
		one := cameBack(res, err)
		s.text += one.text
		if one.code != "" {
			s.code, s.message = one.code, one.message
		}
	}
	return s
}

// A theft is one form in which an input can name a file.
type theft struct {
	input   string
	refused bool // the member stands for a file: the call is refused, and says so
}

// thefts are the forms, for a file at that path and an artifact of a session
// that is not the call's.
func thefts(t *testing.T, a *app.App, secret string) map[string]theft {
	t.Helper()
	dir := filepath.Dir(secret)
	open := t.TempDir() // which anyone may read
	symlink, linkdir, hard := filepath.Join(open, "report.txt"), filepath.Join(open, "reports"), filepath.Join(dir, "hard.txt")
	if err := errors.Join(os.Symlink(secret, symlink), os.Symlink(dir, linkdir), os.Link(secret, hard)); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(secret)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	other, err := a.Sessions.Create(t.Context(), "local", session.Open{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := a.Sessions.Add(t.Context(), "local", other.ID, strings.NewReader(ownersOnly+" of another session"), session.Add{Name: "kept.txt"})
	if err != nil {
		t.Fatal(err)
	}
	view, err := a.Sessions.View(t.Context(), "local", other.ID)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := filepath.Rel(a.Home, secret)
	if err != nil {
		t.Fatal(err)
	}
	one := func(format string, args ...any) string { return `{"artifacts":[` + fmt.Sprintf(format, args...) + `]}` }
	return map[string]theft{
		"path":                        {one(`{"path":%q}`, secret), true},
		"file_path":                   {one(`{"file_path":%q}`, secret), true},
		"both":                        {one(`{"path":"x.txt","file_path":%q}`, secret), true},
		"beside an id":                {one(`{"artifact_id":"art_00000001","path":%q}`, secret), true},
		"the second of two":           {one(`{"path":"x.txt"},{"path":%q}`, secret), true},
		"as an id":                    {one(`{"artifact_id":%q}`, secret), false},
		"an unknown id":               {one(`{"artifact_id":"art_0123456789abcdef"}`), true},
		"an id of another session":    {one(`{"artifact_id":%q}`, kept.ID), true},
		"the view of another session": {one(`{"path":%q}`, view.Path(kept)), true},
		"a symbolic link":             {one(`{"path":%q}`, symlink), true},
		"beneath a link":              {one(`{"path":%q}`, filepath.Join(linkdir, filepath.Base(secret))), true},
		"a hard link":                 {one(`{"path":%q}`, hard), true},
		"a directory":                 {one(`{"path":%q}`, dir), true},
		"dots":                        {one(`{"path":%q}`, dir+"/../"+filepath.Base(dir)+"/./"+filepath.Base(secret)), true},
		"two slashes":                 {one(`{"path":%q}`, "//"+secret), true},
		"an open descriptor":          {one(`{"path":"/proc/self/fd/%d"}`, held.Fd()), true},
		"a descriptor of the host":    {one(`{"path":"/proc/%d/fd/%d"}`, os.Getpid(), held.Fd()), true},
		"the root of the host":        {one(`{"path":%q}`, fmt.Sprintf("/proc/%d/root%s", os.Getpid(), secret)), true},
		"a hidden directory":          {one(`{"path":%q}`, filepath.Join(a.Home, "mortise.yaml")), true},
		"relative":                    {one(`{"path":%q}`, elsewhere), false},
		"a URL":                       {one(`{"path":%q}`, "file://"+secret), false},
		"another case":                {one(`{"Path":%q}`, secret), false},
		"nested":                      {one(`{"artifacts":[{"path":%q}]}`, secret), false},
		"a list in the list":          {one(`[{"path":%q}]`, secret), false},
		"no list":                     {fmt.Sprintf(`{"artifacts":{"path":%q}}`, secret), false},
		"text in the list":            {one(`%q`, secret), false},
		"escaped":                     {fmt.Sprintf(`{"\u0061rtifacts":[{"p\u0061th":%q}]}`, secret), true},
		"at the top":                  {fmt.Sprintf(`{"path":%q,"file_path":%[1]q}`, secret), false},
		"in a file of bytes":          {fmt.Sprintf(`{"image":{"$file":%q}}`, secret), false},
	}
}

// ownersOnly is what no plugin may ever have read.
const ownersOnly = "what only its owner reads"

// A name is not an authority: in whatever form and from whatever origin an
// input names a file, no plugin reads that file (T50).
func TestAPathInAnInputShowsNoFile(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	secret := filepath.Join(dir, "secret.txt")
	write(t, dir, "secret.txt", ownersOnly)
	if err := os.Chmod(secret, 0o600); err != nil {
		t.Fatal(err)
	}
	a := thievesAt(t, home)
	read := 0
	forms := thefts(t, a, secret)
	for _, form := range slices.Sorted(maps.Keys(forms)) {
		theft := forms[form]
		for _, origin := range slices.Sorted(maps.Keys(thieves)) {
			got := thieves[origin](t, a, theft.input)
			if strings.Contains(got.text+got.message, ownersOnly) {
				read++
				t.Errorf("%s, by %s: it was read: %.300s", form, origin, got.text)
			}
			if theft.refused && got.code != plugin.CodeInvalidInput {
				t.Errorf("%s, by %s: %q (%s) %.200s, want it refused", form, origin, got.code, got.message, got.text)
			}
			if theft.refused && (!strings.Contains(got.message, "artifacts[") || !strings.Contains(got.message, "--artifact")) {
				t.Errorf("%s, by %s: %q does not name the member and what to do", form, origin, got.message)
			}
			if !theft.refused && got.code != "" && got.code != plugin.CodeInvalidInput {
				t.Errorf("%s, by %s: %s %s", form, origin, got.code, got.message)
			}
		}
	}
	if read > 0 {
		t.Errorf("%d files of the host were read", read)
	}
}

// thievesAt opens a host with a reader of files and all who may send it one.
func thievesAt(t *testing.T, home string) *app.App {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	write(t, home, "mortise.yaml", "policy: {files: [all.cedar], configure: [root], groups: {people: [ann]}}\napprovals: {by: [bob]}\nintents: {Gate.Meet: planner}\n",
		"all.cedar", "@untrusted(\"allow\") permit (principal, action in [Action::\"execute\", Action::\"list\"], resource) unless { resource in Plugin::\"asking\" };\n@approval(\"it is asked about\") permit (principal, action == Action::\"execute\", resource in Plugin::\"asking\");\n")
	a := open(t, home)
	needsFullSandbox(t, a)
	for name, more := range map[string]string{
		"reader":  "runner: {kind: process, command: [" + fmt.Sprintf("%q, reader, reader", self) + "]}\n",
		"asking":  "runner: {kind: process, command: [" + fmt.Sprintf("%q, reader, asking", self) + "]}\n",
		"passer":  "capabilities: [scheduler]\nrequires: {tools: [reader/read]}\nrunner: {kind: process, command: [" + fmt.Sprintf("%q, passer", self) + "]}\n",
		"chat":    "runner: {kind: process, command: [" + fmt.Sprintf("%q, chat", self) + "]}\n",
		"planner": "operations:\n  plan: {kind: agent, description: Propose., allowed_actions: [reader/read]}\nrunner: {kind: process, command: [" + fmt.Sprintf("%q, planner, reader/read", self) + "]}\n",
	} {
		source := filepath.Join(home, "source", name)
		write(t, source, "manifest.yaml", fmt.Sprintf("name: %s\nversion: 1.0.0\nowner: test\ndescription: A test.\nfeed: {allowed: [read]}\n%s", name, more))
		register(t, a, source, false)
	}
	hire(t, a, "desk", agent.Settings{})
	assign(t, a, "desk", "reader", true)
	linkAdapter(t, a, "chat", "chat", "U1", "ann", "basic")
	return a
}

// What a person hands on is read by the call that names it, by what that call
// passes it on to, and by no other.
func TestAFileIsReadWhereItWasHandedOn(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	a := thievesAt(t, home)
	write(t, dir, "mine.txt", ownersOnly, "other.txt", "another file")
	mine := handOn(t, filepath.Join(dir, "mine.txt"))
	byHandle, byPath := fmt.Sprintf(`{"artifacts":[{"artifact_id":%q}]}`, mine.Handle), fmt.Sprintf(`{"artifacts":[{"path":%q}]}`, mine.Path)

	call := asking(plugin.OriginCLI, "reader/read", byHandle)
	call.Files = []plugin.File{mine}
	for name, got := range map[string]stolen{
		"its call":              cameBack(a.Kernel.Call(t.Context(), call)),
		"a call below":          passed(t, a, "operations.call", byHandle, mine),
		"a call below, by path": passed(t, a, "operations.call", byPath, mine),
		"a call that waits":     thievesWait(t, a, passed(t, a, "scheduler.enqueue", byHandle, mine)),
	} {
		if !strings.Contains(got.text, ownersOnly) {
			t.Errorf("%s: %s %s %s, want the file", name, got.code, got.message, got.text)
		}
	}

	// A call that was not told of it passes nothing on, whatever it knows of names.
	call = asking(plugin.OriginCLI, "passer/pass", fmt.Sprintf(`{"method":"operations.call","input":%q}`, byHandle))
	call.Files = []plugin.File{mine}
	if got := cameBack(a.Kernel.Call(t.Context(), call)); strings.Contains(got.text, ownersOnly) || !strings.Contains(got.text, string(plugin.CodeInvalidInput)) {
		t.Errorf("a call that names no file: %s %s", got.code, got.text)
	}
	// An artifact of the session is read by its id, in that session alone.
	s, err := a.Sessions.Create(t.Context(), "local", session.Open{Name: "own"})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := a.Sessions.Add(t.Context(), "local", s.ID, strings.NewReader("of the session"), session.Add{Name: "kept.txt", Labels: []string{plugin.Untrusted}})
	if err != nil {
		t.Fatal(err)
	}
	call = asking(plugin.OriginCLI, "reader/read", fmt.Sprintf(`{"artifacts":[{"artifact_id":%q}]}`, kept.ID))
	call.Session = s.ID
	res, err := a.Kernel.Call(t.Context(), call)
	if err != nil || !strings.Contains(string(res.Data), "of the session") || !slices.Contains(res.Labels, plugin.Untrusted) {
		t.Errorf("an artifact of the session: %v %s %q", err, res.Data, res.Labels)
	}
}

// thievesWait returns what a call that was enqueued came to.
func thievesWait(t *testing.T, a *app.App, s stolen) stolen {
	var said struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal([]byte(s.text), &said) != nil || said.Data.ID == "" {
		return s
	}
	return cameBack(a.Kernel.Await(t.Context(), "local", said.Data.ID))
}

func handOn(t *testing.T, path string) plugin.File {
	t.Helper()
	f, err := handed.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A call reads the file that was handed on with it, and not what took its place:
// at once that is another inode, and after a wait any change.
func TestAFileThatWasSwappedIsNotRead(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	a := thievesAt(t, home)
	swaps := map[string]func(path, secret string) error{
		"another file": func(path, secret string) error { return errors.Join(os.Remove(path), os.Link(secret, path)) },
		"a link":       func(path, secret string) error { return errors.Join(os.Remove(path), os.Symlink(secret, path)) },
		"gone":         func(path, _ string) error { return os.Remove(path) },
		"written to":   func(path, _ string) error { return os.WriteFile(path, []byte(ownersOnly), 0o600) },
	}
	for name, swap := range swaps {
		for _, waits := range []string{"at once", "queued", "approved"} {
			dir := t.TempDir()
			write(t, dir, "report.txt", "what was meant", "secret.txt", ownersOnly)
			path := filepath.Join(dir, "report.txt")
			file := handOn(t, path)
			call := asking(plugin.OriginCLI, "reader/read", fmt.Sprintf(`{"artifacts":[{"artifact_id":%q}]}`, file.Handle))
			call.Files, call.Fresh = []plugin.File{file}, true
			want := plugin.CodeInvalidInput
			var got stolen
			switch waits {
			case "at once":
				if name == "written to" {
					continue // a log grows while it is read
				}
				if err := swap(path, filepath.Join(dir, "secret.txt")); err != nil {
					t.Fatal(err)
				}
				got = cameBack(a.Kernel.Call(t.Context(), call))
			default:
				if call.NoWait = waits == "queued"; !call.NoWait {
					call.Operation, want = "asking/read", plugin.CodeApprovalVoid
				}
				res, err := a.Kernel.Call(t.Context(), call)
				if err != nil {
					t.Fatal(err)
				}
				if res.Approval != nil {
					answer := approval.Answer{Tenant: "local", Asker: "os:2", ID: res.Approval.ID, Approve: true, By: plugin.Principal{Type: "user", ID: "bob"}}
					if _, err := a.Approvals.Decide(t.Context(), answer); err != nil {
						t.Fatal(err)
					}
				}
				if err := swap(path, filepath.Join(dir, "secret.txt")); err != nil {
					t.Fatal(err)
				}
				got = cameBack(a.Kernel.Resume(t.Context(), "local", res.CallID))
			}
			if got.code != want || strings.Contains(got.text, ownersOnly) {
				t.Errorf("%s, %s: %q %s %s, want %s", name, waits, got.code, got.message, got.text, want)
			}
			if !strings.Contains(got.message, path) {
				t.Errorf("%s, %s: %q does not name the file", name, waits, got.message)
			}
		}
	}
}
