package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// part is one step of a run with a result of its own.
type part struct {
	name  string
	about string   // one line for -list
	lane  int      // parts of one lane run one after the other, lanes run in parallel
	after string   // part that must have passed before this one starts
	needs []string // programs that must be installed; install tries to get a missing one
	run   func(*job) error

	// content has the directories that the result depends on, beside the prebuilt
	// programs. A part with content does not run again if nothing of it changed.
	content []string
}

func partNames(parts []part) []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

func printParts(w io.Writer, parts []part) {
	for _, p := range parts {
		fmt.Fprintf(w, "%-22s %s\n", p.name, p.about)
	}
}

// errNotRun is wrapped by the error of a part that could not run on this machine.
var errNotRun = errors.New("not run")

// job is the execution of one part. Its methods are called by one goroutine,
// except note, which is safe for concurrent use.
type job struct {
	ctx    context.Context
	env    *environment
	log    io.Writer // complete output of the part's commands
	result *result
	say    func(string) // shows progress

	mu sync.Mutex // guards result.Skips
}

// runParts runs the lanes in parallel and reports each part as it ends.
func runParts(ctx context.Context, env *environment, parts []part, r *report) {
	done := map[string]chan bool{} // receives whether the part passed, then is closed
	lanes := map[int][]part{}
	for _, p := range parts {
		done[p.name] = make(chan bool, len(parts))
		lanes[p.lane] = append(lanes[p.lane], p)
	}
	var wg sync.WaitGroup
	for _, lane := range lanes {
		wg.Go(func() {
			for _, p := range lane {
				passed := true
				if c, ok := done[p.after]; ok {
					passed = <-c
				}
				if passed {
					passed = runPart(ctx, env, p, r)
				} else {
					r.add(&result{Part: p.name, Status: statusNotRun, Reason: "the part " + p.after + " failed"})
				}
				for range cap(done[p.name]) {
					done[p.name] <- passed
				}
			}
		})
	}
	wg.Wait()
}

// runPart runs one part and reports its result. It returns whether the part
// passed.
func runPart(ctx context.Context, env *environment, p part, r *report) bool {
	res := &result{Part: p.name}
	if ctx.Err() != nil {
		return false
	}
	file, err := os.Create(filepath.Join(env.logs, p.name+".log"))
	if err != nil {
		r.add(res.fail(p.name, "", err.Error()))
		return false
	}
	defer file.Close()
	start := time.Now()
	tail := &tailWriter{limit: 16 << 10}
	j := &job{ctx: ctx, env: env, log: io.MultiWriter(file, tail), result: res}
	j.say = r.progress(p.name, start)
	defer r.endProgress(p.name)
	for _, program := range p.needs {
		if err = env.install(j, program); err != nil {
			break
		}
	}
	var key string
	if err == nil {
		key, err = env.cacheKey(p)
	}
	if err == nil && env.isCached(p, key) {
		res.Status, res.Passed, res.Detail = statusPassed, 1, "(cached)"
		r.add(res)
		return true
	}
	if err == nil {
		err = p.run(j)
	}
	res.Seconds = time.Since(start).Seconds()
	switch {
	case err == nil && len(res.Failures) == 0:
		res.Status = statusPassed
		if res.Passed == 0 {
			res.Passed = 1
		}
		env.keep(p, key)
	case errors.Is(err, errNotRun):
		res.Status, res.Reason = statusNotRun, strings.TrimSuffix(err.Error(), ": "+errNotRun.Error())
	default:
		if len(res.Failures) == 0 {
			res.fail(p.name, "", strings.TrimSpace(tail.String())+"\n"+err.Error())
		}
		res.Status = statusFailed
	}
	r.add(res)
	return res.Status == statusPassed
}

// command runs a program in dir, relative to the repository. The job's log gets
// its output. Extra entries of env override those of the environment.
func (j *job) command(dir string, env []string, name string, args ...string) error {
	return j.pipe(dir, env, j.log, name, args...)
}

// pipe is command with the standard output and error of the program in out.
// The whole process group of the program is killed if the run is interrupted.
func (j *job) pipe(dir string, env []string, out io.Writer, name string, args ...string) error {
	fmt.Fprintf(j.log, "$ %s %s\n", name, strings.Join(args, " "))
	cmd := exec.CommandContext(j.ctx, name, args...)
	cmd.Dir = filepath.Join(j.env.root, dir)
	cmd.Env = append(j.env.variables(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// note records a test that was skipped, with its reason.
func (j *job) note(test, reason string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.result.Skips = append(j.result.Skips, skip{Test: test, Reason: reason})
}

// tailWriter keeps the last bytes written to it.
type tailWriter struct {
	mu    sync.Mutex
	limit int
	kept  []byte
}

func (w *tailWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = append(w.kept, p...)
	if over := len(w.kept) - w.limit; over > 0 {
		w.kept = append(w.kept[:0], w.kept[over:]...)
	}
	return len(p), nil
}

func (w *tailWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.kept)
}
