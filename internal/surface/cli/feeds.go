package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	json2 "github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/input"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) feeds() *cobra.Command {
	return group(spec{
		use:   "feeds",
		short: "Run operations on a schedule",
		long: `Run operations on a schedule, unattended.

A feed runs in the name of who made it, with those of their rights that they still
have. 'mortise serve' makes the runs; each is a call like any other.`,
	}, c.feedsCreate(), c.feedsList(), c.feedsShow(), c.feedsRun(), c.feedsEdit(),
		c.feedsChange("pause", "Let a feed make no more runs", "is paused", client.Feeds.Pause),
		c.feedsChange("resume", "Let a feed go on with the times that come from now on", "goes on", client.Feeds.Resume),
		c.feedsChange("delete", "Forget a feed, its times and its cursors; a run that was begun goes on", "is deleted", client.Feeds.Delete),
		c.feedsChange("reset-cursor", "Let a feed start over: delete how far it got", "starts over with its next run", client.Feeds.ResetCursor))
}

// feedFlags are the flags of `mortise feeds create`.
type feedFlags struct {
	every, cron, zone string
	misfire, overlap  string
	catchUp           int
	params            []string
	knowledge         []string
	ocr               string
}

func (f *feedFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.every, "every", "", "the interval: 15m, 1h30m; 1h where there is no --cron")
	flags.StringVar(&f.cron, "cron", "", "five fields: minute, hour, day, month, weekday")
	flags.StringVar(&f.zone, "zone", "", "the time zone of --cron, such as Europe/Berlin; UTC if empty")
	flags.StringVar(&f.misfire, "misfire", "", "of times at which nothing served: skip, once (one run for all, the default) or catch_up")
	flags.IntVar(&f.catchUp, "catch-up", 0, fmt.Sprintf("how many of the last missed times are run with --misfire catch_up; 1 to %d", host.MaxCatchUp))
	flags.StringVar(&f.overlap, "overlap", "", "of times that come while a run is not over: skip (the default) or queue")
	flags.StringArrayVar(&f.params, "param", nil, "one member of the input: key=value or a.b=value (repeatable)")
	flags.StringArrayVar(&f.knowledge, "kb", nil, "a knowledge base that it is about; the input's kb_id too, where the operation has one (repeatable)")
	flags.StringVar(&f.ocr, "ocr", "", "when text is read from images: always, auto, fallback or never")
	for flag, values := range map[string][]string{"misfire": {"skip", "once", "catch_up"}, "overlap": {"skip", "queue"}, "ocr": {"always", "auto", "fallback", "never"}} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

func (c *command) feedsCreate() *cobra.Command {
	var f feedFlags
	var n host.NewFeed
	return c.change(spec{
		anywhere: true,
		use:      "create PLUGIN[/OPERATION]",
		short:    "Create a feed and print its id",
		long: `Create a feed and print its id.

Without an operation, the plugin's default for feeds is meant. A plugin that lists
what may be scheduled is taken at its word; of one that does not, only what has no
effect outside the host may be.

Times are an interval (--every 15m, counted from now; a Shu plugin runs at once too) or those of a cron expression
on the wall of --zone. A time that the clock leaves out when it is put forward comes
at the first moment after, one that it shows twice comes once.`,
		example: `  mortise feeds create gmail_digest --every 30m --kb team-mail
  mortise feeds create reports/build --cron "0 7 * * 1-5" --zone Europe/Berlin --misfire skip`,
		complete: c.completeOperations,
		flags:    f.add,
		check:    func(args []string) (err error) { n, err = f.feed(args[0]); return err },
	}, func(ctx context.Context, q *ask) (done, error) {
		n.Input = func(t *plugin.Target) (json.RawMessage, error) { return feedInput(t, f, nil) }
		feed, err := q.Feeds().Create(ctx, n)
		if err != nil {
			return done{}, err
		}
		return done{feed, feed.ID, []string{view.FeedTimes(feed)}}, nil
	})
}

func (c *command) feedsEdit() *cobra.Command {
	var f feedFlags
	var n host.NewFeed
	var cursor string
	return c.change(spec{
		anywhere: true,
		use:      "change ID",
		short:    "Change the schedule or input of a feed",
		long: `Give a feed that you made other times or another input. What is not said stays as it is,
and so do its runs and how far it has come, unless --cursor reset has it start over once. It
has a cursor for each knowledge base: one that it was not about before has none yet.`,
		example: `  mortise feeds change 3f21aa --every 15m
  mortise feeds change 3f21aa --param label=work --cursor reset`,
		complete: c.offering(client.Offers.Feeds),
		flags: func(cmd *cobra.Command) {
			f.add(cmd)
			cmd.Flags().StringVar(&cursor, "cursor", "keep", "how far it has come: keep, or reset once")
		},
		check: func([]string) (err error) {
			if cursor != "keep" && cursor != "reset" {
				return usage{errors.New("--cursor is keep or reset")}
			}
			if n, err = f.feed(""); err == nil && n.Op != "" {
				err = usage{errors.New("--param op: a feed keeps its operation; make another feed")}
			}
			return err
		},
	}, func(ctx context.Context, q *ask) (done, error) {
		id, err := q.Feeds().Find(ctx, q.args[0])
		if err != nil {
			return done{}, err
		}
		to := host.FeedChange{Spec: n.Spec, Zone: n.Zone, Misfire: n.Misfire, CatchUp: n.CatchUp, Overlap: n.Overlap, OCR: n.OCR, Knowledge: n.Knowledge, Cursor: host.CursorChoice(cursor)}
		if len(f.params)+len(f.knowledge) > 0 {
			to.Input = func(t *plugin.Target, before json.RawMessage) (json.RawMessage, error) {
				return feedInput(t, f, before)
			}
		}
		feed, err := q.Feeds().Change(ctx, id, to)
		if err != nil {
			return done{}, err
		}
		if feed.Next == nil { // it is paused
			return done{value: feed, said: "feed " + feed.ID + " is changed"}, nil
		}
		return done{feed, "feed " + feed.ID + " is changed, and its cursor " + map[string]string{"reset": "reset", "keep": "kept"}[cursor], []string{view.FeedTimes(feed)}}, nil
	})
}

// feed is what the flags ask for.
func (f *feedFlags) feed(ref string) (host.NewFeed, error) {
	n := host.NewFeed{Plugin: ref, Zone: f.zone, Misfire: host.Misfire(f.misfire), CatchUp: f.catchUp, Overlap: host.Overlap(f.overlap), OCR: f.ocr, Knowledge: f.knowledge}
	for _, param := range f.params {
		if op, isOp := strings.CutPrefix(param, "op="); isOp {
			n.Op = op
		}
	}
	switch {
	case f.every != "" && f.cron != "":
		return n, usage{errors.New("--every and --cron: only one of them")}
	case f.zone != "" && f.cron == "":
		return n, usage{errors.New("--zone is for --cron: an interval is the same everywhere")}
	case f.every != "":
		n.Spec = "every " + f.every
	case f.cron != "":
		n.Spec = "cron " + f.cron
	}
	return n, nil
}

// feedInput puts the input of a feed together, from the one that it has.
func feedInput(t *plugin.Target, f feedFlags, whole json.RawMessage) (json.RawMessage, error) {
	if len(f.knowledge) > 0 && input.Property(t.Operation.Input, "kb_id") != nil {
		members := map[string]json.RawMessage{}
		if len(whole) > 0 {
			if err := json2.Unmarshal(whole, &members); err != nil {
				return nil, err
			}
		}
		id, err := json2.Marshal(f.knowledge[0])
		if err != nil {
			return nil, err
		}
		members["kb_id"] = id
		if whole, err = json2.Marshal(members, json2.Deterministic(true)); err != nil {
			return nil, err
		}
	}
	return withSet(whole, f.params, t)
}

func (c *command) feedsList() *cobra.Command {
	return list(c, spec{anywhere: true, use: "list", short: "List feeds, the newest first", example: "  mortise feeds list --watch", watch: true}, view.Feeds,
		func(ctx context.Context, q *ask) ([]host.Feed, error) { return q.Feeds().List(ctx) })
}

func (c *command) feedsShow() *cobra.Command {
	return show(c, spec{anywhere: true, use: "show ID", short: "Show a feed with its next five times and the last ten", example: "  mortise feeds show 3f21aa", complete: c.offering(client.Offers.Feeds)},
		func(ctx context.Context, q *ask) (s view.FeedShown, err error) {
			id, err := q.Feeds().Find(ctx, q.args[0])
			if err == nil {
				s.Feed, s.Next, s.Last, err = q.Feeds().Show(ctx, id)
			}
			return s, err
		}, view.Feed)
}

func (c *command) feedsRun() *cobra.Command {
	var wait bool
	return c.command(spec{
		anywhere: true,
		use:      "run ID",
		short:    "Run a feed now",
		long: `Run a feed now, in the name of its owner.

It is queued, and 'mortise serve' runs it; with --wait this command does, unless
another process takes it first, and prints the result.`,
		example:  "  mortise feeds run 3f21aa --wait",
		complete: c.offering(client.Offers.Feeds),
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&wait, "wait", false, "carry it out here, and print the result")
		},
	}, func(ctx context.Context, q *ask) error {
		id, err := q.Feeds().Find(ctx, q.args[0])
		if err != nil {
			return err
		}
		res, err := q.Feeds().Run(ctx, id)
		if err != nil {
			return err
		}
		if wait {
			res, err = c.hold(ctx, q, res, 0)
			if closeErr := c.closeBooks(q, true); closeErr != nil {
				return closeErr
			}
			return c.answer(id, res, err)
		}
		return c.did(done{res, res.CallID, []string{fmt.Sprintf("it is queued for 'mortise serve'; 'mortise calls wait %s' runs it here", res.CallID)}})
	})
}

// feedsChange is a command that changes one feed.
func (c *command) feedsChange(verb, short, what string, do func(client.Feeds, context.Context, string) (host.Feed, error)) *cobra.Command {
	return c.change(spec{anywhere: true, use: verb + " ID", short: short, example: "  mortise feeds " + verb + " 3f21aa", complete: c.offering(client.Offers.Feeds)},
		func(ctx context.Context, q *ask) (done, error) {
			id, err := q.Feeds().Find(ctx, q.args[0])
			if err != nil {
				return done{}, err
			}
			f, err := do(q.Feeds(), ctx, id)
			return done{value: f, said: fmt.Sprintf("feed %s %s", f.ID, what)}, err
		})
}
