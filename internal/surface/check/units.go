package check

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/mortise-dev/mortise/internal/runtime/interpreter"
	"github.com/mortise-dev/mortise/plugin"
)

// maxJUnit bounds the file that a test program writes its results to.
const maxJUnit = 64 << 20

// A Unit is one of a plugin's own unit tests.
type Unit struct {
	Where   string  `json:"where"` // the module, class or file that it is in
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail,omitempty"`
	Seconds float64 `json:"seconds"`
}

// A junitCase is a test case as pytest, Node, vitest and the SDK write it.
type junitCase struct {
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Name    string        `xml:"name,attr"`
	Time    float64       `xml:"time,attr"`
	Failure *junitMessage `xml:"failure"`
	Error   *junitMessage `xml:"error"`
	Skipped *junitMessage `xml:"skipped"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func (m *junitMessage) String() string {
	if m.Message != "" {
		return m.Message
	}
	return strings.TrimSpace(m.Text)
}

// ReadUnits reads the results of unit tests from JUnit XML, in the order that they
// stand in. It takes at most 64 MiB of it.
func ReadUnits(from io.Reader) ([]Unit, error) {
	units := []Unit{}
	tokens := xml.NewDecoder(io.LimitReader(from, maxJUnit))
	for {
		token, err := tokens.Token()
		if err == io.EOF {
			return units, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the results of the tests: %w", err)
		}
		start, is := token.(xml.StartElement)
		if !is || start.Name.Local != "testcase" {
			continue
		}
		var one junitCase
		if err := tokens.DecodeElement(&one, &start); err != nil {
			return nil, fmt.Errorf("reading the results of the tests: %w", err)
		}
		u := Unit{Where: one.Class, Name: one.Name, Outcome: Pass, Seconds: one.Time}
		if u.Where == "" || u.Where == "test" { // Node writes the same class of all
			u.Where = one.File
		}
		switch {
		case one.Failure != nil:
			u.Outcome, u.Detail = Fail, one.Failure.String()
		case one.Error != nil:
			u.Outcome, u.Detail = Fail, one.Error.String()
		case one.Skipped != nil:
			u.Outcome, u.Detail = Skip, one.Skipped.String()
		}
		units = append(units, u)
	}
}

// ErrTests is how unit tests end of which one failed.
var ErrTests = errors.New("the tests failed")

// Tests runs the unit tests of a plugin in its directory. A failed test is [ErrTests]; that
// the program which runs them is not installed is dependency_missing.
func Tests(ctx context.Context, argv []string, dir string, out, errs io.Writer) error {
	tests := exec.CommandContext(ctx, argv[0], argv[1:]...)
	tests.Dir, tests.Stdout, tests.Stderr = dir, out, errs
	err := tests.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == interpreter.NeedsPytest:
		return plugin.Errorf(plugin.CodeDependencyMissing, "the tests are written for pytest, which is not installed for %s", argv[0])
	case errors.As(err, &exit):
		return ErrTests
	}
	return err
}

// UnitsOf is [ReadUnits] of a file. One that is not there has none: the program ended before a test.
func UnitsOf(file string) ([]Unit, error) {
	results, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return []Unit{}, nil
	} else if err != nil {
		return nil, err
	}
	defer results.Close()
	return ReadUnits(results)
}
