package view

import (
	"fmt"
	"io"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Recovery says whether the host is in recovery, and what waits.
func Recovery(w io.Writer, s host.RecoveryStatus) error {
	if s.Recovery == nil {
		_, err := fmt.Fprintln(w, "the host is not in recovery")
		return err
	}
	why := s.Recovery.Why
	if why == "" {
		why = "ask the administrator for the reason"
	}
	fmt.Fprintf(w, "the host is in recovery: %s, %s\n\n", terminal.Safe(why), terminal.Clock(s.Recovery.Since))
	t := terminal.NewTable(w, "WAITS", "HOW MANY", "SEE")
	for _, row := range []struct {
		what string
		n    int
		see  string
	}{
		{"queued calls", s.Queued, "mortise calls list --state in_progress"},
		{"calls that wait for approval", s.Pending, "mortise approvals list"},
		{"calls whose outcome is unknown", s.Unknown, "mortise calls list --unknown"},
		{"plans that have not ended", s.Plans, "mortise plans list"},
		{"feeds that are not paused", s.Feeds, "mortise feeds list"},
	} {
		t.Row(row.what, fmt.Sprint(row.n), row.see)
	}
	return t.Flush()
}
