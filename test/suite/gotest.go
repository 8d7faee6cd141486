package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// goTest is one invocation of `go test`.
type goTest struct {
	dir      string   // relative to the repository
	packages []string // patterns or import paths
	flags    []string
	env      []string
}

// goTest runs Go tests and adds their results to the part's. It returns an error
// if the tests could not be run. A failed test is a failure of the result and no
// error.
func (j *job) goTest(t goTest) error {
	args := []string{"test", "-json", "-vet=off", "-timeout=60m", "-ldflags=-s -w"}
	if j.env.fresh {
		args = append(args, "-count=1")
	}
	args = slices.Concat(args, t.flags, t.packages)
	reader, writer := io.Pipe()
	parsed := make(chan struct{})
	events := newTestEvents(j)
	go func() { // ends when writer is closed below
		defer close(parsed)
		events.read(reader)
	}()
	err := j.pipe(t.dir, t.env, writer, "go", args...)
	writer.Close()
	<-parsed
	j.result.Detail = events.summary()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(j.result.Failures) > 0 && j.ctx.Err() == nil {
		return nil
	}
	return err
}

// testEvent is a line of `go test -json`; see `go doc test2json`.
type testEvent struct {
	Action      string
	Package     string
	ImportPath  string // of build output
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// testEvents collects the events of one `go test -json`.
type testEvents struct {
	job      *job
	output   map[[2]string]*bytes.Buffer // of a running test, by package and name
	build    map[string]*bytes.Buffer    // of the compiler, by import path
	failed   map[string]bool             // packages with a failed test
	slow     []packageTime
	packages int
	cached   int
	passed   int
}

type packageTime struct {
	name    string
	seconds float64
}

func newTestEvents(j *job) *testEvents {
	return &testEvents{job: j, output: map[[2]string]*bytes.Buffer{}, build: map[string]*bytes.Buffer{}, failed: map[string]bool{}}
}

// maxTestOutput bounds the output that is kept of one test, in bytes.
const maxTestOutput = 64 << 10

func (e *testEvents) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var event testEvent
			if json.Unmarshal(line, &event) == nil && event.Action != "" {
				e.add(event)
			} else {
				_, _ = e.job.log.Write(line)
			}
		}
		if err != nil {
			return
		}
	}
}

func (e *testEvents) add(event testEvent) {
	key := [2]string{event.Package, event.Test}
	switch event.Action {
	case "output":
		_, _ = io.WriteString(e.job.log, event.Output)
		appendBounded(e.output, key, event.Output)
	case "build-output":
		_, _ = io.WriteString(e.job.log, event.Output)
		appendBounded(e.build, event.ImportPath, event.Output)
	case "pass", "skip":
		e.end(key, event)
	case "fail":
		e.fail(key, event)
	}
}

func appendBounded[K comparable](buffers map[K]*bytes.Buffer, key K, text string) {
	b := buffers[key]
	if b == nil {
		b = &bytes.Buffer{}
		buffers[key] = b
	}
	b.WriteString(text)
	if over := b.Len() - maxTestOutput; over > 0 {
		b.Next(over)
	}
}

// end records a test that passed or was skipped, or a package that did.
func (e *testEvents) end(key [2]string, event testEvent) {
	var text string
	if b := e.output[key]; b != nil {
		text = b.String()
	}
	delete(e.output, key)
	switch {
	case event.Test == "":
		e.endPackage(event, strings.Contains(text, "(cached)"))
	case event.Action == "skip":
		e.job.note(shorten(event.Package)+"."+event.Test, skipReason(text))
	default:
		e.passed++
		if !strings.Contains(event.Test, "/") {
			e.job.result.Passed++
		}
	}
}

func (e *testEvents) endPackage(event testEvent, cached bool) {
	if event.Action == "skip" { // it has no tests
		return
	}
	e.packages++
	if cached {
		e.cached++
	}
	e.slow = append(e.slow, packageTime{shorten(event.Package), event.Elapsed})
	e.job.say(fmt.Sprintf("%d packages, %s", e.packages, shorten(event.Package)))
}

func (e *testEvents) fail(key [2]string, event testEvent) {
	var text string
	if b := e.output[key]; b != nil {
		text = b.String()
	}
	delete(e.output, key)
	if event.Test == "" {
		e.packages++
		e.slow = append(e.slow, packageTime{shorten(event.Package), event.Elapsed})
		if e.failed[event.Package] { // its failed tests have been recorded
			return
		}
		if b := e.build[event.FailedBuild]; b != nil {
			text = b.String() + text
		}
		for unfinished, b := range e.output { // after a panic or a timeout
			if unfinished[0] == event.Package {
				text += b.String()
			}
		}
		e.job.result.fail("(the package)", shorten(event.Package), text)
		return
	}
	// A failed subtest fails its parents too. Only the parent's own output is new.
	parentOnly := e.failed[event.Package+"\x00"+event.Test]
	for name := event.Test; ; {
		e.failed[event.Package+"\x00"+name] = true
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			break
		}
		name = name[:i]
	}
	e.failed[event.Package] = true
	if parentOnly {
		return
	}
	e.job.result.fail(event.Test, shorten(event.Package), text)
}

// summary returns the counts and the slowest packages.
func (e *testEvents) summary() string {
	slices.SortFunc(e.slow, func(a, b packageTime) int { return int((b.seconds - a.seconds) * 1000) })
	text := fmt.Sprintf("%d packages (%d cached), %d tests", e.packages, e.cached, e.passed)
	var slowest []string
	for _, p := range e.slow[:min(3, len(e.slow))] {
		slowest = append(slowest, fmt.Sprintf("%s %s", p.name, time.Duration(p.seconds*float64(time.Second)).Round(time.Second)))
	}
	for _, p := range e.slow {
		fmt.Fprintf(e.job.log, "%8.1f s  %s\n", p.seconds, p.name)
	}
	if len(slowest) > 0 && e.slow[0].seconds >= 1 {
		text += "; slowest: " + strings.Join(slowest, ", ")
	}
	return text
}

// skipReason returns the text that a test gave t.Skip.
func skipReason(output string) string {
	reason := "no reason given"
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") || line == "" {
			continue
		}
		if i := strings.Index(line, ".go:"); i >= 0 { // "file_test.go:12: reason"
			if _, text, ok := strings.Cut(line[i+len(".go:"):], ": "); ok {
				line = text
			}
		}
		reason = line
	}
	return reason
}

// shorten removes the module path from an import path.
func shorten(pkg string) string {
	return strings.TrimPrefix(strings.TrimPrefix(pkg, modulePath), "/")
}

const modulePath = "github.com/mortise-dev/mortise"
