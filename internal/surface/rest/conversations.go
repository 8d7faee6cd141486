package rest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
)

// mostConversations is how many of the last conversations of an agent are listed.
const mostConversations = 10_000

// A Conversation is one with an agent.
type Conversation struct {
	ID        string    `json:"id" doc:"Of its session."`
	Agent     string    `json:"agent"`
	Channel   string    `json:"channel"`
	Room      string    `json:"room,omitzero" doc:"In which room, thread or issue there."`
	Peer      string    `json:"peer,omitzero" doc:"Who it is with there."`
	Open      bool      `json:"open"`
	Turns     int64     `json:"turns"`
	Waiting   bool      `json:"waiting" doc:"A message has not had its turn yet."`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Conversations are a page of them.
type Conversations struct {
	Conversations []Conversation `json:"conversations" nullable:"false"`
	Next          string         `json:"next_page_token" doc:"Empty on the last page."`
}

// A ConversationShown is a conversation with its last messages.
type ConversationShown struct {
	Conversation
	Messages []Message `json:"messages" nullable:"false" doc:"The oldest first."`
}

// A Message is one of a conversation.
type Message struct {
	N       int64           `json:"n"`
	Role    string          `json:"role" enum:"inbound,user,assistant,tool"`
	Text    string          `json:"text,omitzero"`
	Sender  string          `json:"sender,omitzero" doc:"Of what came in by a channel."`
	Uses    []MessageUse    `json:"uses,omitzero"`
	Results []MessageResult `json:"results,omitzero"`
	Labels  []string        `json:"labels" nullable:"false"`
	At      time.Time       `json:"at"`
}

// A MessageUse is the wish of a model for a tool.
type MessageUse struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input,omitzero"`
}

// A MessageResult is what a tool answered.
type MessageResult struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitzero"`
}

// A ConversationNamed is a conversation with an agent.
type ConversationNamed struct {
	AgentNamed
	Conversation string `path:"conversation" maxLength:"64"`
}

func conversationOf(c host.Conversation) Conversation {
	return Conversation{c.Session, c.Agent, c.Channel, c.Room, c.Peer, c.Open, c.Turns, c.Waiting, c.CreatedAt, c.UpdatedAt}
}

func (r *registry) conversations() {
	add(r, route{method: "GET", path: "agents/{id}/conversations", id: "list-conversations", scope: host.ScopeRead, about: "The conversations with an agent, the newest first"}, r.listConversations)
	add(r, route{method: "GET", path: "agents/{id}/conversations/{conversation}", id: "get-conversation", scope: host.ScopeRead, about: "A conversation with its last messages"}, r.getConversation)
	add(r, route{method: "POST", path: "agents/{id}/conversations/{conversation}:end", id: "end-conversation", scope: host.ScopeRun, about: "End a conversation; a turn that goes on is waited for"}, r.endConversation)
	add(r, route{method: "POST", path: "agents/{id}/conversations:end", id: "end-newest-conversation", scope: host.ScopeRun, about: "End the caller's newest open conversation"}, r.endNewest)
	r.talks()
}

func (r *registry) listConversations(ctx context.Context, q *request, in *struct {
	AgentNamed
	Page
}) (*struct{ Body Conversations }, error) {
	last, err := in.after("conversations", in.ID)
	if err != nil {
		return nil, err
	}
	rows, err := q.api.Agents().Conversations(ctx, in.ID, mostConversations)
	if err != nil {
		return nil, unlessMissing(err, "agent", in.ID)
	}
	rows = from(rows, last, func(c *host.Conversation) string { return c.Session })
	out := &struct{ Body Conversations }{Conversations{Conversations: []Conversation{}}}
	rows, out.Body.Next = cut(rows, in.size(), "", func(c *host.Conversation) string { return c.Session }, "conversations", in.ID)
	for _, c := range rows {
		out.Body.Conversations = append(out.Body.Conversations, conversationOf(c))
	}
	return out, nil
}

// from returns the rows after the one with an id: none where it is gone, all where the
// page is the first.
func from[T any](rows []T, last string, id func(*T) string) []T {
	if last == "" {
		return rows
	}
	for i := range rows {
		if id(&rows[i]) == last {
			return rows[i+1:]
		}
	}
	return nil
}

func (r *registry) getConversation(ctx context.Context, q *request, in *struct {
	ConversationNamed
	Last int `query:"last" default:"50" minimum:"1" maximum:"200" doc:"How many messages."`
}) (*struct{ Body ConversationShown }, error) {
	c, said, err := q.api.Agents().Messages(ctx, in.ID, in.Conversation, in.Last)
	if err == nil && c.Session != in.Conversation || isInvalid(err) { // an id is written whole here
		err = missing("conversation", in.Conversation)
	}
	if err != nil {
		return nil, unlessMissing(err, "conversation", in.Conversation)
	}
	out := &struct{ Body ConversationShown }{ConversationShown{conversationOf(c), []Message{}}}
	for _, m := range said {
		one := Message{N: m.N, Role: m.Role, Text: m.Text, Sender: m.Sender, Labels: m.Labels, At: m.At}
		for _, u := range m.Uses {
			one.Uses = append(one.Uses, MessageUse(u))
		}
		for _, res := range m.Results {
			one.Results = append(one.Results, MessageResult(res))
		}
		out.Body.Messages = append(out.Body.Messages, one)
	}
	return out, nil
}

func (r *registry) endConversation(ctx context.Context, q *request, in *ConversationNamed) (*struct{ Body Conversation }, error) {
	if !host.WholeSession(in.Conversation) {
		return nil, missing("conversation", in.Conversation)
	}
	c, err := q.api.Agents().End(ctx, in.ID, in.Conversation)
	if err != nil {
		return nil, unlessMissing(err, "conversation", in.Conversation)
	}
	return &struct{ Body Conversation }{conversationOf(c)}, nil
}

func (r *registry) endNewest(ctx context.Context, q *request, in *AgentNamed) (*struct{ Body Conversation }, error) {
	c, err := q.api.Agents().End(ctx, in.ID, "")
	if err != nil {
		return nil, unlessMissing(err, "open conversation with", in.ID)
	}
	return &struct{ Body Conversation }{conversationOf(c)}, nil
}
