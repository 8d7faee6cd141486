package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Statuses of a part.
const (
	statusPassed = "passed"
	statusFailed = "failed"
	statusNotRun = "not run"
)

// result is the outcome of one part. Passed, Cached and Skips count tests; a
// part without separate tests counts as one.
type result struct {
	Part     string    `json:"part"`
	Status   string    `json:"status"`
	Reason   string    `json:"reason,omitempty"` // why the part did not run
	Seconds  float64   `json:"seconds"`
	Passed   int       `json:"passed"`
	Detail   string    `json:"detail,omitempty"`
	Failures []failure `json:"failures,omitempty"`
	Skips    []skip    `json:"skips,omitempty"`
}

// failure is one test that failed, or a package that could not be tested.
type failure struct {
	Test    string `json:"test"`
	Package string `json:"package,omitempty"`
	Output  string `json:"output"`
}

// skip is one test that did not run.
type skip struct {
	Test   string `json:"test"`
	Reason string `json:"reason"`
}

func (r *result) fail(test, pkg, output string) *result {
	r.Status = statusFailed
	r.Failures = append(r.Failures, failure{Test: test, Package: pkg, Output: output})
	return r
}

// report prints results as parts end. Its methods may be called concurrently.
type report struct {
	out      io.Writer
	asJSON   bool
	terminal bool
	start    time.Time

	mu      sync.Mutex
	results []*result
	active  map[string]string // part to its last progress
	shown   time.Time
	stop    chan struct{}
	stopped sync.WaitGroup
}

// progressInterval is the time between two progress lines if the output is not a
// terminal.
const progressInterval = 30 * time.Second

// newReport starts a goroutine that prints progress. finish ends it.
func newReport(out *os.File, asJSON bool) *report {
	r := &report{out: out, asJSON: asJSON, start: time.Now(), active: map[string]string{}, stop: make(chan struct{})}
	if info, err := out.Stat(); err == nil {
		r.terminal = info.Mode()&os.ModeCharDevice != 0
	}
	if !asJSON {
		r.stopped.Go(r.printProgress)
	}
	return r
}

func (r *report) printProgress() {
	every := progressInterval
	if r.terminal {
		every = time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
			r.mu.Lock()
			if line := r.progressLine(); line != "" && r.terminal {
				fmt.Fprintf(r.out, "\r\x1b[K%.118s", line)
			} else if line != "" {
				fmt.Fprintln(r.out, line)
			}
			r.mu.Unlock()
		}
	}
}

// progressLine describes the running parts. The caller holds the lock.
func (r *report) progressLine() string {
	var names []string
	for name, text := range r.active {
		names = append(names, strings.TrimSpace(name+" "+text))
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("      %4.0f s: %s", time.Since(r.start).Seconds(), strings.Join(names, "; "))
}

// progress returns a function that sets the progress of a part.
func (r *report) progress(part string, _ time.Time) func(string) {
	set := func(text string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.active[part] = text
	}
	set("")
	return set
}

func (r *report) endProgress(part string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.active, part)
}

// add prints and keeps the result of a part.
func (r *report) add(res *result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, res)
	delete(r.active, res.Part)
	if r.asJSON {
		_ = json.NewEncoder(r.out).Encode(res)
		return
	}
	if r.terminal {
		fmt.Fprint(r.out, "\r\x1b[K")
	}
	detail := res.Detail
	if res.Status == statusNotRun {
		detail = res.Reason
	}
	mark := map[string]string{statusPassed: "ok", statusFailed: "FAIL", statusNotRun: "not run"}[res.Status]
	fmt.Fprintf(r.out, "%-8s%-24s%8.1f s  %s\n", mark, res.Part, res.Seconds, detail)
}

// maxOutput bounds the lines that are printed of one failed test.
const maxOutput = 60

// finish prints the skipped tests, the failures and the counts. It returns the
// exit status.
func (r *report) finish() int {
	close(r.stop)
	r.stopped.Wait()
	passed, failed, skipped := 0, 0, 0
	var failures []failure
	reasons := map[string][]string{}
	for _, res := range r.results {
		passed += res.Passed
		failed += len(res.Failures)
		skipped += len(res.Skips)
		for _, f := range res.Failures {
			f.Test = strings.TrimSpace(res.Part + ": " + f.Test)
			failures = append(failures, f)
		}
		for _, s := range res.Skips {
			reasons[s.Reason] = append(reasons[s.Reason], s.Test)
		}
		if res.Status == statusNotRun {
			skipped++
		}
	}
	if r.asJSON {
		_ = json.NewEncoder(r.out).Encode(map[string]any{
			"passed": passed, "failed": failed, "skipped": skipped, "seconds": time.Since(r.start).Seconds(),
		})
	} else {
		r.printSkips(reasons)
		r.printFailures(failures)
		fmt.Fprintf(r.out, "\n%.0f s in all\n", time.Since(r.start).Seconds())
		fmt.Fprintf(r.out, "tests: %d passed, %d failed, %d skipped\n", passed, failed, skipped)
	}
	if failed > 0 {
		return 1
	}
	return 0
}

func (r *report) printSkips(reasons map[string][]string) {
	if len(reasons) == 0 {
		return
	}
	fmt.Fprintln(r.out, "\nSkipped tests, by reason:")
	for _, reason := range slices.Sorted(func(yield func(string) bool) {
		for reason := range reasons {
			if !yield(reason) {
				return
			}
		}
	}) {
		tests := reasons[reason]
		slices.Sort(tests)
		fmt.Fprintf(r.out, "  %s\n", reason)
		for _, test := range tests {
			fmt.Fprintf(r.out, "      %s\n", test)
		}
	}
}

// printFailures prints the output of each failed test, and then the names alone,
// so that the end of a log that was cut still has them.
func (r *report) printFailures(failures []failure) {
	for _, f := range failures {
		lines := strings.Split(strings.TrimRight(f.Output, "\n"), "\n")
		fmt.Fprintf(r.out, "\n--- %s %s\n", f.Test, f.Package)
		if len(lines) > maxOutput {
			fmt.Fprintf(r.out, "(%d lines above; the whole output is in bin/test/logs)\n", len(lines)-maxOutput)
			lines = lines[len(lines)-maxOutput:]
		}
		for _, line := range lines {
			fmt.Fprintf(r.out, "    %s\n", line)
		}
	}
	if len(failures) > 0 {
		fmt.Fprintln(r.out, "\nFailed:")
		for _, f := range failures {
			fmt.Fprintf(r.out, "  %s %s\n", f.Test, f.Package)
		}
	}
}
