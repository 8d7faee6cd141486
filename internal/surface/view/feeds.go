package view

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Feeds are feeds as they are listed.
var Feeds = List[host.Feed]{
	Key:    "feeds",
	Titles: []string{"FEED", "OPERATION", "TIMES", "OWNER", "STATE", "NEXT"},
	Fit:    Always,
	Row: func(f host.Feed) []string {
		return []string{f.ID, f.Operation, f.Spec + inZone(f), f.Owner, string(f.State), nextOf(f)}
	},
}

// A FeedShown is a feed with its next times and the last ones.
type FeedShown struct {
	Feed host.Feed       `json:"feed"`
	Last []host.FeedTick `json:"last"`
	Next []time.Time     `json:"next"`
}

// Feed shows a feed with its times.
func Feed(w io.Writer, s FeedShown) error {
	f := s.Feed
	t := terminal.Details(w)
	t.Row("feed", f.ID)
	t.Row("operation", f.Operation)
	t.Row("input", string(f.Input))
	if len(f.Overlay) > 0 {
		t.Row("host", string(f.Overlay))
	}
	t.Row("owner", f.Owner)
	t.Row("times", f.Spec+inZone(f))
	misfire := string(f.Misfire)
	if f.CatchUp > 0 {
		misfire = fmt.Sprintf("%s %d", misfire, f.CatchUp)
	}
	t.Row("misfire", misfire)
	t.Row("overlap", string(f.Overlap))
	t.Row("state", string(f.State))
	if f.Problem != "" {
		t.Row("problem", f.Problem)
	}
	what := "next"
	if f.Next == nil {
		what = "would be next"
	}
	for _, at := range s.Next {
		t.Row(what, terminal.Clock(at))
		what = ""
	}
	return errors.Join(t.Flush(), feedTicks.below(w, s.Last))
}

// FeedTimes says when the runs of a feed that was made are.
func FeedTimes(f host.Feed) string {
	first := "first at " + terminal.Clock(*f.Next)
	if f.AtOnce {
		first = "first at once, then at " + terminal.Clock(*f.Next)
	}
	return fmt.Sprintf("%s runs %s%s, %s, while 'mortise serve' does", f.Operation, f.Spec, inZone(f), first)
}

var feedTicks = List[host.FeedTick]{
	Titles: []string{"TIME", "OUTCOME", "CALL", "STATUS", "CODE"},
	Fit:    Always,
	Row: func(tick host.FeedTick) []string {
		at := terminal.Clock(tick.At)
		if tick.Since != nil {
			at = terminal.Clock(*tick.Since) + " to " + at
		}
		return []string{at, string(tick.Outcome), terminal.Dash(tick.Call), terminal.Dash(tick.Status), terminal.Dash(tick.Code)}
	},
}

func inZone(f host.Feed) string {
	if strings.HasPrefix(f.Spec, "cron ") {
		return " in " + f.Zone
	}
	return ""
}

func nextOf(f host.Feed) string {
	if f.Next == nil {
		return "-"
	}
	return terminal.Clock(*f.Next)
}
