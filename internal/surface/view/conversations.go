package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Conversations are conversations as they are listed.
var Conversations = List[host.Conversation]{
	Key:    "conversations",
	Fit:    Always,
	Titles: []string{"SESSION", "CREATED", "CHANGED", "STATE", "TURNS", "CHANNEL", "WITH"},
	Row: func(one host.Conversation) []string {
		return []string{one.Session, terminal.Clock(one.CreatedAt), terminal.Clock(one.UpdatedAt), conversationState(one), count(one.Turns),
			terminal.OneLine(place(one), 200), terminal.Dash(terminal.OneLine(one.Peer, 200))}
	},
}

// A ConversationShown is a conversation with its last messages.
type ConversationShown struct {
	Conversation host.Conversation `json:"conversation"`
	Messages     []host.Spoken     `json:"messages"`
}

// Conversation shows a conversation with its last messages.
func Conversation(w io.Writer, s ConversationShown) error {
	one := s.Conversation
	t := terminal.Details(w)
	t.Row("session", one.Session)
	t.Row("with", terminal.Dash(terminal.OneLine(one.Peer, 200))+" by "+terminal.OneLine(place(one), 200))
	t.Row("state", conversationState(one))
	t.Row("turns", count(one.Turns))
	if err := t.Flush(); err != nil {
		return err
	}
	for _, m := range s.Messages {
		who := m.Role
		if m.Sender != "" {
			who += " " + terminal.OneLine(m.Sender, 100)
		}
		if len(m.Labels) > 0 {
			who += " (" + strings.Join(m.Labels, ", ") + ")"
		}
		fmt.Fprintf(w, "\n%d  %s  %s\n", m.N, terminal.Clock(m.At), terminal.Safe(who))
		if m.Text != "" {
			fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(terminal.Safe(m.Text), "\n", "\n  ")) // no line of it may pass for another message
		}
		for _, u := range m.Uses {
			fmt.Fprintf(w, "  uses %s %s\n", terminal.OneLine(u.Name, 100), terminal.OneLine(string(u.Input), 300))
		}
		for _, r := range m.Results {
			what := "answered"
			if r.Failed {
				what = "failed:"
			}
			if _, err := fmt.Fprintf(w, "  %s %s %s\n", terminal.OneLine(r.Name, 100), what, terminal.OneLine(r.Text, 300)); err != nil {
				return err
			}
		}
	}
	return nil
}

func conversationState(one host.Conversation) string {
	switch {
	case one.Waiting:
		return "waiting"
	case one.Open:
		return "open"
	}
	return "ended"
}

// place is where a conversation takes place.
func place(one host.Conversation) string {
	if one.Room == "" {
		return one.Channel
	}
	return one.Channel + " " + one.Room
}
