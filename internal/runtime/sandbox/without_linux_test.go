package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/base/carried"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
)

// A removal takes one wall away from a machine: the kernel answers a system call
// with an error, as if it lacked something, or does nothing and says that it did.
type removal struct {
	wall   string // the layer that is missed, "" for none in particular
	call   uint32
	if_    func() []unix.SockFilter // judges its arguments: the next instruction answers
	answer unix.Errno               // 0 pretends
	level  sandbox.Level            // what is left

	ordinary bool // for a host that is not root: root's has another wall behind this one
}

const newSpaces = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// argument lets a call pass unless the comparison holds of an argument.
func argument(n uint32, comparison uint16, value uint32) func() []unix.SockFilter {
	return func() []unix.SockFilter {
		return []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16 + 8*n},
			{Code: unix.BPF_JMP | comparison | unix.BPF_K, K: value, Jt: 1},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		}
	}
}

var removals = map[string]removal{
	"no landlock":                   {wall: sandbox.LayerLandlock, call: unix.SYS_LANDLOCK_CREATE_RULESET, answer: unix.EOPNOTSUPP, level: sandbox.None},
	"landlock is pretended":         {wall: sandbox.LayerLandlock, call: unix.SYS_LANDLOCK_RESTRICT_SELF, level: sandbox.None},
	"no seccomp":                    {wall: sandbox.LayerSeccomp, call: unix.SYS_SECCOMP, answer: unix.EINVAL, level: sandbox.None},
	"seccomp is pretended":          {wall: sandbox.LayerSeccomp, call: unix.SYS_SECCOMP, level: sandbox.None},
	"no new privileges pretended":   {call: unix.SYS_PRCTL, if_: argument(0, unix.BPF_JEQ, unix.PR_SET_NO_NEW_PRIVS), level: sandbox.None},
	"capabilities stay as they are": {wall: sandbox.LayerUser, call: unix.SYS_CAPSET, level: sandbox.Partial, ordinary: true},
	"limits are pretended":          {wall: sandbox.LayerLimits, call: unix.SYS_PRLIMIT64, level: sandbox.None},
	"no user namespace":             {wall: sandbox.LayerUser, call: unix.SYS_CLONE, if_: argument(0, unix.BPF_JSET, unix.CLONE_NEWUSER), answer: unix.EPERM, level: sandbox.Partial},
	"no namespaces":                 {wall: sandbox.LayerPID, call: unix.SYS_CLONE, if_: argument(0, unix.BPF_JSET, newSpaces), answer: unix.EPERM, level: sandbox.Partial},
	"no namespaces for a user":      {wall: sandbox.LayerNet, call: unix.SYS_CLONE, if_: argument(0, unix.BPF_JSET, newSpaces), answer: unix.EPERM, level: sandbox.Partial, ordinary: true},
	"no mounts":                     {wall: sandbox.LayerMount, call: unix.SYS_MOUNT, answer: unix.EPERM, level: sandbox.Partial},
	"mounts are pretended":          {wall: sandbox.LayerMount, call: unix.SYS_MOUNT, level: sandbox.Partial},
	"mounts stay writable":          {wall: sandbox.LayerMount, call: unix.SYS_MOUNT_SETATTR, level: sandbox.Partial},
	"the user stays":                {call: unix.SYS_SETRESUID, level: sandbox.None},
}

// without removes a wall and goes on as what comes after.
func without(args []string) {
	r := removals[args[0]]
	runtime.LockOSThread()
	code := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}}
	var judge []unix.SockFilter
	if r.if_ != nil {
		judge = r.if_()
	}
	judge = append(judge, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(r.answer)})
	code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: r.call, Jf: uint8(len(judge))})
	code = append(append(code, judge...), unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	if r.ordinary {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			panic(err)
		}
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		panic(errno)
	}
	panic(syscall.Exec("/proc/self/exe", append([]string{os.Args[0], "role"}, args[1:]...), os.Environ()))
}

// A reached is what a host comes to that starts a program in each mode.
type reached struct {
	Report  sandbox.Report
	Code    string // where a complete sandbox is required
	Message string
	Started sandbox.Level // at best effort
	Problem string        // why nothing was
	Told    []string
}

// reach prints what this machine reaches.
func reach(args []string) {
	var got reached
	for _, mode := range []sandbox.Mode{sandbox.Required, sandbox.BestEffort} {
		s, err := sandbox.New(sandbox.Options{
			Dir: args[0], Mode: mode, StartLimit: time.Minute, Notice: func(text string) { got.Told = append(got.Told, text) },
		})
		if err != nil {
			panic(err)
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			panic(err)
		}
		spec := sandbox.Spec{Argv: []string{"/bin/true"}, Read: existing("/bin", "/usr/bin", "/lib", "/lib64", "/usr/lib"), Scratch: args[0], Limits: usual}
		p, err := s.Start(context.Background(), spec, sandbox.Files{Stdin: null, Stdout: null, Stderr: null})
		if mode == sandbox.Required {
			got.Report = s.Report()
		}
		switch {
		case err != nil && mode == sandbox.Required:
			got.Code, got.Message = string(plugin.CodeOf(err)), err.Error()
		case err != nil:
			got.Problem = err.Error()
		default:
			if mode == sandbox.BestEffort {
				got.Started = p.Report().Level
			}
			p.Wait()
			p.Release()
		}
		if err := s.Close(); err != nil {
			panic(err)
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(got)
}

// reachedBy runs a host of this binary and returns what it reached.
func reachedBy(t *testing.T, cmd *exec.Cmd) reached {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, cut(errs.String()))
	}
	var got reached
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s %s", err, out, cut(errs.String()))
	}
	return got
}

// judge fails unless a host that lacks a wall starts nothing that needs all of
// them, names the wall, and says so before it starts something with less.
func (got reached) judge(t *testing.T, wall string, level sandbox.Level) {
	t.Helper()
	if got.Report.Level != level {
		t.Errorf("the level is %s, want %s; missing: %+v", got.Report.Level, level, got.Report.Missing())
	}
	missed := slices.ContainsFunc(got.Report.Missing(), func(l sandbox.Layer) bool { return wall == "" || l.Name == wall && l.Why != "" })
	if got.Code != string(plugin.CodeIsolationUnavailable) || !strings.Contains(got.Message, wall) || !missed {
		t.Errorf("with sandbox: required it says %q %s; missing: %+v", got.Code, got.Message, got.Report.Missing())
	}
	if len(got.Told) != 1 || !strings.Contains(got.Told[0], "level "+string(level)) || !strings.Contains(got.Told[0], wall) {
		t.Errorf("with best effort it says %q", got.Told)
	}
	if got.Problem == "" && got.Started != level {
		t.Errorf("with best effort the program started at level %s", got.Started)
	}
}

// forEveryone returns a copy of this binary that everyone may run, in a directory
// that everyone may write to.
func forEveryone(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "sandbox-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if err := errors.Join(carried.Write(program, text), os.Chmod(program, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return program
}

// Each wall is taken away in turn, so that the kernel says it cannot, or says
// that it did and did not: the level is told truthfully, and nothing starts that
// needs them all.
func TestWithEachWallRemovedTheLevelIsTold(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to take a wall away without giving up privileges: run the test as root")
	}
	full(t)
	program := forEveryone(t)
	for name, r := range removals {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(program, "role", "without", name, "reach", filepath.Dir(program))
			if r.ordinary {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			got := reachedBy(t, cmd)
			got.judge(t, r.wall, r.level)
		})
	}
}

// As in many containers, parts of /proc are hidden and there is no cgroup: then
// nothing can be counted, and the level must not say that it is.
func TestWithoutASightOfProcMemoryIsNotSaidToBeBounded(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to hide parts of /proc: run the test as root")
	}
	full(t)
	program := forEveryone(t)
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("needs the program setpriv: install util-linux")
	}
	script := fmt.Sprintf("mount --make-rprivate / && mount --bind /dev/null /proc/version && exec setpriv --reuid 65534 --regid 65534 --clear-groups %s role reach %s", program, filepath.Dir(program))
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	got := reachedBy(t, cmd)
	got.judge(t, sandbox.LayerMemory, sandbox.Partial)
	if !strings.Contains(got.Message, "a container hides parts of /proc") {
		t.Errorf("how to get it is not said: %s", got.Message)
	}
}
