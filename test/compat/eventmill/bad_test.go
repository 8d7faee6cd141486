package eventmill

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testinput"
	"github.com/mortise-dev/mortise/internal/base/testwait"
)

// The exit statuses of the command line that are met here.
const (
	exitUsage   = 2
	exitInput   = 3
	exitMissing = 4
	exitPlugin  = 6
	exitTimeout = 7
	exitSignal  = 130
)

// A mishap is one call of a tool that misbehaves, and what the caller reads.
type mishap struct {
	do      string
	more    m
	timeout string

	status  int
	code    string // as the contract spells it; "" where the call succeeds
	message string // is contained
	result  string // is contained in its JSON
	summary string
	ends    bool // the interpreter with it: the next call has a new one
}

func TestMishapsLeaveTheSessionGoing(t *testing.T) {
	t.Parallel()
	h := newHost(t, testinput.Host(t))
	h.must(t, nil, "plugins", "register", "--dev", "bad/plugins")
	session := h.session(t)
	h.add(t, session, "evidence/auth.log.1")
	internal := func(do, message string) mishap {
		return mishap{do: do, status: exitPlugin, code: "INTERNAL_ERROR", message: message}
	}
	lost := func(do, message string) mishap {
		return mishap{do: do, status: exitPlugin, code: "INTERNAL_ERROR", message: message, ends: true}
	}
	late := func(do string) mishap {
		return mishap{do: do, timeout: "1s", status: exitTimeout, code: "TIMEOUT", message: "took longer than 1s", ends: true}
	}
	says := func(how, want string) mishap {
		return mishap{do: "summary", more: m{"how": how}, result: `"summary":`, summary: want}
	}
	standing := "misbehaves completed successfully."
	calls := 0
	for _, c := range []mishap{
		{do: "prints", result: `{"done":true}`},
		{do: "logs", result: `{"done":true}`},
		internal("none", "execute returned None"),
		internal("a_set", "of type set"),
		internal("class_itself", "of type type"),
		internal("generator", "of type generator"),
		internal("lock_within", "/result/lock is a lock"),
		internal("itself_within", "holds itself"),
		{do: "set_within", result: `["10.0.0.1","10.0.0.2"]`},
		{do: "list_result", result: `[1,2,3]`, summary: standing},
		internal("result_large", "it was saved as artifact art_"),
		internal("sys_exit", "SystemExit: 3"),
		internal("recursion", "RecursionError"),
		internal("raises_strange", "Strange"),
		{do: "thread", result: `{"done":true}`},
		{do: "fork", result: `{"child":false}`},
		{do: "fork_bomb", result: `refused`},
		says("raises", standing), says("exits", standing), says("number", standing), says("large", strings.Repeat("s", 64<<10-3)+"..."),
		{do: "fills", more: m{"tidy": true}, status: exitPlugin, code: "EXECUTION_ERROR", message: "No space left on device"},
		{do: "fills", status: exitPlugin, code: "EXECUTION_ERROR", message: "No space left on device"},
		{do: "writes_artifact", status: exitPlugin, code: "PERMISSION_DENIED"},
		{do: "removes_artifact", status: exitPlugin, code: "PERMISSION_DENIED"},
		{do: "nothing_there_is", status: exitPlugin, code: "INPUT_VALIDATION_FAILED", message: "do what?"},
		{do: "signals", result: `{"done":true}`},
		lost("os_exit", "ended while it was needed (exit status 0)"),
		lost("kill", "signal: killed"),
		lost("segfault", "segmentation fault"),
		lost("closes_descriptors", "ended while it was needed"),
		lost("memory", "limit exceeded: memory"),
		late("sleep"), late("sleeps_through"), late("spins"),
	} {
		name := strings.TrimSpace(c.do + " " + fmt.Sprint(c.more["how"]))
		payload := m{"do": c.do}
		for key, value := range c.more {
			payload[key] = value
		}
		got, printed, status := h.call(t, session, "misbehaves", payload, c.timeout)
		data, err := json.Marshal(got.Result)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case status != c.status || got.ErrorCode != c.code || got.OK != (c.code == ""):
			t.Errorf("%s: status %d, code %q, want %d, %q\n%.1000s", name, status, got.ErrorCode, c.status, c.code, printed)
		case !strings.Contains(got.Message, c.message) || !strings.Contains(string(data), c.result) || c.summary != "" && got.Summary != c.summary:
			t.Errorf("%s: message %q, result %.200s, summary of %d bytes %.100q", name, got.Message, data, len(got.Summary), got.Summary)
		}
		// The next good call of the session finds what the one before it left.
		if c.ends {
			calls = 0
		}
		calls++
		steady, printed, status := h.call(t, session, "steady", m{}, "")
		result, _ := steady.Result.(m)
		if !steady.OK || status != 0 || result["calls"] != float64(calls) {
			t.Fatalf("after %s: status %d, want call %d of its interpreter\n%.1000s", name, status, calls, printed)
		}
	}
}

func TestUntestedReleases(t *testing.T) {
	t.Parallel()
	h := newHost(t, testinput.Host(t))
	tree := filepath.Join(h.home, "plugins")
	if err := os.CopyFS(tree, os.DirFS("bad/plugins")); err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(tree, "threat_modeling", "misplaced")
	if err := os.CopyFS(wrong, os.DirFS("bad/plugins/log_analysis/no_class")); err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(wrong, "manifest.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(wrong, "manifest.json"), bytes.ReplaceAll(manifest, []byte(`"no_class"`), []byte(`"misplaced"`)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	// One that stands in another pillar's directory is refused, and its neighbours are not.
	_, errs, err := h.command(t, "plugins", "register", "--dev", tree)
	if statusOf(err) != exitInput || !strings.Contains(string(errs), "it stands in the directory of the pillar threat_modeling") {
		t.Errorf("registering: %v\n%s", err, errs)
	}
	session := h.session(t)
	for _, c := range []struct {
		tool    string
		status  int
		code    string
		message string
	}{
		{"breaks_on_import", exitPlugin, "INTERNAL_ERROR", "Expecting property name"},
		{"breaks_on_import", exitPlugin, "INTERNAL_ERROR", "Expecting property name"}, // again
		{"no_class", exitPlugin, "INTERNAL_ERROR", "has no class 'Elsewhere', which manifest.json names; it has Renamed"},
		{"schema_is_none", 0, "", ""},
		{"misplaced", exitMissing, "", ""},
		{"steady", 0, "", ""},
	} {
		got, printed, status := h.call(t, session, c.tool, m{}, "")
		if status != c.status || got.ErrorCode != c.code || !strings.Contains(got.Message, c.message) {
			t.Errorf("%s: status %d, code %q\n%.1000s", c.tool, status, got.ErrorCode, printed)
		}
	}
}

func TestRegistrationsThatCannotBe(t *testing.T) {
	t.Parallel()
	h := newHost(t, testinput.Host(t))
	h.must(t, nil, "plugins", "register", "--dev", "bad/plugins")
	session := h.session(t)
	refused := func(more m, message string) mishap {
		return mishap{more: more, status: exitPlugin, code: "INTERNAL_ERROR", message: message}
	}
	named := func(name, message string) mishap {
		c := refused(m{"kind": "named", "name": name}, message)
		if message == "" {
			c.status, c.code = 0, ""
		}
		return c
	}
	// What is no file, or is not there, is a reference to nothing: the tool goes
	// on, as it does on the host that it was written for, and the person is told.
	for _, more := range []m{
		{"kind": "directory"}, {"kind": "fifo"}, {"kind": "device"}, {"kind": "loop"}, {"kind": "deleted"}, {"kind": "empty_name"}, {"kind": "nothing"},
		{"kind": "at", "path": filepath.Join(h.home, "mortise.db")}, // the host's own are not there
		{"kind": "at", "path": filepath.Join(h.home, "ledger.key")},
		{"kind": "at", "path": "/etc/shadow"},
	} {
		more["do"] = "register"
		input, err := json.Marshal(more)
		if err != nil {
			t.Fatal(err)
		}
		out, errs, err := h.command(t, "run", "misbehaves", "--session", session, "--json", "--input", string(input))
		if got := outcomeOf(t, out, nil); err != nil || !got.OK || len(got.Artifacts) != 0 {
			t.Errorf("%v: %v\n%.600s", more, err, out)
		}
		if !strings.Contains(string(errs), "is no file: nothing was kept") {
			t.Errorf("%v: nothing was said of it: %s", more, errs)
		}
	}
	for _, c := range []mishap{
		refused(m{"metadata": 1_000_000}, "the metadata has"),
		named("x\ny.txt", "is no name of an artifact"),
		named("a\x07b", "is no name of an artifact"),
		named("\u00ff\u00fe.txt", "not UTF-8"), // its bytes, not these letters
		named(strings.Repeat("n", 300), "File name too long"),
		named("../up.txt", ""), // above the workspace is scratch still
		named("..x", ""), named("-rf", ""), named("a b.txt", ""), named(strings.Repeat("n", 255), ""),
		{more: m{"metadata": 60_000}},
	} {
		c.more["do"] = "register"
		got, printed, status := h.call(t, session, "misbehaves", c.more, "")
		if status != c.status || got.ErrorCode != c.code || !strings.Contains(got.Message, c.message) {
			t.Errorf("%.100v: status %d, code %q, message %q, want %d, %q, %q\n%.600s", c.more, status, got.ErrorCode, got.Message, c.status, c.code, c.message, printed)
		}
		if n := len(got.Artifacts); (n == 1) != (c.code == "") {
			t.Errorf("%.100v: %d artifacts", c.more, n)
		}
	}
	// What a tool can read it may register: its own copy of what is in its cage.
	for _, kind := range []string{"outside", "absolute", "link"} {
		got, printed, _ := h.call(t, session, "misbehaves", m{"do": "register", "kind": kind}, "")
		if !got.OK {
			t.Errorf("%s: %.600s", kind, printed)
		}
	}
	if got, printed, _ := h.call(t, session, "steady", m{}, ""); !got.OK {
		t.Errorf("afterwards: %s", printed)
	}
}

func TestManyArtifactsOfOneSession(t *testing.T) {
	t.Parallel()
	h := newHost(t, testinput.Host(t))
	h.must(t, nil, "plugins", "register", "--dev", "bad/plugins")
	session := h.session(t)
	for batch := range 4 {
		// Under the limit of its class, 30 s, however many there are by now.
		got, printed, _ := h.call(t, session, "misbehaves", m{"do": "registers_many", "count": 500, "batch": batch}, "")
		if !got.OK || len(got.Artifacts) != 500 {
			t.Fatalf("batch %d: %d artifacts\n%.600s", batch, len(got.Artifacts), printed)
		}
	}
	got, printed, _ := h.call(t, session, "steady", m{}, "")
	if result, _ := got.Result.(m); result["artifacts"] != 2000.0 {
		t.Errorf("%.600s", printed)
	}
}

func TestArtifactsThatCannotBe(t *testing.T) {
	t.Parallel()
	h := newHost(t, testinput.Host(t))
	h.must(t, nil, "plugins", "register", "--dev", "bad/plugins")
	session, dir := h.session(t), t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		path, name string
		status     int
		message    string
	}{
		{filepath.Join(dir, "absent.log"), "", exitMissing, "there is no file"},
		{dir, "", exitInput, "is no name of an artifact"}, // with all that is in it
		{"/dev/zero", "", exitInput, "no regular file"},
		{file("a\nb.log", "x"), "", exitInput, "is no name of an artifact"},
		{file("\xff.log", "x"), "", exitInput, "is no name of an artifact"},
		{file("plain.log", "x"), "../up.log", exitInput, "is no name of an artifact"},
		{file("plain.log", "x"), "a/b.log", exitInput, "is no name of an artifact"},
		{file("plain.log", "x"), "..", exitInput, "is no name of an artifact"},
		{file("plain.log", "x"), strings.Repeat("n", 300), exitInput, "is no name of an artifact"},
		{file("a\nb.log", "x"), "ab.log", 0, ""},
		{file("\xff.log", "x"), "of-bytes.log", 0, ""},
	} {
		args := []string{"artifacts", "add", c.path, "--session", session}
		if c.name != "" {
			args = append(args, "--name", c.name)
		}
		if _, errs, err := h.command(t, args...); statusOf(err) != c.status || !strings.Contains(string(errs), c.message) {
			t.Errorf("%q as %.50q: %v: %s", c.path, c.name, err, errs)
		}
	}
	read := func(artifact string, more m) (answered, int) {
		payload := m{"artifact_id": artifact}
		for key, value := range more {
			payload[key] = value
		}
		got, _, status := h.call(t, session, "steady", payload, "")
		return got, status
	}
	if got, status := read("art_00000000", nil); got.ErrorCode != "ARTIFACT_NOT_FOUND" || status != exitPlugin {
		t.Errorf("none: %+v", got)
	}
	for _, c := range []struct{ path, kind, text string }{
		{file("wide.log", "\xff\xfeh\x00i\x00\n\x00"), "log_stream", "\ufffd\ufffdh\x00i\x00\n\x00"},
		{file("nul.log", "a\x00b\x00\n"), "log_stream", "a\x00b\x00\n"},
		{file("nothing.log", ""), "log_stream", ""},
		{file("odd.bin", "\x00\x01\x02"), "text", "\x00\x01\x02"},
	} {
		added := h.add(t, session, c.path)
		got, _ := read(added.ID, nil)
		if result, _ := got.Result.(m); !got.OK || result["text"] != c.text || result["type"] != c.kind {
			t.Errorf("%s: %+v", c.path, got)
		}
	}
	record := strings.Repeat("\x00", 8) + "\x04\x00\x00\x00\x04\x00\x00\x00data"
	capture := "\xd4\xc3\xb2\xa1\x02\x00\x04\x00" + strings.Repeat("\x00", 12) + "\x01\x00\x00\x00"
	for name, c := range map[string]struct{ content, code string }{
		"whole.pcap":     {capture + record + record, ""},
		"truncated.pcap": {capture + record + record[:10], "ARTIFACT_UNREADABLE"},
		"wrong.pcap":     {"no capture at all", "ARTIFACT_UNREADABLE"},
	} {
		if got, _ := read(h.add(t, session, file(name, c.content)).ID, m{"as": "pcap"}); got.ErrorCode != c.code {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAnUnreadableFileIsNoArtifact(t *testing.T) {
	t.Parallel()
	binary := testinput.Host(t)
	dir, err := os.MkdirTemp("", "mill-") // that another user may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	secret, program, home := filepath.Join(dir, "secret.log"), filepath.Join(dir, "mortise"), filepath.Join(dir, "home")
	data, err := os.ReadFile(binary)
	for _, do := range []func() error{
		func() error { return err },
		func() error { return os.Chmod(dir, 0o755) },
		func() error { return os.WriteFile(program, data, 0o755) },
		func() error { return os.WriteFile(secret, []byte("x"), 0o000) },
		func() error { return os.Mkdir(home, 0o700) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Env = home, []string{"MORTISE_HOME=" + home, "HOME=" + home, "PATH=" + os.Getenv("PATH")}
		if os.Getuid() == 0 { // nothing is unreadable to root
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if os.Getuid() == 0 {
		if err := os.Chown(home, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	out, err := run("sessions", "create", "--json")
	var session struct {
		ID string `json:"id"`
	}
	if err != nil || json.Unmarshal([]byte(out), &session) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := run("artifacts", "add", secret, "--session", session.ID); statusOf(err) != exitInput || !strings.Contains(out, "may not be read") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestLargeArtifactsAreStreamed(t *testing.T) {
	t.Parallel()
	h := newHost(t, testinput.Host(t))
	h.configure(t, "limits:\n  artifact_bytes: 314572800\n")
	session := h.session(t)
	files := t.TempDir()
	sparse := func(name string, size int64) string {
		path := filepath.Join(files, name)
		f, err := os.Create(path)
		if err == nil {
			err = f.Truncate(size)
			f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	if _, errs, err := h.command(t, "artifacts", "add", sparse("huge.log", 5<<30), "--session", session); statusOf(err) != exitInput ||
		!strings.Contains(string(errs), "limits.artifact_bytes") {
		t.Errorf("5 GiB: %v: %s", err, errs)
	}
	cmd := exec.CommandContext(t.Context(), h.binary, "artifacts", "add", sparse("large.log", 300<<20), "--session", session)
	cmd.Env = append(os.Environ(), "MORTISE_HOME="+h.home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("300 MiB: %v: %s", err, out)
	}
	t.Run("memory", func(t *testing.T) {
		if testing.Short() {
			t.Skip("make test-long: it measures the memory of the command")
		}
		if usage := cmd.ProcessState.SysUsage().(*syscall.Rusage); usage.Maxrss > 200<<10 { // KiB
			t.Errorf("it took %d KiB of memory, want at most 200 MiB", usage.Maxrss)
		}
	})
}

// call calls a tool in a session.
func (h *host) call(t *testing.T, session, tool string, payload m, timeout string) (answered, []byte, int) {
	t.Helper()
	input, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"run", tool, "--session", session, "--json", "--input", string(input)}
	if timeout != "" {
		args = append(args, "--timeout", timeout)
	}
	start := time.Now()
	out, errs, err := h.command(t, args...)
	if len(out) == 0 {
		t.Fatalf("%s %s printed nothing in %s: %v\n%s", tool, input, time.Since(start), err, errs)
	}
	return outcomeOf(t, out, nil), out, statusOf(err)
}

// statusOf is the exit status of a command.
func statusOf(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	return -1
}

func TestWhatAnAnalystMistypes(t *testing.T) {
	t.Parallel()
	h := newHost(t, testinput.Host(t))
	h.must(t, nil, "plugins", "register", "--dev", "bad/plugins")
	session, closed := h.session(t), h.session(t)
	h.must(t, nil, "sessions", "close", closed)
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"run", "stedy", "--session", session}, exitMissing, "did you mean steady?"},
		{[]string{"run", "steady", "--session", "sess_000000000000"}, exitMissing, "'mortise sessions list' shows"},
		{[]string{"run", "steady", "--session", "../../etc"}, exitMissing, "'mortise sessions list' shows"},
		{[]string{"run", "steady", "--session", closed}, exitInput, "mortise sessions resume " + closed},
		{[]string{"artifacts", "add", "evidence/conn.log", "--session", closed}, exitInput, "mortise sessions resume " + closed},
		{[]string{"run", "steady", "--session", session, "--artifact", "absent.log"}, exitMissing, "there is no file absent.log"},
		{[]string{"run", "steady", "--session", session, "--artifact", "art_00000000"}, exitMissing, "'mortise artifacts list"},
		{[]string{"run", "steady", "--session", session, "--", "stray"}, exitUsage, "--name value"},
		{[]string{"run", "steady", "--session", session, "--", "-k", "v"}, exitUsage, "--name value"},
		{[]string{"run", "steady", "--session", session, "--", "{bad json"}, exitInput, "not one JSON value"},
		{[]string{"run", "steady", "--session", session, "--input", "[1]"}, exitPlugin, "the input must be an object"},
		{[]string{"run", "steady", "--session", session, "--k", "v"}, exitUsage, "'mortise run steady --session " + session + " -- --k v'"},
		{[]string{"run", "steady", "--session", session, "k=v"}, exitUsage, "--set key=value"},
		{[]string{"run", "steady", "--session", session, "--", `{"a": 1}`, "--b", "-5", "--c=x=y", "--d"}, 0, "call 1"},
		{[]string{"run", "steady", "--session", session[:9]}, 0, "call 2"},
	} {
		out, errs, err := h.command(t, c.args...)
		if said := string(out) + string(errs); statusOf(err) != c.status || !strings.Contains(said, c.says) {
			t.Errorf("%q: %v, want %d and %q\n%s", c.args[1:], err, c.status, c.says, said)
		}
	}
	// The same file twice is one artifact.
	for range 2 {
		h.must(t, nil, "run", "steady", "--session", session, "--artifact", "evidence/conn.log", "--artifact", "evidence/conn.log")
	}
	if n := len(slices.DeleteFunc(h.artifacts(t, session), func(a made) bool { return a.SourceTool != "" })); n != 1 {
		t.Errorf("%d artifacts of the analyst's, want 1", n)
	}
}

func TestASessionOutlivesWhatIsDoneToIt(t *testing.T) {
	t.Parallel()
	h := newHost(t, testinput.Host(t))
	h.must(t, nil, "plugins", "register", "--dev", "bad/plugins")
	session := h.session(t)
	calls := func(want float64) {
		t.Helper()
		got, printed, _ := h.call(t, session, "steady", m{}, "")
		if result, _ := got.Result.(m); result["calls"] != want {
			t.Errorf("want call %v of its interpreter: %s", want, printed)
		}
	}
	sleeping := func(seconds string) (*exec.Cmd, *bytes.Buffer) { // and it sleeps when this returns
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), h.binary, "run", "misbehaves", "--session", session, "--json", "--", "--do", "sleep", "--seconds", seconds)
		cmd.Env, cmd.Stdout = append(os.Environ(), "MORTISE_HOME="+h.home, "MODEL_KEY=none-of-your-business"), &out
		said, err := cmd.StderrPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		asleep := make(chan bool, 1)
		go func() {
			for lines := bufio.NewScanner(said); lines.Scan(); {
				if strings.Contains(lines.Text(), "it sleeps") {
					asleep <- true
				}
			}
			close(asleep)
		}()
		if !testwait.Receive(t, "the word of the tool that it sleeps", asleep) {
			t.Fatalf("the command ended before its tool slept: %v", cmd.Wait())
		}
		return cmd, &out
	}
	calls(1)

	// Two at once: one after the other, in one interpreter.
	one, _ := sleeping("0.5")
	two, _ := sleeping("0.5")
	if err1, err2 := one.Wait(), two.Wait(); err1 != nil || err2 != nil {
		t.Errorf("two at once: %v, %v", err1, err2)
	}
	calls(2)

	// Ctrl-C in the middle of a long one.
	long, out := sleeping("3600")
	_ = long.Process.Signal(os.Interrupt)
	if err := long.Wait(); statusOf(err) != exitSignal || !strings.Contains(out.String(), `"cancelled"`) {
		t.Errorf("Ctrl-C: %v: %s", err, out)
	}
	calls(1)

	// The host that holds the session is killed, at rest and during a call.
	kill := func() {
		t.Helper()
		for _, pid := range h.holders(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	kill()
	calls(1)
	long, out = sleeping("3600")
	kill()
	if err := long.Wait(); statusOf(err) != exitPlugin || !strings.Contains(out.String(), "ended during the call") {
		t.Errorf("a killed host: %v: %s", err, out)
	}
	calls(1)

	// The data directory goes away under a call: its host ends too, without any request.
	long, _ = sleeping("3600")
	if err := os.RemoveAll(h.home); err != nil {
		t.Fatal(err)
	}
	_ = long.Wait()
	testwait.Until(t, "no host of the deleted data directory is left", func() bool { return len(h.holders(t)) == 0 })
}

// holders are the processes that hold sessions of this host.
func (h *host) holders(t *testing.T) []int {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range found {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(line, []byte("\x00--background\x00")) || !bytes.Contains(line, []byte(h.home+"\x00")) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestAFaultIsShownWithItsPlace(t *testing.T) {
	t.Parallel()
	h := newHost(t, testinput.Host(t))
	h.must(t, nil, "plugins", "register", "--dev", "bad/plugins")
	session := h.session(t)
	for range 5 { // always, not when it is faster than the answer
		_, errs, err := h.command(t, "run", "misbehaves", "--session", session, "--", "--do", "sys_exit")
		said := string(errs)
		if statusOf(err) != exitPlugin || !strings.Contains(said, "in do_sys_exit") || !strings.Contains(said, "SystemExit: 3") || strings.Contains(said, "_shim") {
			t.Fatalf("%v\n%s", err, said)
		}
	}
}
