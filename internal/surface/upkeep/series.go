package upkeep

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/mortise-dev/mortise/internal/host/archive"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// A Series is the scheduled backups of a host, as package archive has it.
type Series = archive.Series

// SeriesOf returns the scheduled backups of a data directory.
func SeriesOf(o BackupOptions) (Series, error) {
	c, at, err := setup.ReadConfig(o.Home, o.Config)
	if err != nil {
		return Series{}, &setup.Error{Err: fmt.Errorf("the configuration cannot be used: %w", err)}
	}
	return Series{Home: o.Home, Config: at, Database: o.Database, Settings: c.Backups}, nil
}

// A SeriesView is what is shown of scheduled backups, and of a dry run of the next one.
type SeriesView struct {
	archive.SeriesStatus
	Plan    *BackupPlan         `json:"plan,omitzero"`    // what the next one would contain
	Surplus []archive.Scheduled `json:"surplus,omitzero"` // what the next one would delete
}

// ShowSeries returns the state of scheduled backups, with a plan of the next one for a dry run.
func ShowSeries(ctx context.Context, s Series, o BackupOptions, dry bool) (v SeriesView, err error) {
	if v.SeriesStatus, err = s.Status(time.Now()); err != nil || !dry {
		return v, err
	}
	plan, err := PlanBackup(ctx, o)
	if err != nil {
		return v, err
	}
	v.Plan = &plan
	v.Surplus, err = s.Surplus()
	return v, err
}

// Write writes it for a person.
func (v SeriesView) Write(w io.Writer) error {
	if v.Directory == "" {
		_, err := fmt.Fprintln(w, "no backups are scheduled: write backups.schedule and backups.directory in mortise.yaml")
		return err
	}
	if v.Plan != nil {
		if err := Planned(w, *v.Plan); err != nil {
			return err
		}
		for _, old := range v.Surplus {
			if _, err := fmt.Fprintf(w, "would delete %s\n", terminal.Safe(old.File)); err != nil {
				return err
			}
		}
	}
	if len(v.Backups) == 0 {
		if _, err := fmt.Fprintf(w, "none yet in %s\n", terminal.Safe(v.Directory)); err != nil {
			return err
		}
	} else {
		t := terminal.NewTable(w, "MADE", "SIZE", "FILE")
		for _, b := range v.Backups {
			t.Row(terminal.Clock(b.MadeAt), terminal.Bytes(b.Bytes), terminal.Safe(b.File))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	next := "no schedule; mortise backup --scheduled writes one"
	if !v.Next.IsZero() {
		next = v.Schedule + ", next " + terminal.Clock(v.Next)
	}
	if v.Overdue {
		next += ", overdue: is a host serving?"
	}
	if _, err := fmt.Fprintf(w, "%s; %d are kept\n", next, v.Keep); err != nil || v.Failed == nil {
		return err
	}
	_, err := fmt.Fprintf(w, "the attempt of %s failed: %s\n", terminal.Clock(v.Failed.At), terminal.OneLine(v.Failed.Message, 300))
	return err
}
