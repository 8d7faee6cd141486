package schedule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/store"
)

// A missing is a policy for missed times and for those that overlap.
type missing struct {
	misfire schedule.Misfire
	catchUp int
	overlap schedule.Overlap
}

func (m missing) String() string {
	return fmt.Sprintf("%s %d, overlap %s", m.misfire, m.catchUp, m.overlap)
}

// expected computes by iteration the expected outcome of the missed times, every ten
// minutes, during which no engine looked. busy: the run before them is not over.
func (m missing) expected(times []time.Time, now time.Time, busy bool) (lines []string) {
	if len(times) == 0 {
		return nil
	}
	onTime := now.Sub(times[len(times)-1]) <= time.Minute
	runs := 0 // of the last ones
	switch {
	case m.misfire == schedule.MisfireSkip && onTime:
		runs = 1
	case m.misfire == schedule.MisfireCatchUp && onTime:
		runs = m.catchUp + 1
	case m.misfire == schedule.MisfireCatchUp:
		runs = m.catchUp
	}
	runs = min(runs, len(times))
	line := func(since, at time.Time, outcome string) {
		text := at.Format("02T15:04:05") + " " + outcome
		if !since.Equal(at) {
			text = since.Format("02T15:04:05") + ".." + text
		}
		lines = append(lines, text)
	}
	run := "called"
	if busy && m.overlap == schedule.OverlapSkip {
		run = "overlapped"
	}
	if m.misfire == schedule.MisfireOnce {
		line(times[0], times[len(times)-1], run)
		return lines
	}
	if missed := times[:len(times)-runs]; len(missed) > 0 {
		line(missed[0], missed[len(missed)-1], "missed")
	}
	for _, at := range times[len(times)-runs:] {
		line(at, at, run)
	}
	return lines
}

// Two hundred cases of times that were missed, while a run went on or not (F28).
func TestMissedTimesThatOverlap(t *testing.T) {
	t.Parallel()
	const step = 10 * time.Minute
	var policies []missing
	for _, overlap := range []schedule.Overlap{schedule.OverlapSkip, schedule.OverlapQueue} {
		policies = append(policies, missing{schedule.MisfireSkip, 0, overlap}, missing{schedule.MisfireOnce, 0, overlap},
			missing{schedule.MisfireCatchUp, 1, overlap}, missing{schedule.MisfireCatchUp, 3, overlap})
	}
	gaps := []time.Duration{
		5 * time.Minute, step, step + 30*time.Second, 15 * time.Minute, 2 * step, 2*step + time.Minute, 2*step + 61*time.Second, 45 * time.Minute,
		time.Hour, time.Hour + 30*time.Second, 3*time.Hour + 5*time.Minute, 25 * time.Hour, 60*24*time.Hour + 2*time.Minute,
	}
	cases := len(policies) * len(gaps) * 2
	if cases < 200 {
		t.Fatalf("there are %d cases", cases)
	}
	for _, gap := range gaps {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, busy %t", gap, busy), func(t *testing.T) {
				t.Parallel()
				d := newDesk(t, 2)
				ids := map[string]missing{}
				for _, p := range policies {
					ids[d.create(schedule.Schedule{Spec: "every 10m", Misfire: p.misfire, CatchUp: p.catchUp, Overlap: p.overlap})] = p
				}
				first := start.Add(step)
				d.set(first)
				d.sweep()
				if !busy {
					d.end()
				}
				now := first.Add(gap)
				d.set(now)
				d.sweep() // the first to look
				for range 6 {
					d.end()
					d.set(d.now.Add(6 * time.Second))
					d.sweep()
				}
				var times []time.Time
				for at := first.Add(step); !at.After(now); at = at.Add(step) {
					times = append(times, at)
				}
				called := 0
				for id, p := range ids {
					want := append([]string{first.Format("02T15:04:05") + " called"}, p.expected(times, now, busy)...)
					if got := d.ticks(id); !slices.Equal(got, want) {
						t.Errorf("%s:\n  %s\nwant\n  %s", p, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
					}
					for _, line := range want {
						if strings.HasSuffix(line, "called") {
							called++
						}
					}
				}
				if len(d.made) != called {
					t.Errorf("%d calls were made, want %d", len(d.made), called)
				}
			})
		}
	}
}

// However the clock jumps, a time has one run, and none that passed while it was
// wrong is made up for twice.
func TestTheClockJumps(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour, -10 * year, 10 * year} {
		for _, p := range []missing{{schedule.MisfireSkip, 0, schedule.OverlapSkip}, {schedule.MisfireOnce, 0, schedule.OverlapQueue}, {schedule.MisfireCatchUp, 2, schedule.OverlapQueue}} {
			t.Run(fmt.Sprintf("%s, %s", jump, p), func(t *testing.T) {
				t.Parallel()
				d := newDesk(t, 2)
				id := d.create(schedule.Schedule{Spec: "every 10m", Misfire: p.misfire, CatchUp: p.catchUp, Overlap: p.overlap})
				d.pass(35 * time.Minute) // 3 times
				before := len(d.made)
				if before != 3 {
					t.Fatalf("%d calls were made of 3 times", before)
				}
				d.set(d.now.Add(jump))
				d.pass(2 * time.Minute)
				during := len(d.made) - before
				want := map[schedule.Misfire]int{schedule.MisfireSkip: 0, schedule.MisfireOnce: 1, schedule.MisfireCatchUp: 2}[p.misfire]
				if jump < 0 {
					want = 0
				}
				if during != want {
					t.Errorf("%d calls were made after the jump, want %d: %q", during, want, d.ticks(id))
				}
				if d.pass(10 * time.Minute); jump > 0 && len(d.made) != before+during+1 {
					t.Errorf("%d calls were made in the ten minutes after it, want 1", len(d.made)-before-during)
				}
				// The clock is set right again.
				d.set(d.now.Add(-jump))
				sofar := len(d.made)
				d.pass(30 * time.Minute)
				if again := len(d.made) - sofar; jump < 0 && again < 3 || jump > 0 && again != 0 {
					t.Errorf("%d calls were made in half an hour of the right time", again)
				}
				// After a jump ahead, the first engine that sees it wait sets it again. What was run
				// while the clock was wrong is not run again.
				fresh := map[time.Time]bool{}
				for at := start; !at.After(d.now.Add(30 * time.Minute)); at = at.Add(10 * time.Minute) {
					fresh[at] = at.After(d.now)
				}
				rows, err := d.st.Ticks(t.Context(), store.TickFilter{Tenant: "t", ScheduleID: id})
				if err != nil {
					t.Fatal(err)
				}
				for _, row := range rows {
					fresh[row.At] = false
				}
				want = 0
				for _, is := range fresh {
					if is {
						want++
					}
				}
				if _, err := d.nodes[0].Resume(t.Context(), "t", id, nil); err != nil {
					t.Fatal(err)
				}
				sofar = len(d.made)
				if d.pass(30 * time.Minute); len(d.made)-sofar != want {
					t.Errorf("%d calls were made in half an hour after it was set again, want %d", len(d.made)-sofar, want)
				}
				places := map[string]bool{}
				for _, call := range d.made {
					if places[call.Place] {
						t.Errorf("%s was made twice", call.Place)
					}
					places[call.Place] = true
				}
			})
		}
	}
}
