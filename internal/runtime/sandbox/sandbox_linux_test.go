package sandbox_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
)

// Started with a first argument of "role", the test binary plays the program
// in a cage, or the host of one, that the second argument names.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "role" {
		roles[os.Args[2]](os.Args[3:])
		return
	}
	goleak.VerifyTestMain(m)
}

func newSandbox(t testing.TB, mode sandbox.Mode) *sandbox.Sandbox {
	t.Helper()
	return newSandboxOf(t, sandbox.Options{Mode: mode})
}

func newSandboxOf(t testing.TB, opts sandbox.Options) *sandbox.Sandbox {
	t.Helper()
	opts.Dir, opts.StartLimit = t.TempDir(), testwait.Limit
	s, err := sandbox.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ended is how a program ended and what it wrote.
type ended struct {
	sandbox.State
	out, err string
	report   sandbox.Report
}

// run runs a program to its end.
func run(t testing.TB, s *sandbox.Sandbox, spec sandbox.Spec) ended {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
	defer cancel()
	if spec.Scratch == "" {
		spec.Scratch = t.TempDir()
	}
	if spec.Limits == (sandbox.Limits{}) {
		spec.Limits = usual
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var texts [2]bytes.Buffer
	var theirs [2]*os.File
	var copied [2]chan struct{}
	for i := range theirs {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		theirs[i], copied[i] = w, make(chan struct{})
		go func() {
			defer close(copied[i])
			_, _ = io.Copy(&texts[i], r)
			_ = r.Close()
		}()
	}
	p, err := s.Start(ctx, spec, sandbox.Files{Stdin: null, Stdout: theirs[0], Stderr: theirs[1]})
	_, _ = theirs[0].Close(), theirs[1].Close()
	if err != nil {
		<-copied[0]
		<-copied[1]
		t.Fatal(err)
	}
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	state := p.Wait()
	p.Release()
	<-copied[0]
	<-copied[1]
	return ended{state, texts[0].String(), texts[1].String(), p.Report()}
}

var usual = sandbox.Limits{Memory: 512 << 20, Scratch: 16 << 20, FileSize: 8 << 20, Processes: 64, OpenFiles: 256}

// shell is a spec for a script of sh.
func shell(t testing.TB, script string) sandbox.Spec {
	t.Helper()
	return sandbox.Spec{
		Argv: []string{"/bin/sh", "-c", script},
		Env:  []string{"PATH=/usr/bin:/bin"},
		Read: existing("/bin", "/usr/bin", "/lib", "/lib64", "/usr/lib"),
	}
}

func existing(paths ...string) []string {
	var there []string
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			there = append(there, path)
		}
	}
	return there
}

// self is a spec for this binary in a role.
func self(t testing.TB, role string, arguments ...string) sandbox.Spec {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Spec{
		Argv: append([]string{program, "role", role}, arguments...),
		Env:  []string{"GORACE=atexit_sleep_ms=0"},
		Read: append(existing("/lib", "/lib64", "/usr/lib"), program),
	}
}

// full returns a sandbox of level full, or skips the test and says what is missing.
func full(t testing.TB) *sandbox.Sandbox { return fullOf(t, 0) }

// sandboxes are the two ways to a launcher: it is forked for the program, or has waited for it.
var sandboxes = map[string]func(t testing.TB) *sandbox.Sandbox{
	"forked": full,
	"waited": func(t testing.TB) *sandbox.Sandbox {
		s := fullOf(t, 8)
		run(t, s, shell(t, "exit 0"))
		if got := s.Waiting(); len(got) != 8 {
			t.Fatalf("%v wait", got)
		}
		return s
	},
}

func fullOf(t testing.TB, ahead int) *sandbox.Sandbox {
	t.Helper()
	s := newSandboxOf(t, sandbox.Options{Mode: sandbox.BestEffort, Standby: ahead > 0})
	s.Keep(ahead)
	if r := s.Report(); r.Level != sandbox.Full {
		t.Skipf("needs a machine that reaches level full, not %s; mortise doctor says what is missing: %+v", r.Level, r.Missing())
	}
	return s
}
