package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/plugin"
)

// TestNoRoomHearsWhatWasSaidInAnother: every pair of rooms and senders, in both
// settings. What the model is shown has only messages of its own conversation.
func TestNoRoomHearsWhatWasSaidInAnother(t *testing.T) {
	t.Parallel()
	rooms := []string{"", "C1", "C1/7.1", `"C1":U1`, "D1"}
	senders := []string{"U1", "U2", ""}
	for _, per := range []string{"", agent.PerSender, agent.PerRoom} {
		d := newDesk(t)
		d.hire("shop", agent.Settings{Channels: map[string]agent.Channel{"web": {Scheme: webhook.Standard, Secret: "s", Per: per}}})
		of := func(room, sender string) string {
			if per == agent.PerRoom {
				sender = ""
			}
			return fmt.Sprintf("%q %q", room, sender)
		}
		sessions := map[string]string{} // of each conversation that there is to be
		said := map[string]string{}
		n := 0
		for round := range 2 {
			for _, room := range rooms {
				for _, sender := range senders {
					n++
					word := fmt.Sprintf("word-%d-", n)
					said[word] = of(room, sender)
					session := d.got(fmt.Sprint("m", n), fmt.Sprintf(`{"text":%q,"sender":%q,"room":%q}`, word, sender, room))
					if had := sessions[of(room, sender)]; had != "" && had != session {
						t.Errorf("%s, round %d: %s in room %q is in %s, and was in %s", per, round, sender, room, session, had)
					}
					sessions[of(room, sender)] = session
					if err := d.Advance(t.Context(), "t", session); err != nil {
						t.Fatal(err)
					}
					heard := d.heard()
					last := fmt.Sprint(heard[len(heard)-1].Messages)
					for other, where := range said {
						if strings.Contains(last, other) && where != of(room, sender) {
							t.Errorf("%s: what was said in %s is heard in %s", per, where, of(room, sender))
						}
					}
					if !strings.Contains(last, word) {
						t.Errorf("%q is not heard: %s", word, last)
					}
				}
			}
		}
		distinct := map[string]bool{}
		for _, session := range sessions {
			distinct[session] = true
		}
		want := len(rooms) * len(senders)
		if per == agent.PerRoom {
			want = len(rooms)
		}
		if len(distinct) != want {
			t.Errorf("%s: %d conversations, want %d", per, len(distinct), want)
		}
	}
	odd := agent.Settings{Channels: map[string]agent.Channel{"web": {Scheme: webhook.Standard, Secret: "s", Per: "planet"}}}
	if err := odd.Check(); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("per planet: %v", err)
	}
}
