package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) sessionsTimeline() *cobra.Command {
	var f host.TimelineFilter
	var from, to string
	var table bool
	return c.command(spec{
		anywhere: true,
		use:      "timeline [SESSION]",
		short:    "Show the timeline of a session, from its logs and results",
		long: `List what happened when, by the logs of a session and the results of its tools: in the
order of the times, each with its zone and with where it stands. SESSION is that of
MORTISE_SESSION where it is left out. A time without a year has that of --year, or the
one in which its file was registered.`,
		example: `  mortise sessions timeline sess_4f2a --from 2026-03-05T09:00:00Z --to 2026-03-05T10:00:00Z
  mortise sessions timeline --source failed_logins --csv`,
		complete: c.completeSessions,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&from, "from", "", "the first time that is wanted, as RFC 3339 has it")
			cmd.Flags().StringVar(&to, "to", "", "the first time that is not wanted any more")
			cmd.Flags().StringVar(&f.Contains, "contains", "", "only events with this in their text")
			cmd.Flags().StringVar(&f.Source, "source", "", "only events of an artifact, by its id or name, or of a tool")
			cmd.Flags().IntVar(&f.Year, "year", 0, "the year of times that have none")
			cmd.Flags().BoolVar(&table, "csv", false, "print CSV, with the hash of each artifact")
		},
		check: func([]string) (err error) {
			if c.json && table {
				return usage{errors.New("--json and --csv are two forms")}
			}
			if f.Year < 0 || f.Year > 9999 {
				return usage{errors.New("--year is a year of four digits")}
			}
			if f.From, err = moment("from", from); err == nil {
				f.To, err = moment("to", to)
			}
			return err
		},
	}, func(ctx context.Context, q *ask) error {
		given := ""
		if len(q.args) > 0 {
			given = q.args[0]
		}
		in, err := whichSession(given)
		if err != nil {
			return err
		}
		events, err := c.timeline(ctx, q, in, f)
		switch {
		case err != nil:
			return err
		case table:
			return view.TimelineCSV(c.out, events)
		}
		return rowsOf(c, view.Timeline, events)
	})
}

// timeline gathers the events of a session, and says what was left out.
func (c *command) timeline(ctx context.Context, q *ask, in string, f host.TimelineFilter) ([]host.TimelineEvent, error) {
	all, err := q.artifacts(ctx, in)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context, id string) (io.ReadCloser, error) {
		for _, a := range all {
			if a.ID == id {
				return q.Sessions().OpenArtifact(ctx, a.Session, id)
			}
		}
		return nil, fmt.Errorf("there is no artifact %s", id)
	}
	events, notes, err := host.Timeline(ctx, all, open, f)
	for _, note := range notes {
		c.say("%s", note)
	}
	return events, err
}

// moment reads the time of a flag; empty is none.
func moment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	for _, form := range []string{"2006-01-02T15:04:05", time.DateOnly} {
		if err != nil {
			at, err = time.Parse(form, text)
		}
	}
	if err != nil {
		return at, usage{fmt.Errorf("--%s %q is no time such as 2026-03-05T09:00:00Z; without a zone it is UTC", flag, text)}
	}
	return at, nil
}
