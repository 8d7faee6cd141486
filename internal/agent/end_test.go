package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/plugin"
)

// A word of the channel ends a conversation: what was said before has its turn, what
// was said after is in the next, and plugins hear why. No one in another room or, where
// each sender has their own, no other sender ends it.
func TestAWordEndsAConversation(t *testing.T) {
	t.Parallel()
	for _, per := range []string{agent.PerSender, agent.PerRoom} {
		d := newDesk(t)
		d.hire("shop", agent.Settings{Channels: map[string]agent.Channel{"web": {Scheme: webhook.Standard, Secret: "s", Reply: "web/send", Per: per, End: []string{"/end", "Tschüß"}}}})
		var told []string
		d.equip("shop", "watch",
			event.Subscription{Event: event.SessionClosed, Listen: func(_ context.Context, p *event.Payload) error {
				d.note(&told, "closed "+p.String("sessionId")+" "+p.String("reason"))
				return nil
			}},
			event.Subscription{Event: event.SessionOpened, Listen: func(_ context.Context, p *event.Payload) error {
				d.note(&told, "opened "+p.String("sessionId"))
				return nil
			}})
		say := func(id, sender, room, text string) string {
			return d.got(id, fmt.Sprintf(`{"text":%q,"sender":%q,"room":%q}`, text, sender, room))
		}
		first := say("m1", "U1", "R", "before")
		elsewhere := say("m2", "U1", "Q", "hello")
		by := "U1"
		if per == agent.PerRoom {
			by = "U2" // it is everyone's
		}
		say("m3", by, "R", "  tschüß \n")
		say("m4", "U1", "R", "after")
		say("m5", "U1", "R", "and /end is no more than a word of this")
		d.sweep()
		rows, err := d.Store.Conversation(t.Context(), "t", first)
		if err != nil || rows.Open {
			t.Errorf("%s: %+v, %v", per, rows, err)
		}
		if other, err := d.Store.Conversation(t.Context(), "t", elsewhere); err != nil || !other.Open {
			t.Errorf("%s: of another room: %+v, %v", per, other, err)
		}
		next := say("m6", "U1", "R", "again")
		d.sweep()
		if next == first || strings.Count(d.roles(next), "user") != 3 {
			t.Errorf("%s: in the next there is %s", per, d.roles(next))
		}
		want := []string{"closed " + first + " user", "opened " + next}
		if got := told[len(told)-2:]; !slices.Equal(got, want) {
			t.Errorf("%s: plugins heard %q, want %q", per, got, want)
		}
		var said []string
		for _, c := range d.called("web/send") {
			said = append(said, string(c.Input))
		}
		all := strings.Join(said, "\n")
		if len(said) != 6 || strings.Count(all, "has ended") != 1 || !slices.Contains(d.closed, first) {
			t.Errorf("%s: sent %s", per, all)
		}
		if last := fmt.Sprint(d.heard()[len(d.heard())-1].Messages); strings.Contains(last, "before") || !strings.Contains(last, "after") {
			t.Errorf("%s: in the next one the model is shown %s", per, last)
		}
		if per == agent.PerSender { // another sender's word ends another conversation
			say("m7", "U2", "R", "/END")
			d.sweep()
			if row, err := d.Store.Conversation(t.Context(), "t", next); err != nil || !row.Open {
				t.Errorf("another sender ended it: %+v, %v", row, err)
			}
		}
		if again, err := d.send("m3", `{"text":"tschüß","sender":"U1","room":"R"}`); err != nil || !again.Seen {
			t.Errorf("%s: the word again: %+v, %v", per, again, err)
		}
	}
	odd := agent.Settings{Channels: map[string]agent.Channel{"web": {Scheme: webhook.Standard, Secret: "s", End: []string{" "}}}}
	if err := odd.Check(); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("an empty word: %v", err)
	}
}
