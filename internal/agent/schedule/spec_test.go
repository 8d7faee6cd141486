package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/plugin"
)

// parse reads a spec or ends the test.
func parse(t *testing.T, text, zone string) schedule.Spec {
	t.Helper()
	s, err := schedule.Parse(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t.UTC()
}

func TestSpecsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, zone string }{
		{"", ""}, {"hourly", ""}, {"every", ""}, {"every 1x", ""}, {"every 59s", ""}, {"every -1h", ""}, {"every 90.5s", ""}, {"every 9000h", ""},
		{"cron", ""}, {"cron * * * *", ""}, {"cron * * * * * *", ""}, {"cron 60 * * * *", ""}, {"cron 0 9 30 2 *", ""}, {"cron 0 9 31 4,6 *", ""},
		{"cron @daily", ""}, {"cron @every 1s", ""}, {"cron TZ=UTC 0 9 * * *", ""}, {"cron CRON_TZ=UTC 0 9 * * *", ""},
		{"every 1h", "Europe/Atlantis"}, {"every 1h", "Local"}, {"every 1h", "../etc/passwd"},
	} {
		if _, err := schedule.Parse(test.text, test.zone); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%q in %q: %v, want invalid_input", test.text, test.zone, err)
		}
	}
}

func TestIntervalsAreCountedFromTheirAnchor(t *testing.T) {
	t.Parallel()
	s, anchor := parse(t, "every 1h30m", ""), at("2026-02-03T04:05:06Z")
	for _, test := range []struct{ t, next, last string }{
		{"2026-02-03T04:05:06Z", "2026-02-03T05:35:06Z", ""},
		{"2026-02-01T00:00:00Z", "2026-02-03T05:35:06Z", ""},
		{"2026-02-03T05:35:05Z", "2026-02-03T05:35:06Z", ""},
		{"2026-02-03T05:35:06Z", "2026-02-03T07:05:06Z", "2026-02-03T05:35:06Z"},
		{"2036-02-03T04:05:06Z", "2036-02-03T05:35:06Z", "2036-02-03T04:05:06Z"},
	} {
		if got := s.Next(anchor, at(test.t)); got != at(test.next) {
			t.Errorf("after %s comes %v, want %s", test.t, got, test.next)
		}
		got := s.Last(anchor, time.Time{}, at(test.t))
		if test.last == "" && !got.IsZero() || test.last != "" && got != at(test.last) {
			t.Errorf("until %s the last is %v, want %q", test.t, got, test.last)
		}
	}
}

// A time on the wall comes once: also where the wall leaves it out (F27), and
// where it shows it twice.
func TestChangesOfTheClock(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, spec, zone, from string
		want                   []string
	}{
		{"put forward by an hour", "cron 30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"several that are left out are one", "cron */20 2 * * *", "Europe/Berlin", "2026-03-28T02:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"one that is left out and the first after it are one", "cron 30 2,3 * * *", "America/New_York", "2026-03-08T06:00:00Z",
			[]string{"2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z", "2026-03-09T06:30:00Z"}},
		{"put back by an hour", "cron 30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"every hour of the wall", "cron 0 * * * *", "Europe/Berlin", "2026-10-24T23:00:00Z",
			[]string{"2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z", "2026-10-25T03:00:00Z"}},
		{"forward by half an hour", "cron 15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{"back by half an hour", "cron 45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z",
			[]string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		{"a day that there was not", "cron 0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z",
			[]string{"2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"}},
		{"either of two day fields", "cron 0 0 1 * 1", "UTC", "2026-05-28T00:00:00Z",
			[]string{"2026-06-01T00:00:00Z", "2026-06-08T00:00:00Z"}},
		{"a leap day", "cron 0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
	} {
		s, now := parse(t, test.spec, test.zone), at(test.from)
		for _, want := range test.want {
			got := s.Next(time.Time{}, now)
			if got != at(want) {
				t.Errorf("%s: after %v comes %v, want %s", test.name, now, got, want)
			}
			if back := s.Last(time.Time{}, now, got); back != got {
				t.Errorf("%s: the last until %v is %v", test.name, got, back)
			}
			now = at(want)
		}
	}
}

// The times equal those of a reference that walks the wall clock and tests each minute
// against the expression: for 6 zones and 20 expressions over 13 months, and one zone
// under the race detector, which has nothing to find in what only computes.
// MORTISE_CRON_ZONES and MORTISE_CRON_SPECS ask for more, MORTISE_CRON_MONTHS for longer.
func TestTimesAreThoseOfAPersonWhoWatchesTheClock(t *testing.T) {
	t.Parallel()
	zones := []string{
		"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kolkata", "America/Santiago",
		"UTC", "Europe/London", "Europe/Dublin", "Europe/Moscow", "America/St_Johns", "America/Los_Angeles", "America/Sao_Paulo", "America/Havana", "America/Caracas",
		"Asia/Tehran", "Asia/Kathmandu", "Asia/Tokyo", "Asia/Gaza", "Asia/Beirut", "Asia/Shanghai", "Africa/Cairo", "Africa/Johannesburg", "Atlantic/Azores",
		"Australia/Sydney", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Apia", "Pacific/Kiritimati", "Antarctica/Troll",
	}
	zones = zones[:min(asked("MORTISE_CRON_ZONES", watched), len(zones))]
	random := rand.New(rand.NewPCG(27, 16))
	var specs []string
	for range asked("MORTISE_CRON_SPECS", 20) {
		specs = append(specs, randomSpec(random))
	}
	for _, zone := range zones {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			from := at("2026-01-01T00:00:00Z")
			watch := watchWall(t, zone, from, from.AddDate(0, asked("MORTISE_CRON_MONTHS", 13), 0))
			for _, text := range specs {
				s, now, n := parse(t, "cron "+text, zone), from, 0
				want := watch.times(t, text)
				for _, moment := range want {
					got := s.Next(time.Time{}, now)
					if !got.Equal(moment) {
						t.Fatalf("%s: after %v comes %v, want %v", text, now, got, moment)
					}
					if n++; n%97 == 0 || n < 10 { // backward is slower
						if last := s.Last(time.Time{}, from, moment.Add(time.Duration(n%3)*time.Second)); !last.Equal(moment) {
							t.Fatalf("%s: the last until %v is %v", text, moment, last)
						}
						if before := s.Last(time.Time{}, from, moment.Add(-1)); n > 1 && !before.Equal(now) {
							t.Fatalf("%s: the last before %v is %v, want %v", text, moment, before, now)
						}
					}
					now = moment
				}
				if got := s.Next(time.Time{}, now); got.Before(watch.end) {
					t.Fatalf("%s: after the last, %v, comes %v", text, now, got)
				}
			}
		})
	}
}

// asked is a number from the environment.
func asked(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// A wall is what a clock showed, minute by minute: each time that it showed or
// should have shown, and when that was first.
type wall struct {
	shown []time.Time // in UTC
	when  []time.Time
	end   time.Time
}

// watchWall watches a wall, minute by minute of real time.
func watchWall(t *testing.T, zone string, from, to time.Time) wall {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	w := wall{end: to}
	var highest time.Time
	for now := from; now.Before(to); now = now.Add(time.Minute) {
		l := now.In(loc)
		shows := time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
		if highest.IsZero() {
			highest = shows // what it showed before does not count
			continue
		}
		for highest.Before(shows) { // more than once where it was put forward
			highest = highest.Add(time.Minute)
			w.shown, w.when = append(w.shown, highest), append(w.when, now)
		}
	}
	return w
}

// times are the moments that an expression means.
func (w wall) times(t *testing.T, text string) (moments []time.Time) {
	t.Helper()
	parts := strings.Fields(text)
	minute, hour, day, month, weekday := set(parts[0], 0, 59), set(parts[1], 0, 23), set(parts[2], 1, 31), set(parts[3], 1, 12), set(parts[4], 0, 6)
	free := func(field string) bool { return field == "*" || field == "*/1" }
	both := !free(parts[2]) && !free(parts[4])
	for i, at := range w.shown {
		fits := day[at.Day()] && weekday[int(at.Weekday())]
		if both {
			fits = day[at.Day()] || weekday[int(at.Weekday())]
		}
		if !fits || !minute[at.Minute()] || !hour[at.Hour()] || !month[int(at.Month())] {
			continue
		}
		if n := len(moments); n == 0 || moments[n-1] != w.when[i] {
			moments = append(moments, w.when[i])
		}
	}
	return moments
}

// set reads one field: *, */n, n, n-m and lists of these.
func set(field string, low, high int) [60]bool {
	var in [60]bool
	for part := range strings.SplitSeq(field, ",") {
		span, step, _ := strings.Cut(part, "/")
		from, to, ranged := strings.Cut(span, "-")
		a, b, by := low, high, 1
		if span != "*" {
			a, _ = strconv.Atoi(from)
			if b = a; ranged {
				b, _ = strconv.Atoi(to)
			}
		}
		if step != "" {
			by, _ = strconv.Atoi(step)
		}
		for ; a <= b; a += by {
			in[a] = true
		}
	}
	return in
}

// randomSpec writes five fields, with most of its times in the small hours,
// when clocks are changed.
func randomSpec(r *rand.Rand) string {
	field := func(low, high int) string {
		a := low + r.IntN(high-low+1)
		switch r.IntN(5) {
		case 0:
			return fmt.Sprintf("*/%d", 1+r.IntN(max(2, (high-low)/2)))
		case 1:
			return fmt.Sprintf("%d-%d", a, a+r.IntN(high-a+1))
		case 2:
			return fmt.Sprintf("%d,%d", a, low+r.IntN(high-low+1))
		}
		return strconv.Itoa(a)
	}
	rarely := func(low, high int) string {
		if r.IntN(4) > 0 {
			return "*"
		}
		return field(low, high)
	}
	hour := field(0, 4)
	if r.IntN(3) == 0 {
		hour = field(0, 23)
	}
	return strings.Join([]string{field(0, 59), hour, rarely(1, 28), rarely(1, 12), rarely(0, 6)}, " ")
}
