package view

import (
	"fmt"
	"io"

	"github.com/mortise-dev/mortise/internal/host"
)

// ReportCheck says whether a report holds, and what of it does not.
func ReportCheck(w, errs io.Writer, c host.ReportCheck) error {
	for _, problem := range c.Problems {
		Say(errs, "does not hold: %s", problem)
	}
	if c.More > 0 {
		Say(errs, "and %d others", c.More)
	}
	if !c.Holds() {
		return nil
	}
	_, err := fmt.Fprintf(w, "the report holds: session %s, %d artifacts, %d calls, %d findings, %d events\n", c.Session, c.Artifacts, c.Calls, c.Findings, c.Events)
	return err
}
