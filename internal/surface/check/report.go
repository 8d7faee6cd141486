package check

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// A Report is what checking a path found.
type Report struct {
	Results []Result `json:"results"`
}

// Failed counts the results that are failures.
func (r *Report) Failed() int { return r.count(Fail) }

func (r *Report) count(outcome Outcome) int {
	n := 0
	for _, result := range r.Results {
		if result.Outcome == outcome {
			n++
		}
	}
	return n
}

// A Result is one check of one plugin.
type Result struct {
	Plugin  string  `json:"plugin"` // its name, or its path where it has none yet
	Check   string  `json:"check"`
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail,omitempty"`
	Row     string  `json:"row,omitempty"` // the requirement that it proves, such as KN-20
}

// String is the result for people, and what more there is to say on lines of its own.
func (r Result) String() string {
	line := fmt.Sprintf("%-7s  %s: %s", r.Outcome, r.Plugin, r.Check)
	detail, more, _ := strings.Cut(r.Detail, "\n")
	if detail != "" {
		line += ": " + detail
	}
	if r.Row != "" && r.Outcome == Fail {
		line += " (" + r.Row + ")"
	}
	if more != "" {
		line += "\n" + more
	}
	return line
}

// An Outcome is how a check ended.
type Outcome string

// The outcomes. A check that could not be made says why.
const (
	Pass Outcome = "pass"
	Fail Outcome = "fail"
	Warn Outcome = "warn"
	Skip Outcome = "not run"
)

// A testSuites is a report as other programs read it.
type testSuites struct {
	XMLName  xml.Name    `xml:"testsuites"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Suites   []testSuite `xml:"testsuite"`
}

type testSuite struct {
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Skipped  int        `xml:"skipped,attr"`
	Cases    []testCase `xml:"testcase"`
}

type testCase struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	Failure *message `xml:"failure,omitempty"`
	Skipped *message `xml:"skipped,omitempty"`
	Out     string   `xml:"system-out,omitempty"`
}

type message struct {
	Text string `xml:"message,attr"`
	Type string `xml:"type,attr,omitempty"` // the row
}

// WriteJUnit writes the report as JUnit XML: a suite for each plugin and each
// operation, a case for each check. A warning passes, and stands in the output
// of its case.
func (r *Report) WriteJUnit(w io.Writer) error {
	all := testSuites{Name: "mortise check", Tests: len(r.Results), Failures: r.Failed(), Skipped: r.count(Skip)}
	places := map[string]int{}
	for _, result := range r.Results {
		place, known := places[result.Plugin]
		if !known {
			place = len(all.Suites)
			places[result.Plugin] = place
			all.Suites = append(all.Suites, testSuite{Name: result.Plugin})
		}
		suite := &all.Suites[place]
		suite.Tests++
		one := testCase{Class: result.Plugin, Name: result.Check}
		switch result.Outcome {
		case Fail:
			suite.Failures++
			one.Failure = &message{result.Detail, result.Row}
		case Skip:
			suite.Skipped++
			one.Skipped = &message{result.Detail, ""}
		case Warn:
			one.Out = "warning: " + result.Detail
		}
		suite.Cases = append(suite.Cases, one)
	}
	raw, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, raw)
	return err
}
