//go:build linux && amd64

// Command probe runs inside a cage and tries to get out of it.
//
// Each probe is one attempt with one name. It runs in a process of its own, so
// that a filter which kills ends one attempt and not the rest, and prints one
// line of JSON: what was tried, whether it worked, and what the kernel said.
//
// The rules of a probe are: it tries the real thing, not something like it; where
// it works, it leaves the machine as it was; what only proves permission (a wrong
// argument refused after the check) says so in its code.
//
//	probe list             the names, one a line
//	probe all < config     all of them, in order
//	probe one NAME < config
//	probe survive MARK     leaves processes behind and waits to be killed
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// patience is how long one attempt may take; most take less than a millisecond.
const patience = 3 * time.Second

// A probe is one attempt.
type probe struct {
	name string
	run  func(c canary.Config) result
}

// A line is what a probe prints.
type line struct {
	Probe   string `json:"probe"`
	Outcome string `json:"outcome"` // allowed, denied, unavailable
	Detail  string `json:"detail"`
}

// probes are all attempts, in the order they run.
func probes() []probe {
	var all []probe
	for _, group := range [][]probe{
		state, reading, writing, procfs, signals, debugging, network, local, ring,
		namespaces, mounts, privileges, kernel, devices, shared, links, programs, control, holding,
	} {
		all = append(all, group...)
	}
	return all
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: probe list | all | one NAME | survive MARK")
		os.Exit(2)
	}
	switch os.Args[1] {
	case "list":
		for _, p := range probes() {
			fmt.Println(p.name)
		}
	case "all":
		all()
	case "one":
		one(os.Args[2])
	case "survive":
		survive(os.Args[2])
	case "linger":
		linger(os.Args[2], os.Args[3:])
	case "whoami":
		whoami()
	}
}

// all runs every probe in a process of its own and prints what each printed, or
// how it ended where it did not get to print.
func all() {
	config, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out := bufio.NewWriter(os.Stdout)
	encode := json.NewEncoder(out)
	for _, p := range probes() {
		_ = encode.Encode(apart(p.name, config))
		_ = out.Flush()
	}
}

// apart runs one probe in a process of its own.
func apart(name string, config []byte) line {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out, problem bytes.Buffer
	cmd := exec.CommandContext(ctx, os.Args[0], "one", name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(config), &out, &problem
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var l line
	if json.Unmarshal(out.Bytes(), &l) == nil && l.Probe == name {
		return l
	}
	l = line{Probe: name, Outcome: "denied", Detail: fmt.Sprintf("ended without an answer: %v", err)}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		l.Detail = "still blocked after " + patience.String()
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled():
		l.Detail = "killed: " + exit.Sys().(syscall.WaitStatus).Signal().String()
	case err != nil && problem.Len() > 0:
		l.Outcome, l.Detail = "broken", string(problem.Bytes()[:min(problem.Len(), 600)])
	case err != nil:
		l.Outcome = "broken"
	}
	return l
}

// one runs a probe in this process.
func one(name string) {
	var c canary.Config
	if err := json.NewDecoder(os.Stdin).Decode(&c); err != nil {
		fmt.Fprintln(os.Stderr, "reading the configuration:", err)
		os.Exit(1)
	}
	for _, p := range probes() {
		if p.name == name {
			c.Probe = name
			c.HostPID, c.VictimPID = ofMark(c, c.HostPID), ofMark(c, c.VictimPID)
			r := p.run(c)
			_ = json.NewEncoder(os.Stdout).Encode(line{name, r.outcome, r.detail})
			return
		}
	}
	fmt.Fprintln(os.Stderr, "there is no probe", name)
	os.Exit(2)
}

// ofMark returns a process id of the host, unless the same number is another process
// here: a PID namespace numbers its processes from 1. Then it returns one that no
// process has.
func ofMark(c canary.Config, pid int) int {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err == nil && !bytes.Contains(line, []byte(c.Mark)) {
		return 1<<22 - 1
	}
	return pid
}
