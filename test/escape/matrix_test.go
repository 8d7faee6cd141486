//go:build linux && amd64

package escape

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

// A row of matrix.txt says what one probe comes to: with the cage off, at level
// partial, at level full, and why that is harmless where it is not denied.
type row struct{ probe, off, partial, full, why string }

type matrix []row

// row returns the row of a probe.
func (m matrix) row(probe string) (row, bool) {
	for _, r := range m {
		if r.probe == probe {
			return r, true
		}
	}
	return row{probe: probe}, false
}

// compare returns what differs between a run and a column of the matrix. What does
// not work with the cage off either (bare) may fail for any reason.
func (m matrix) compare(r, bare *run, column func(row) string) (problems []string) {
	for _, a := range r.Attempts {
		row, _ := m.row(a.Probe)
		want := column(row)
		switch {
		case a.Outcome == "broken":
			problems = append(problems, fmt.Sprintf("%s did not run: %s", a.Probe, a.Detail))
		case a.Outcome == "allowed" && want != "allowed":
			problems = append(problems, fmt.Sprintf("ESCAPED: %s: %s", a.Probe, a.Detail))
		case a.Outcome != "allowed" && want == "allowed" && bare.outcome(a.Probe) == "allowed":
			problems = append(problems, fmt.Sprintf("%s was %s (%s); matrix.txt says %s", a.Probe, a.Outcome, a.Detail, want))
		}
	}
	for _, row := range m {
		if r.outcome(row.probe) == "" {
			problems = append(problems, fmt.Sprintf("%s did not run; the probe ended with %s %s", row.probe, r.End, r.Stderr))
		}
	}
	return problems
}

func readMatrix(t *testing.T) matrix {
	t.Helper()
	f, err := os.Open("matrix.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var m matrix
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		text, why, _ := strings.Cut(lines.Text(), "#")
		if fields := strings.Fields(text); len(fields) == 4 {
			m = append(m, row{fields[0], fields[1], fields[2], fields[3], strings.TrimSpace(why)})
		} else if len(fields) > 0 {
			t.Fatalf("matrix.txt: %q is not a row", lines.Text())
		}
	}
	return m
}

// TestWhatIsAllowedInACageHasAReason reads the matrix itself.
func TestWhatIsAllowedInACageHasAReason(t *testing.T) {
	counted := 0
	for _, r := range readMatrix(t) {
		if r.partial == "allowed" && r.why == "" {
			t.Errorf("%s is allowed at level partial, and matrix.txt does not say what is missing there", r.probe)
		}
		for _, outcome := range []string{r.off, r.partial, r.full} {
			if outcome != "allowed" && outcome != "denied" {
				t.Errorf("%s: %q is no outcome", r.probe, outcome)
			}
		}
		if r.full == "allowed" && r.why == "" {
			t.Errorf("%s is allowed at level full, and matrix.txt does not say why that is harmless", r.probe)
		}
		if r.off == "allowed" && r.full == "denied" {
			counted++
		}
	}
	if counted < least {
		t.Errorf("%d probes are denied at level full and work with the cage off; at least %d must", counted, least)
	}
}

// TestUpdate rewrites the matrix from the observed results, and keeps the reasons.
func TestUpdate(t *testing.T) {
	if !*update {
		return
	}
	old := map[string]row{}
	for _, r := range readMatrix(t) {
		old[r.probe] = r
	}
	bare, some, all := off.get(t), partial.get(t), full.get(t)
	var out strings.Builder
	group := ""
	for _, a := range bare.Attempts {
		if g, _, _ := strings.Cut(a.Probe, "."); g != group {
			group = g
			out.WriteString("\n")
		}
		r := row{a.Probe, refused(a.Outcome), refused(some.outcome(a.Probe)), refused(all.outcome(a.Probe)), old[a.Probe].why}
		if old[a.Probe].off == "allowed" {
			r.off = "allowed" // where the machine has what it needs
		}
		if r.partial == "denied" && strings.HasPrefix(r.why, "partial:") {
			r.why = "" // no longer
		}
		line := fmt.Sprintf("%-40s %-8s %-8s %-8s", r.probe, r.off, r.partial, r.full)
		if r.why != "" {
			line += " # " + r.why
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	head, err := os.ReadFile("matrix.txt")
	if err != nil {
		t.Fatal(err)
	}
	intro, _, _ := strings.Cut(string(head), "\n\n")
	if err := os.WriteFile("matrix.txt", []byte(intro+"\n"+out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func refused(outcome string) string {
	if outcome == "allowed" {
		return outcome
	}
	return "denied"
}
