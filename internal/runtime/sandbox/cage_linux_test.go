package sandbox_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/base/alive"
	"github.com/mortise-dev/mortise/internal/base/carried"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
)

func TestEveryLayerWasTried(t *testing.T) {
	t.Parallel()
	r := full(t).Report()
	if len(r.Layers) != len(sandbox.All) || len(r.Missing()) != 0 {
		t.Errorf("%+v", r)
	}
	got := run(t, full(t), shell(t, "exit 7"))
	if got.Exit != 7 || got.report.Level != sandbox.Full {
		t.Errorf("%v at level %s, %s", got.State, got.report.Level, got.err)
	}
}

// forbidden are the attempts of a prober that must fail.
var forbidden = []string{
	"list /", "socket unix", "socket inet", "socket inet6", "socket netlink", "socket packet", "socket vsock", "socket alg", "socketpair inet",
	"unshare", "clone with a namespace", "clone3", "mount", "chroot", "ptrace", "process_vm_readv", "io_uring", "bpf", "keyctl", "perf",
	"userfaultfd", "open_by_handle_at", "setns", "personality", "setuid 0", "write to the root", "write to the program",
	"read the launcher's environment", "open the launcher's memory", "make a device", "run what it wrote",
}

func judge(t *testing.T, said map[string]string, secrets ...string) {
	t.Helper()
	names := forbidden
	for _, path := range secrets {
		names = append(names, "read "+path)
	}
	for _, name := range names {
		if outcome, tried := said[name]; !tried || outcome == "" {
			t.Errorf("%s: it could (tried %t)", name, tried)
		}
	}
	for _, name := range []string{"write to scratch", "write to /tmp"} {
		if said[name] != "" {
			t.Errorf("%s: %s", name, said[name])
		}
	}
	for name, want := range map[string]string{
		"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000", "CapBnd": "0000000000000000", "CapAmb": "0000000000000000",
		"NoNewPrivs": "1", "Seccomp": "2", "processes": "2", "descriptors": "0 1 2",
	} {
		if said[name] != want {
			t.Errorf("%s: %q, want %q", name, said[name], want)
		}
	}
}

func TestWhatAProgramInACageCannotDo(t *testing.T) {
	t.Parallel()
	for name, of := range sandboxes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cannot(t, of(t))
		})
	}
}

func cannot(t *testing.T, s *sandbox.Sandbox) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("canary"), 0o644); err != nil {
		t.Fatal(err)
	}
	secrets := []string{secret, "/etc/shadow", "/etc/hostname", "/proc/meminfo", "/proc/sys/kernel/osrelease", "/sys/kernel/uevent_seqnum", "/root/.profile"}
	got := run(t, s, self(t, "prober", secrets...))
	said := map[string]string{}
	if err := json.Unmarshal([]byte(got.out), &said); err != nil {
		t.Fatalf("%v %s %s", got.State, got.out, got.err)
	}
	judge(t, said, secrets...)
	if said["environment"] != "GORACE=atexit_sleep_ms=0" {
		t.Errorf("environment: %q", said["environment"])
	}
}

func TestALimitIsNamed(t *testing.T) {
	t.Parallel()
	for name, of := range sandboxes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limitsAreNamed(t, of(t))
		})
	}
}

func limitsAreNamed(t *testing.T, s *sandbox.Sandbox) {
	// What is mounted for the program to read is larger than any file that it may write,
	// and no reason to say that it wrote one.
	large := filepath.Join("/tmp", fmt.Sprintf("large-%d-%s", os.Getpid(), filepath.Base(t.Name())))
	if err := os.WriteFile(large, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(large) })
	if err := os.Truncate(large, 65<<20); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		role   []string
		limits sandbox.Limits
		want   string
	}{
		{[]string{"eater"}, sandbox.Limits{Memory: 64 << 20}, sandbox.LimitMemory},
		{[]string{"forker"}, sandbox.Limits{Memory: 512 << 20, Processes: 24}, sandbox.LimitProcesses},
		{[]string{"writer", "one"}, sandbox.Limits{Scratch: 64 << 20, FileSize: 1 << 20}, sandbox.LimitFileSize},
		{[]string{"writer", "many"}, sandbox.Limits{Scratch: 8 << 20, FileSize: 64 << 20}, sandbox.LimitScratch},
		{[]string{"spinner"}, sandbox.Limits{CPU: time.Second}, sandbox.LimitCPU},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			spec := self(t, c.role[0], c.role[1:]...)
			spec.Read = append(spec.Read, append(existing("/bin", "/usr/bin"), large)...)
			spec.Limits = c.limits
			got := run(t, s, spec)
			if got.Exceeded != c.want {
				t.Errorf("exceeded is %q; %v; it said %s%s", got.Exceeded, got.State, got.out, cut(got.err))
			}
		})
	}
}

func cut(text string) string { return text[:min(len(text), 400)] }

func TestNothingOutlivesAKill(t *testing.T) {
	t.Parallel()
	s := full(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	child := sleepTime(2)
	spec := self(t, "ignorer", child)
	spec.Read = append(spec.Read, existing("/bin", "/usr/bin")...)
	spec.Scratch, spec.Limits = t.TempDir(), usual
	p, err := s.Start(t.Context(), spec, sandbox.Files{Stdin: null, Stdout: null, Stderr: null})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	defer p.Kill()
	awaitReady(t, p)
	if !sleeping(t, child) {
		t.Fatal("its child is not to be found")
	}
	p.Terminate() // it is stopped: that does nothing
	p.Kill()
	p.Wait()
	if sleeping(t, child) {
		t.Error("its child lives on")
	}
}

// launchersOf returns the launchers that are children of a process.
func launchersOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		text, _ := os.ReadFile(path)
		argv, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		_, rest, _ := strings.Cut(string(text), ") ")
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if f := strings.Fields(rest); len(f) > 1 && f[0] != "Z" && f[1] == strconv.Itoa(parent) && strings.Contains(string(argv), "mortise-launcher\x00mounts") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Launchers that wait have no program that would be missed; they end with the host all the same.
func TestWaitingLaunchersEndWithTheHost(t *testing.T) {
	t.Parallel()
	full(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "role", "host", t.TempDir(), sleepTime(3), "ahead")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	var launchers []int
	testwait.Until(t, "the host has 3 launchers: one with a program and two that wait", func() bool {
		launchers = launchersOf(t, cmd.Process.Pid)
		return len(launchers) == 3
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, pid := range launchers {
		testwait.Until(t, fmt.Sprintf("launcher %d has ended", pid), func() bool { return !alive.Process(pid) })
	}
}

func TestNothingOutlivesTheHost(t *testing.T) {
	t.Parallel()
	full(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := sleepTime(4)
	cmd := exec.Command(program, "role", "host", t.TempDir(), child)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q %v", line, err)
	}
	if !sleeping(t, child) {
		t.Fatal("its child is not to be found")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	testwait.Until(t, "what the host had started has ended", func() bool { return !sleeping(t, child) })
}

// awaitReady returns when a program has made the file ready.
func awaitReady(t *testing.T, p *sandbox.Process) {
	t.Helper()
	testwait.Until(t, "the program is ready", func() bool {
		_, err := p.Scratch().Stat("ready")
		return err == nil
	})
}

// sleepTime returns a number of seconds by which a child of this test run is found.
// Each caller has its own n.
func sleepTime(n int) string { return strconv.Itoa(n*10_000_000 + os.Getpid()) }

// sleeping reports whether /bin/sleep runs for so long somewhere.
func sleeping(t *testing.T, seconds string) bool {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if text, err := os.ReadFile(line); err == nil && string(text) == "/bin/sleep\x00"+seconds+"\x00" {
			return true
		}
	}
	return false
}

func TestScratchIsReadFromOutsideAndAfterwards(t *testing.T) {
	t.Parallel()
	s := full(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	spec := shell(t, "echo written >result; ln -s /etc/passwd out; sleep 0.2")
	spec.Scratch, spec.Limits = t.TempDir(), usual
	p, err := s.Start(t.Context(), spec, sandbox.Files{Stdin: null, Stdout: null, Stderr: null})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	if state := p.Wait(); !state.OK() {
		t.Fatal(state)
	}
	if text, err := p.Scratch().ReadFile("result"); err != nil || string(text) != "written\n" {
		t.Errorf("%q %v", text, err)
	}
	if text, err := p.Scratch().ReadFile("out"); err == nil {
		t.Errorf("a link led out: %q", text)
	}
	if left, err := os.ReadDir(spec.Scratch); err != nil || len(left) > 0 {
		t.Errorf("on the host's own disk: %v %v", left, err)
	}
}

// What only root may read, the plugin of a host that is root can read where it
// is shown, and not change.
func TestFilesOfRootAreShownAsTheProgramsOwn(t *testing.T) {
	t.Parallel()
	s := full(t)
	dir := t.TempDir()
	private := filepath.Join(dir, "private")
	if err := os.WriteFile(private, []byte("for its eyes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*sandbox.Spec){
		"a directory": func(spec *sandbox.Spec) { spec.Read = append(spec.Read, dir) },
		"an artifact": func(spec *sandbox.Spec) { spec.Artifacts = []sandbox.File{{Path: private}} },
	} {
		spec := shell(t, "cat "+private+"; echo more >"+private+"; chmod 644 "+private+"; rm -f "+private)
		change(&spec)
		if got := run(t, s, spec); got.out != "for its eyes\n" {
			t.Errorf("%s: %q %s", name, got.out, got.err)
		}
		if text, err := os.ReadFile(private); err != nil || string(text) != "for its eyes\n" {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
}

// The host's umask says who may see its files, and not what a plugin may: not
// beside others, since it is the whole process's.
func TestAStrictUmaskLeavesTheCageStanding(t *testing.T) {
	full(t)
	defer unix.Umask(unix.Umask(0o077))
	s, err := sandbox.New(sandbox.Options{Dir: t.TempDir(), StartLimit: testwait.Limit})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r := s.Report(); r.Level != sandbox.Full {
		t.Fatalf("level %s: %+v", r.Level, r.Missing())
	}
	if got := run(t, s, shell(t, "umask; cat /etc/passwd | grep -c plugin")); got.out != "0077\n1\n" {
		t.Errorf("%v %q %s", got.State, got.out, got.err)
	}
}

// What programs look up by its name, and everybody may read.
func TestNamesAreFound(t *testing.T) {
	t.Parallel()
	s := full(t)
	script := "getent hosts localhost | cut -d ' ' -f 1; getent hosts \"$(hostname)\" >/dev/null && echo itself"
	want := "::1\nitself\n"
	if _, err := os.Stat("/etc/services"); err == nil {
		script, want = script+"; getent services 443/tcp | cut -d ' ' -f 1", want+"https\n"
	}
	if got := run(t, s, shell(t, script)); got.out != want {
		t.Errorf("%v %q %s", got.State, got.out, got.err)
	}
}

// Which awk, or which libblas.so.3, Debian says by links in a directory that
// holds nothing else.
func TestWhatTheSystemChoseIsFound(t *testing.T) {
	t.Parallel()
	s := full(t)
	var chosen string
	for _, name := range []string{"awk", "pager", "which"} {
		if to, err := os.Readlink(filepath.Join("/usr/bin", name)); err == nil && filepath.Dir(to) == "/etc/alternatives" {
			chosen = name
			break
		}
	}
	if chosen == "" {
		t.Skip("needs a program that /etc/alternatives chooses: install mawk or gawk on Debian")
	}
	if got := run(t, s, shell(t, "command -v "+chosen)); got.out != "/usr/bin/"+chosen+"\n" {
		t.Errorf("%v %q %s", got.State, got.out, got.err)
	}
}

func TestAHiddenDirectoryShowsOnlyWhatIsNamed(t *testing.T) {
	t.Parallel()
	s := full(t)
	home := t.TempDir()
	for _, name := range []string{"ledger.key", "packages/one/plugin", "packages/two/plugin"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spec := shell(t, "cd "+home+"; cat ledger.key packages/one/plugin packages/two/plugin")
	spec.Hide = []string{home}
	spec.Read = append(spec.Read, filepath.Dir(home), filepath.Join(home, "packages/one"))
	if got := run(t, s, spec); got.out != "packages/one/plugin\n" || got.Exit == 0 {
		t.Errorf("%v %q %s", got.State, got.out, got.err)
	}
}

// ordinaryHost returns what runs a program in a cage of a host that is not root,
// and gives back what both printed.
func ordinaryHost(t *testing.T) func(arguments ...string) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "ordinary-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	copied := filepath.Join(dir, "program")
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(carried.Write(copied, text), os.Chmod(copied, 0o755)); err != nil {
		t.Fatal(err)
	}
	return func(arguments ...string) string {
		t.Helper()
		scratch, err := os.MkdirTemp(dir, "s-")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{dir, scratch} {
			if err := os.Chown(path, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(copied, append([]string{"role", "ordinary", scratch}, arguments...)...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, cut(errs.String()))
		}
		return string(out)
	}
}

// A host that is not root reaches the same, counting by itself where it may
// make no cgroup.
func TestAnOrdinaryUserHasACageToo(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user: run the test as root")
	}
	full(t) // makes sure that the launcher is built
	host := ordinaryHost(t)
	var report sandbox.Report
	first, second, _ := strings.Cut(host("prober", "/etc/shadow", "/etc/hostname"), "\n")
	if err := json.Unmarshal([]byte(first), &report); err != nil {
		t.Fatal(err)
	}
	if report.Level != sandbox.Full {
		t.Skipf("needs a machine on which an ordinary user reaches level full, not %s; mortise doctor says what is missing: %+v",
			report.Level, report.Missing())
	}
	said := map[string]string{}
	if err := json.Unmarshal([]byte(second), &said); err != nil {
		t.Fatalf("%v: %s", err, cut(second))
	}
	judge(t, said, "/etc/shadow", "/etc/hostname")
	for role, want := range map[string]string{"eater": sandbox.LimitMemory, "writer many": sandbox.LimitScratch} {
		if out := host(strings.Fields(role)...); !strings.Contains(out, "limit exceeded: "+want) {
			t.Errorf("%s: %s", role, out[max(0, len(out)-400):])
		}
	}
}

func TestOffIsNone(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, sandbox.Off)
	if got := s.Report().Level; got != sandbox.None {
		t.Errorf("level %s", got)
	}
	got := run(t, s, shell(t, "kill -9 $$"))
	if got.Signal != syscall.SIGKILL || got.report.Level != sandbox.None || fmt.Sprint(got.State) != "signal: killed" {
		t.Errorf("%v %s", got.State, got.report.Level)
	}
}

func TestWhatCannotBeStartedIsSaid(t *testing.T) {
	t.Parallel()
	for _, mode := range []sandbox.Mode{sandbox.Off, sandbox.BestEffort} {
		s := newSandbox(t, mode)
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		missing := filepath.Join(t.TempDir(), "missing")
		_, err = s.Start(t.Context(), sandbox.Spec{Argv: []string{missing}, Scratch: t.TempDir(), Limits: usual}, sandbox.Files{Stdin: null, Stdout: null, Stderr: null})
		if plugin.CodeOf(err) != plugin.CodeLaunchFailed || !strings.Contains(err.Error(), missing) {
			t.Errorf("%s: %v", mode, err)
		}
	}
	if _, err := sandbox.New(sandbox.Options{Mode: "perhaps"}); err == nil {
		t.Error("a mode that does not exist was taken")
	}
}
