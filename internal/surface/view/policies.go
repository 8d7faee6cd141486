package view

import (
	"fmt"
	"io"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// PolicyTexts are policies as they are listed.
var PolicyTexts = List[host.PolicyText]{
	Titles: []string{"NAME", "SOURCE", "POLICIES", "BY", "AT"},
	Row: func(d host.PolicyText) []string {
		at := "-"
		if d.At != nil {
			at = terminal.Clock(*d.At)
		}
		return []string{d.Name, d.Source, fmt.Sprint(d.Policies), terminal.Dash(d.By), at}
	},
}

// Simulation shows what other policies would decide differently.
func Simulation(w io.Writer, s host.Simulation) error {
	if len(s.Differences) > 0 {
		t := terminal.NewTable(w, "LINE", "PRINCIPAL", "ACTION", "OPERATION", "NOW", "THEN", "BECAUSE")
		for _, d := range s.Differences {
			t.Row(fmt.Sprint(d.Line), d.Principal, string(d.Action), d.Operation, string(d.Now.Verdict), string(d.Then.Verdict), d.Then.Reasons[0])
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d of %d requests would be decided differently\n", len(s.Differences), s.Requests)
	return err
}

// Policies are the policies in force, with the version of the whole.
type Policies struct {
	Documents []host.PolicyText `json:"documents"`
	Version   string            `json:"version"`
}

// CheckedPolicies says whether policies can be used, and what may be wrong with them.
func CheckedPolicies(w, errs io.Writer, count int, problems host.PolicyProblems, warnings []string) (err error) {
	if len(problems) == 0 {
		_, err = fmt.Fprintf(w, "%d policies can be used\n", count)
	} else {
		_, err = fmt.Fprintln(w, terminal.Safe(problems.Error()))
	}
	for _, warning := range warnings {
		Say(errs, "warning: %s", warning)
	}
	return err
}
