package ledger

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
)

// TestTransitionsAreThoseOfTheTable holds transition against the table of
// docs/architecture.md: every event in every state, those that are refused too.
func TestTransitionsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	table := documented(t)
	if len(table) != len(transitions) {
		t.Errorf("docs/architecture.md has %d events and the code %d", len(table), len(transitions))
	}
	states := []State{None, Pending, Queued, Running, InProgress, Succeeded, Failed, Unknown}
	for e := range transitions {
		row, found := table[e]
		if !found {
			t.Errorf("docs/architecture.md does not have the event %q", e)
			continue
		}
		for _, name := range row.from {
			if !slices.Contains(states, name) {
				t.Errorf("%s: %q is no state of a call", e, name)
			}
		}
		for _, from := range states {
			to, err := transition(from, e)
			switch allowed := slices.Contains(row.from, from); {
			case allowed && (err != nil || to != row.to):
				t.Errorf("%s from %q leads to %q (%v), and by the table to %q", e, from, to, err, row.to)
			case !allowed && err == nil:
				t.Errorf("%s from %q leads to %q, and the table refuses it", e, from, to)
			}
		}
	}
	if _, err := transition(Running, "explode"); err == nil {
		t.Error("an event that there is not was accepted")
	}
}

// TestEveryStateIsReached checks that each state of the store is in the machine, and
// that what ended for good is left by no event.
func TestEveryStateIsReached(t *testing.T) {
	t.Parallel()
	for _, state := range []State{Pending, Queued, Running, InProgress, Succeeded, Failed, Unknown} {
		reached, left := false, false
		for _, t := range transitions {
			reached = reached || t.to == state
			left = left || slices.Contains(t.from, state)
		}
		if !reached || left != state.Live() {
			t.Errorf("%s: reached is %v, left is %v", state, reached, left)
		}
	}
	if None != store.CallState("") {
		t.Error("a call without a row has a state")
	}
}

type documentedEvent struct {
	to   State
	from []State
}

// documented reads the table of events.
func documented(t *testing.T) map[event]documentedEvent {
	t.Helper()
	raw, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(raw), "\n### States of a call\n")
	if !found {
		t.Fatal("docs/architecture.md has no section about the states of a call")
	}
	section, _, _ = strings.Cut(section, "\n#")
	table := map[event]documentedEvent{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		row := documentedEvent{to: State(strings.Trim(cells[2], " `"))}
		for name := range strings.SplitSeq(cells[3], ",") {
			if name = strings.Trim(name, " `"); name == "no row" {
				name = ""
			}
			row.from = append(row.from, State(name))
		}
		table[event(strings.Trim(cells[1], " `"))] = row
	}
	return table
}
