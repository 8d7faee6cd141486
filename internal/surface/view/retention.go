package view

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Retention shows each period, and what is older.
func Retention(w io.Writer, states []host.RetentionState) error {
	t := terminal.NewTable(w, "KIND", "PERIOD", "OLDER", "BYTES", "OLDEST", "REMOVED")
	for _, s := range states {
		period, oldest := "kept", "-"
		if s.Days > 0 {
			period = strconv.FormatFloat(math.Round(s.Days*1e4)/1e4, 'f', -1, 64) + "d"
		}
		if !s.Oldest.IsZero() {
			oldest = terminal.Clock(s.Oldest)
		}
		t.Row(s.Kind, period, strconv.FormatInt(s.Count, 10), terminal.Bytes(s.Bytes), oldest, strconv.FormatInt(s.Done, 10))
	}
	return t.Flush()
}

// Erasure says how far an erasure is.
func Erasure(w io.Writer, e host.Erasure) error {
	said := "is done"
	switch {
	case e.DryRun:
		said = "would remove"
	case e.DoneAt.IsZero():
		said = "goes on"
	}
	fmt.Fprintf(w, "the erasure of %s %s\n", terminal.Safe(e.Principal), said)
	for _, kind := range slices.Sorted(maps.Keys(e.Counts)) {
		fmt.Fprintf(w, "  %s: %d\n", terminal.Safe(kind), e.Counts[kind])
	}
	if e.Waiting > 0 {
		fmt.Fprintf(w, "%d calls or plans of theirs have not ended; 'mortise calls list --state unknown' shows those that you have to settle\n", e.Waiting)
	}
	return nil
}

// Erasures shows whose data was erased, and what is under way.
func Erasures(w io.Writer, all []host.Erasure) error {
	t := terminal.NewTable(w, "PRINCIPAL", "ASKED", "BY", "DONE", "WAITING")
	for _, e := range all {
		done := "-"
		if !e.DoneAt.IsZero() {
			done = terminal.Clock(e.DoneAt)
		}
		t.Row(e.Principal, terminal.Clock(e.AskedAt), e.By, done, strconv.FormatInt(e.Waiting, 10))
	}
	return t.Flush()
}
