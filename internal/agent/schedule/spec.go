package schedule

import (
	"strings"
	"time"
	_ "time/tzdata" // the zones are the same wherever the host runs

	"github.com/netresearch/go-cron"

	"github.com/mortise-dev/mortise/plugin"
)

// The bounds of an interval.
const (
	MinEvery = time.Minute
	MaxEvery = 366 * 24 * time.Hour
)

// A Spec says at which times something is to happen:
//
//	every 1h30m      that long apart, counted from when the schedule was made
//	cron 0 9 * * 1   by the clock on the wall of a time zone
//
// A time on the wall comes once. One that the clock leaves out when it is put forward
// comes at the first moment after; one that it shows twice when it is put back comes
// the first time. For elapsed time, which ignores the wall clock, use every.
type Spec struct {
	text  string
	zone  *time.Location
	every time.Duration      // 0 for cron
	wall  *cron.SpecSchedule // its times are those on the wall, as if the wall were in UTC
}

// fields are the five of crontab(5). Where both fields for days are something
// else than *, a day fits that fits either.
var fields = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom)

// Parse reads a spec. The zone is a name of the time zone database; empty is UTC.
func Parse(text, zone string) (Spec, error) {
	s := Spec{text: strings.Join(strings.Fields(text), " ")}
	var err error
	if s.zone, err = location(zone); err != nil {
		return Spec{}, err
	}
	kind, rest, _ := strings.Cut(s.text, " ")
	switch kind {
	case "every":
		if s.every, err = time.ParseDuration(rest); err != nil || s.every < MinEvery || s.every > MaxEvery || s.every%time.Second != 0 {
			return Spec{}, plugin.Errorf(plugin.CodeInvalidInput, "%.60q is no interval; write whole seconds from %v to %v, such as every 15m or every 1h30m", rest, MinEvery, MaxEvery)
		}
	case "cron":
		if strings.ContainsAny(rest, "=@") {
			return Spec{}, plugin.Errorf(plugin.CodeInvalidInput, "%.60q is no cron expression; write its five fields, such as 0 9 * * 1-5, and name the zone by itself", rest)
		}
		parsed, err := fields.Parse(rest)
		if err != nil {
			return Spec{}, plugin.Errorf(plugin.CodeInvalidInput, "%.60q is no cron expression (minute hour day month weekday): %w", rest, err)
		}
		wall, ok := parsed.(*cron.SpecSchedule)
		if !ok {
			return Spec{}, plugin.Errorf(plugin.CodeInvalidInput, "%.60q is no cron expression of five fields", rest)
		}
		wall.Location, wall.MaxSearchYears = time.UTC, 9 // from one 29th of February to the next, over a year that is none
		if wall.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
			return Spec{}, plugin.Errorf(plugin.CodeInvalidInput, "%.60q never comes: no year has such a day", rest)
		}
		s.wall = wall
	default:
		return Spec{}, plugin.Errorf(plugin.CodeInvalidInput, "%.60q is no schedule; write every 1h, or cron 0 9 * * 1-5", text)
	}
	return s, nil
}

// location finds a zone. Local would mean another one on each machine.
func location(zone string) (*time.Location, error) {
	if zone == "" {
		return time.UTC, nil
	}
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "there is no time zone %.60q; write a name of the time zone database, such as Europe/Berlin", zone)
	}
	return loc, nil
}

// String returns the spec in the form that Parse reads.
func (s Spec) String() string { return s.text }

// Zone returns the name of the time zone.
func (s Spec) Zone() string { return s.zone.String() }

// Next returns the first time after t; zero if there is none. Intervals are
// counted from anchor.
func (s Spec) Next(anchor, t time.Time) time.Time {
	if s.every > 0 {
		if t.Before(anchor) {
			return anchor.Add(s.every)
		}
		return anchor.Add((t.Sub(anchor)/s.every + 1) * s.every)
	}
	for wall := s.wallOf(t); ; {
		if wall = s.wall.Next(wall); wall.IsZero() {
			return wall
		}
		if at := s.moment(wall); at.After(t) {
			return at
		}
	}
}

// Last returns the last time that is after since and not after t; zero if there
// is none.
func (s Spec) Last(anchor, since, t time.Time) time.Time {
	var last time.Time
	if s.every > 0 {
		if t.After(anchor) {
			last = anchor.Add(t.Sub(anchor) / s.every * s.every)
		}
		if !last.After(anchor) {
			return time.Time{} // the anchor itself is none of its times
		}
	} else {
		for wall := s.highest(t).Truncate(time.Second).Add(time.Second); ; { // Prev wants one that is later
			if wall = s.wall.Prev(wall); wall.IsZero() {
				return wall
			}
			if last = s.moment(wall); !last.After(t) {
				break
			}
		}
	}
	if !last.After(since) {
		return time.Time{}
	}
	return last
}

// wallOf returns what the wall shows at t, as a time in UTC.
func (s Spec) wallOf(t time.Time) time.Time {
	_, offset := t.In(s.zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// highest returns the latest that the wall has shown until t: more than at t
// itself where it was put back.
func (s Spec) highest(t time.Time) time.Time {
	highest := s.wallOf(t)
	for p := range s.periodsAround(highest) {
		if !p.end.IsZero() && !p.end.After(t) && p.end.Add(p.offset-1).After(highest) {
			highest = p.end.Add(p.offset - 1)
		}
	}
	return highest
}

// moment returns when the wall first shows a time, or would have if it had not
// been put forward over it.
func (s Spec) moment(wall time.Time) time.Time {
	var shown, skipped time.Time
	for p := range s.periodsAround(wall) {
		at := wall.Add(-p.offset)
		switch {
		case at.Before(p.start):
			if skipped.IsZero() && s.wallOf(p.start.Add(-1)).Before(wall) {
				skipped = p.start // where the one before had ended already
			}
		case p.end.IsZero() || at.Before(p.end):
			if shown.IsZero() || at.Before(shown) {
				shown = at
			}
		}
	}
	if shown.IsZero() {
		return skipped.UTC()
	}
	return shown.UTC()
}

// A period is how long a zone keeps one offset.
type period struct {
	start, end time.Time // end is zero for one without
	offset     time.Duration
}

// periodsAround yields the periods within a day and a half of a time on the
// wall, in their order. No clock is more than that away from UTC, nor put forward
// or back by as much.
func (s Spec) periodsAround(wall time.Time) func(yield func(period) bool) {
	return func(yield func(period) bool) {
		at := wall.Add(-36 * time.Hour).In(s.zone)
		last := wall.Add(36 * time.Hour)
		for {
			_, offset := at.Zone()
			start, end := at.ZoneBounds()
			if !yield(period{start, end, time.Duration(offset) * time.Second}) || end.IsZero() || end.After(last) {
				return
			}
			at = end
		}
	}
}
