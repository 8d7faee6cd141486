package cli_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"

	"github.com/mortise-dev/mortise/internal/base/alive"
)

// TestMain makes this binary the command mortise in the stories.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mortise": func() { os.Exit(mortise()) },
	})
}

// TestStories runs testdata/script, one story for each behaviour. Beside the
// usual commands they have:
//
//	exits N COMMAND...           run a command that must end with that status
//	onejson [PATH [TEXT]]        stdout is exactly one JSON object, nothing else, and has a member at PATH,
//	                             dots between names and positions, that reads TEXT, text without its quotes
//	sqledit SQL...               change the database behind the host's back
//	interrupted FILE COMMAND...  run a command, send it SIGINT once FILE is there, and expect status 130
//	killed COMMAND...            run a command and kill it, once it has begun to print
//	gone FILE                    the process whose id is in FILE ends soon
//	together COMMAND : COMMAND   run commands at the same time; all must succeed
//	raw TEXT...                  stdout or stderr holds these bytes, Go escapes read; or, with !, none of them
//	terminal COLUMNS COMMAND...  run a command on a terminal, on Linux; stdout is all that arrived there
//	background [kill]            there is a host in the background of this story, and with kill not any more: in the
//	                             manners in which a host serves, that one is meant
//	dig NAME PATH                put a member of stdout's object into the variable NAME
//
// A story begins with [!embedded] skip where it is about the data directory in the process of
// a command alone; embedded, socket and url are conditions.
func TestStories(t *testing.T) { stories(t, embedded) }

func stories(t *testing.T, manner string) {
	t.Parallel()
	params := testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("MORTISE_HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("TZ", "UTC")
			env.Defer(func() { // a story that failed half way leaves none behind either
				for _, pid := range inBackground(env.Getenv("MORTISE_HOME")) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			})
			env.Setenv(mannerOf, manner)
			env.Defer(func() { hosts(env.WorkDir) })
			env.Setenv("GORACE", "atexit_sleep_ms=0") // or each command takes a second with -race
			env.Setenv("GOGC", "400")                 // most commands end before collecting is worth it
			env.Setenv("GOPROXY", "off")              // nothing here needs a network
			env.Setenv("GOFLAGS", "")
			env.Setenv("GOCACHE", goEnv("GOCACHE"))
			env.Setenv("GOMODCACHE", goEnv("GOMODCACHE"))
			if root := os.Getenv("PYENV_ROOT"); root != "" { // an empty variable makes another environment than none
				env.Setenv("PYENV_ROOT", root)
			}
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Getuid() == 0, nil
			}
			if slices.Contains([]string{embedded, socket, url}, cond) {
				return cond == manner, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: commands,
	}
	if manner != embedded && testing.Short() {
		params.Dir = ""
		some := covering
		if manner == url {
			some = atURL
		}
		for _, name := range some {
			params.Files = append(params.Files, filepath.Join("testdata", "script", name+".txtar"))
		}
	}
	testscript.Run(t, params)
}

var commands = map[string]func(*testscript.TestScript, bool, []string){
	"exits": exits, "onejson": oneJSON, "sqledit": sqlEdit, "interrupted": interrupted,
	"killed": killed, "gone": gone, "together": together, "raw": raw, "dig": dig,
	"background": background,
}

func goEnv(name string) string {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return filepath.Join(os.TempDir(), name) // there is no go; the stories that need it say so
	}
	return strings.TrimSpace(string(out))
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N COMMAND...")
	}
	status := 0
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		status = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("exit status %d, want %s", status, args[0])
	}
}

func oneJSON(ts *testscript.TestScript, neg bool, args []string) {
	var object map[string]jsontext.Value
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &object); err != nil {
		ts.Fatalf("stdout is not one JSON object: %v", err)
	}
	if len(args) == 0 {
		return
	}
	got, found := member(ts.ReadFile("stdout"), args[0])
	switch {
	case neg && found && (len(args) == 1 || got == args[1]):
		ts.Fatalf("%s is there: %s", args[0], got)
	case neg:
	case !found:
		ts.Fatalf("there is no %s", args[0])
	case len(args) == 2 && got != args[1]:
		ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
	}
}

// member returns the value at a path: text as it is, all else as JSON.
func member(text, path string) (string, bool) {
	value := jsontext.Value(text)
	for _, name := range strings.Split(path, ".") {
		switch value.Kind() {
		case '{':
			var object map[string]jsontext.Value
			if json.Unmarshal(value, &object) != nil {
				return "", false
			}
			value = object[name]
		case '[':
			var list []jsontext.Value
			n, err := strconv.Atoi(name)
			if json.Unmarshal(value, &list) != nil || err != nil || n >= len(list) {
				return "", false
			}
			value = list[n]
		default:
			return "", false
		}
	}
	if len(value) == 0 {
		return "", false
	}
	if value.Kind() == '"' {
		plain, err := jsontext.AppendUnquote(nil, value)
		return string(plain), err == nil
	}
	return string(value), true
}

func dig(ts *testscript.TestScript, _ bool, args []string) {
	got, found := member(ts.ReadFile("stdout"), args[1])
	if !found {
		ts.Fatalf("there is no %s", args[1])
	}
	ts.Setenv(args[0], got)
}

func sqlEdit(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", filepath.Join(ts.Getenv("MORTISE_HOME"), "mortise.db"))
	ts.Check(err)
	defer db.Close()
	for _, statement := range args {
		_, err := db.Exec(statement)
		ts.Check(err)
	}
}

func interrupted(ts *testscript.TestScript, _ bool, args []string) {
	cmd, out, errs := command(ts, args[1:])
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	deadline := time.After(30 * time.Second)
	for ready := false; !ready; {
		select {
		case err := <-ended:
			ts.Fatalf("it ended too soon: %v\n%s%s", err, out, errs)
		case <-deadline:
			_ = cmd.Process.Kill()
			ts.Fatalf("%s never came", args[0])
		case <-time.After(5 * time.Millisecond):
			content, err := os.ReadFile(ts.MkAbs(args[0]))
			ready = err == nil && len(bytes.TrimSpace(content)) > 0
		}
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	select {
	case <-ended:
	case <-deadline:
		_ = cmd.Process.Kill()
		ts.Fatalf("it did not end when it was interrupted")
	}
	fmt.Fprint(ts.Stdout(), out)
	fmt.Fprint(ts.Stderr(), errs)
	if status := cmd.ProcessState.ExitCode(); status != 130 {
		ts.Fatalf("exit status %d, want 130", status)
	}
}

func killed(ts *testscript.TestScript, _ bool, args []string) {
	cmd, _, _ := command(ts, args)
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	_, err = out.Read(make([]byte, 1))
	ts.Check(err)
	ts.Check(cmd.Process.Kill())
	_ = cmd.Wait()
}

// background looks for the background host of the story.
func background(ts *testscript.TestScript, neg bool, args []string) {
	home := ts.Getenv("MORTISE_HOME")
	var found []int
	reached := poll(func() bool {
		found = inBackground(home)
		if pid := serving(home); pid != 0 && !neg {
			found = append(found, pid)
		}
		return len(found) == 0 == neg
	})
	if !reached {
		ts.Fatalf("hosts in the background: %v", found)
	}
	if len(args) > 0 {
		for _, pid := range found {
			ts.Check(syscall.Kill(pid, syscall.SIGKILL))
		}
	}
}

// inBackground returns the background hosts of a data directory.
func inBackground(home string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		raw, err := os.ReadFile(path)
		args := strings.Split(string(raw), "\x00")
		if err == nil && len(args) > 4 && args[1] == "serve" && args[2] == "--background" && args[4] == home {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func gone(ts *testscript.TestScript, _ bool, args []string) {
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[0])))
	ts.Check(err)
	if !poll(func() bool { return !alive.Process(pid) }) {
		ts.Fatalf("process %d is still there", pid)
	}
}

func together(ts *testscript.TestScript, _ bool, args []string) {
	var started []*exec.Cmd
	var outs []*bytes.Buffer
	for len(args) > 0 {
		end := slices.Index(args, ":")
		if end < 0 {
			end = len(args)
		}
		cmd, out, _ := command(ts, args[:end])
		cmd.Stderr = out
		ts.Check(cmd.Start())
		started, outs = append(started, cmd), append(outs, out)
		args = args[min(end+1, len(args)):]
	}
	failed := false
	for i, cmd := range started {
		if err := cmd.Wait(); err != nil {
			failed = true
			ts.Logf("%s: %v\n%s", cmd.Args, err, outs[i])
		}
	}
	if failed {
		ts.Fatalf("not all succeeded")
	}
}

// command makes a command in the story's place that is not run yet.
func command(ts *testscript.TestScript, args []string) (cmd *exec.Cmd, out, errs *bytes.Buffer) {
	path := args[0]
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if found := filepath.Join(dir, args[0]); exists(found) {
			path = found
			break
		}
	}
	cmd = exec.CommandContext(context.Background(), path, args[1:]...)
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), out, errs
	cmd.Env = []string{"PWD=" + cmd.Dir}
	for _, name := range []string{"PATH", "HOME", "MORTISE_HOME", "MORTISE_CONFIG", mannerOf, "TMPDIR", "PYENV_ROOT", "TZ", "GORACE"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return cmd, out, errs
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func raw(ts *testscript.TestScript, neg bool, args []string) {
	for _, arg := range args {
		want, err := strconv.Unquote(`"` + arg + `"`)
		ts.Check(err)
		if found := strings.Contains(ts.ReadFile("stdout")+ts.ReadFile("stderr"), want); found == neg {
			ts.Fatalf("the output holds %q: %v", want, found)
		}
	}
}
