//go:build linux && amd64

// Package escape lets a program loose in a cage that tries to get out of it, in
// more than 500 ways, and counts which of them work.
//
// The program is probe. It runs three times: with the cage off, to show that its
// attempts are real ones; at level partial, on a machine made to refuse user
// namespaces; and at level full. What each attempt must come to is in matrix.txt.
// Canaries outside (package canary) check the result independently of what the probe
// reports.
//
//	go test ./test/escape -v
//	go test ./test/escape -update     writes what was seen into matrix.txt
package escape

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/test/escape/canary"
)

// least is how many attempts must be shown to work without a cage, for the count
// of those that fail in one to mean something.
const least = 150

var update = flag.Bool("update", false, "write what was seen into matrix.txt")

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "victim":
		canary.Victim()
	case len(os.Args) > 2 && os.Args[1] == "host":
		if err := becomeHost(); err != nil {
			fmt.Fprintln(os.Stderr, "host:", err)
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

// TestWithTheCageOffTheProbesSucceed shows that the attempts are real: each one
// that the matrix says works without a cage does, or the machine lacks what it
// needs, and then it does not count at any level.
func TestWithTheCageOffTheProbesSucceed(t *testing.T) {
	r := off.get(t)
	matrix := readMatrix(t)
	shown := 0
	for _, a := range r.Attempts {
		row, ok := matrix.row(a.Probe)
		switch {
		case !ok:
			t.Errorf("%s is not in matrix.txt; go test ./test/escape -update puts it there", a.Probe)
		case a.Outcome == "broken":
			t.Errorf("%s did not run: %s", a.Probe, a.Detail)
		case a.Outcome == "allowed" && row.off == "allowed":
			shown++
		case a.Outcome == "allowed":
			t.Errorf("%s worked with the cage off (%s); matrix.txt says it never does", a.Probe, a.Detail)
		case row.off == "allowed":
			t.Logf("not run: %s: it does not work here even with the cage off: %s", a.Probe, a.Detail)
		}
	}
	t.Logf("%d of %d probes work with the cage off", shown, len(r.Attempts))
	if !r.Live {
		t.Error("no link in scratch leads outside: reading through one would prove nothing")
	}
	for kind, n := range r.Evidence.Connections {
		if n == 0 {
			t.Errorf("the %s listener heard nothing with the cage off: its silence in a cage would prove nothing", kind)
		}
	}
	if e := r.Evidence; e.Signals == 0 || len(e.Files) < 20 || e.Messages == 0 || (os.Geteuid() == 0 && len(e.Escaped) == 0) {
		t.Errorf("with the cage off the canaries saw too little: %d signals, %d files, %d messages, %d files elsewhere",
			e.Signals, len(e.Files), e.Messages, len(e.Escaped))
	}
	switch {
	case shown >= least:
	case os.Geteuid() == 0:
		t.Errorf("%d probes could be shown to work; at least %d must", shown, least)
	default:
		t.Skipf("%d probes could be shown to work, fewer than %d: many need root; run as root for the rest", shown, least)
	}
}

// TestAtLevelFullNoProbeEscapes is the promise: nothing that works without a
// cage works in a full one, but for what the matrix says is harmless, and why.
func TestAtLevelFullNoProbeEscapes(t *testing.T) {
	r := full.get(t)
	if r.Report.Level != sandbox.Full {
		t.Skipf("this machine reaches level %s, so nothing was shown about level full; missing: %s", r.Report.Level, missing(r.Report))
	}
	matches(t, r, func(row row) string { return row.full })
	silent(t, r)
	if len(r.Evidence.Files) > 0 {
		t.Errorf("files outside were changed: %q", r.Evidence.Files)
	}
}

// TestAtLevelPartialTheOutcomeIsExactlyTheMatrix runs where user namespaces are
// forbidden: what is then still denied, and what no longer is, is written down.
func TestAtLevelPartialTheOutcomeIsExactlyTheMatrix(t *testing.T) {
	r := partial.get(t)
	if r.Report.Level != sandbox.Partial {
		t.Skipf("where user namespaces are forbidden, level %s is reached; missing: %s", r.Report.Level, missing(r.Report))
	}
	matches(t, r, func(row row) string { return row.partial })
	for kind, n := range r.Evidence.Connections {
		if n > 0 && !strings.HasPrefix(kind, "unix") {
			t.Errorf("the %s listener of the host heard %d times at level partial", kind, n)
		}
	}
}

// TestAHoleWouldBeSeen compares the run without a cage with what a full one
// promises: each probe that works must be called an escape.
func TestAHoleWouldBeSeen(t *testing.T) {
	bare, escapes := off.get(t), 0
	for _, problem := range readMatrix(t).compare(bare, bare, func(row row) string { return row.full }) {
		if strings.HasPrefix(problem, "ESCAPED: ") {
			escapes++
		}
	}
	if escapes == 0 || (os.Geteuid() == 0 && escapes < least) {
		t.Errorf("%d escapes were seen without a cage", escapes)
	}
}

// TestWithLessThanFullNothingStartsWhereItIsRequired is the other half of the
// promise: a host that must have a full cage starts nothing in a lesser one.
func TestWithLessThanFullNothingStartsWhereItIsRequired(t *testing.T) {
	r := partial.get(t)
	if r.Report.Level == sandbox.Full {
		t.Skip("this machine could not be made to refuse a full cage")
	}
	if r.Required != string(plugin.CodeIsolationUnavailable) {
		t.Errorf("with sandbox: required the launch came to %q, not to %q", r.Required, plugin.CodeIsolationUnavailable)
	}
}

// TestAnOrdinaryUsersCageHoldsAsWell runs the cage as a user without privileges,
// as most hosts should. Such a user may have no control groups; the walls are the
// same ones.
func TestAnOrdinaryUsersCageHoldsAsWell(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("the test of level full ran as an ordinary user already")
		return
	}
	r := ordinary.get(t)
	t.Logf("level %s; missing: %s", r.Report.Level, missing(r.Report))
	for _, l := range r.Report.Missing() {
		if l.Name != sandbox.LayerMemory && l.Name != sandbox.LayerProcesses {
			t.Skipf("an ordinary user has no full cage here; missing: %s", missing(r.Report))
		}
	}
	matches(t, r, func(row row) string { return row.full })
	silent(t, r)
	if len(r.Evidence.Files) > 0 {
		t.Errorf("files outside were changed: %q", r.Evidence.Files)
	}
}

// Fewer probes work at a higher level of isolation. The test prints how many probes worked at
// each level, by group. TestAtLevelFullNoProbeEscapes and its neighbors hold each probe to the matrix.
func TestAHigherLevelDeniesMoreProbes(t *testing.T) {
	bare, some, all := off.get(t), partial.get(t), full.get(t)
	var groups []string
	count := map[string][4]int{}
	for _, a := range bare.Attempts {
		group, _, _ := strings.Cut(a.Probe, ".")
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
		n, sum := count[group], count["in all"]
		for i, worked := range []bool{true, a.Outcome == "allowed", some.outcome(a.Probe) == "allowed", all.outcome(a.Probe) == "allowed"} {
			if worked {
				n[i]++
				sum[i]++
			}
		}
		count[group], count["in all"] = n, sum
	}
	t.Logf("%-10s %8s %12s %12s %12s", "group", "probes", "work off", "at "+string(some.Report.Level), "at "+string(all.Report.Level))
	for _, group := range append(groups, "in all") {
		n := count[group]
		t.Logf("%-10s %8d %12d %12d %12d", group, n[0], n[1], n[2], n[3])
	}
	last, below := count["in all"][1], sandbox.None
	for i, r := range []*run{some, all} {
		worked := count["in all"][2+i]
		if r.Report.Level != below && worked >= last {
			t.Errorf("%d probes work at level %s, want fewer than the %d that work at level %s", worked, r.Report.Level, last, below)
		}
		last, below = worked, r.Report.Level
	}
}

// matches compares a run with a column of the matrix, and prints which attempts
// worked.
func matches(t *testing.T, r *run, column func(row) string) {
	t.Helper()
	matrix, bare := readMatrix(t), off.get(t)
	for _, problem := range matrix.compare(r, bare, column) {
		t.Error(problem)
	}
	denied, counted := 0, 0
	for _, a := range r.Attempts {
		row, _ := matrix.row(a.Probe)
		if a.Outcome == "allowed" {
			t.Logf("allowed: %-36s %s (%s)", a.Probe, row.why, a.Detail)
		}
		if row.off == "allowed" && bare.outcome(a.Probe) == "allowed" {
			counted++
			if a.Outcome != "allowed" {
				denied++
			}
		}
	}
	t.Logf("level %s: %d of %d probes that work with the cage off are denied, in %v", r.Report.Level, denied, counted, r.Took.Round(time.Millisecond))
}

// silent fails if a canary saw anything.
func silent(t *testing.T, r *run) {
	t.Helper()
	e := r.Evidence
	for kind, n := range e.Connections {
		if n > 0 {
			t.Errorf("the %s listener of the host heard %d times", kind, n)
		}
	}
	if e.Signals > 0 || e.Messages > 0 || len(e.Escaped) > 0 {
		t.Errorf("%d signals reached the victim, %d messages the queues, and files outside are %q", e.Signals, e.Messages, e.Escaped)
	}
}

func missing(r sandbox.Report) string {
	var all []string
	for _, l := range r.Missing() {
		all = append(all, l.Name+" ("+l.Why+")")
	}
	return strings.Join(all, "; ")
}

func (r *run) outcome(probe string) string {
	i := slices.IndexFunc(r.Attempts, func(a attempt) bool { return a.Probe == probe })
	if i < 0 {
		return ""
	}
	return r.Attempts[i].Outcome
}
