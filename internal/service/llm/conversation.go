package llm

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A Role is whose words a message has.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool" // what tools answered
)

// A Message is one of a conversation.
type Message struct {
	Role    Role         `json:"role"`
	Text    string       `json:"text,omitempty"`
	Uses    []ToolUse    `json:"uses,omitempty"`    // of an assistant's: the tools it asks for
	Results []ToolResult `json:"results,omitempty"` // of a tool's: what they answered, each to its use
}

// A Tool is something a model may ask for.
type Tool struct {
	Name        string          `json:"name"` // [A-Za-z0-9_-]{1,64}
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"` // of its input: a JSON Schema of an object; anything where it is empty
}

// A ToolUse is a model's wish to use a tool.
type ToolUse struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"` // one JSON object; {"$broken": text} where the model's text is none

	// Cut says that the answer reached its limit of tokens before the use was
	// whole: it is none, and its input is not what the model was about to ask for.
	Cut bool `json:"cut,omitzero"`

	// Signature is an opaque value that some models require back with the use, unchanged.
	// Only the model can read it.
	Signature []byte `json:"signature,omitempty"`
}

// A ToolResult is what came of it.
type ToolResult struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitzero"`
}

// A Conversation is what a model is to go on with.
type Conversation struct {
	System    string
	Messages  []Message
	Tools     []Tool
	Hints     *Hints // nil for none
	MaxTokens int    // of the answer

	// Say hears the answer as it comes, from one goroutine; nil hears nothing.
	// The model waits for it.
	Say func(text string)
}

// A Move is what the model said next.
type Move struct {
	Text  string
	Uses  []ToolUse
	Stop  string // why it stopped, in the provider's words
	Model string // as the host's configuration names it
	Usage Usage
	Cost  MicroCents
	Err   *Error // nil where it answered; Text may have what it said before it failed
}

// Bounds of a conversation.
const (
	maxMessages = 4096
	maxTools    = 128
	maxTalk     = 4 << 20 // bytes of all of it
)

// check refuses what no provider takes.
func (c *Conversation) check() *Error {
	switch {
	case c.MaxTokens < 1:
		return errorf(BadRequest, "a conversation needs max_tokens of at least 1")
	case len(c.Messages) == 0:
		return errorf(BadRequest, "a conversation needs a message to go on with")
	case len(c.Messages) > maxMessages:
		return errorf(TooLarge, "the conversation has %d messages; at most %d are sent", len(c.Messages), maxMessages)
	case len(c.Tools) > maxTools:
		return errorf(TooLarge, "%d tools are offered; at most %d may be", len(c.Tools), maxTools)
	}
	size := len(c.System)
	for i, t := range c.Tools {
		switch {
		case !toolName.MatchString(t.Name):
			return errorf(BadRequest, "a tool cannot be called %.80q; its name is 1 to 64 of A-Z, a-z, 0-9, _ and -", t.Name)
		case slices.ContainsFunc(c.Tools[:i], func(other Tool) bool { return other.Name == t.Name }):
			return errorf(BadRequest, "two tools are called %s", t.Name)
		case len(t.Schema) > 0 && !isObject(t.Schema):
			return errorf(BadRequest, "the schema of the tool %s is no JSON object", t.Name)
		}
		size += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for i := range c.Messages {
		if e := c.Messages[i].check(); e != nil {
			e.Message = "message " + strconv.Itoa(i+1) + ": " + e.Message
			return e
		}
		size += c.Messages[i].size()
	}
	if size > maxTalk {
		return errorf(TooLarge, "the conversation has %d bytes; at most %d are sent", size, maxTalk)
	}
	return nil
}

func (m *Message) check() *Error {
	switch {
	case m.Role != User && m.Role != Assistant && m.Role != ToolRole:
		return errorf(BadRequest, "the role is %.40q; the roles are user, assistant and tool", m.Role)
	case len(m.Uses) > 0 && m.Role != Assistant:
		return errorf(BadRequest, "only an assistant uses tools, and the role is %s", m.Role)
	case len(m.Results) > 0 && m.Role != ToolRole:
		return errorf(BadRequest, "only a message of the role tool has results, and the role is %s", m.Role)
	}
	for i, u := range m.Uses {
		switch {
		case u.ID == "" || slices.ContainsFunc(m.Uses[:i], func(other ToolUse) bool { return other.ID == u.ID }):
			return errorf(BadRequest, "each use of a tool needs an id of its own")
		case !toolName.MatchString(u.Name):
			return errorf(BadRequest, "it uses a tool called %.80q; a name is 1 to 64 of A-Z, a-z, 0-9, _ and -", u.Name)
		case len(u.Input) > 0 && !isObject(u.Input):
			return errorf(BadRequest, "what it gives the tool %s is no JSON object", u.Name)
		}
	}
	return nil
}

func (m *Message) size() int {
	n := len(m.Text)
	for _, u := range m.Uses {
		n += len(u.ID) + len(u.Name) + len(u.Input) + len(u.Signature)
	}
	for _, r := range m.Results {
		n += len(r.ID) + len(r.Name) + len(r.Text)
	}
	return n
}

func isObject(raw []byte) bool {
	v := jsontext.Value(raw)
	return v.Kind() == '{' && v.IsValid()
}

// unanswered is the result of a use that has none, such as one whose turn was
// cut off: no provider goes on without.
const unanswered = "there is no result: the turn ended before the tool answered"

// paired returns the messages as providers want them: those with nothing in them
// left out, and after each that uses tools one with a result for each use, in
// their order. A result without a use is refused.
func paired(messages []Message) ([]Message, *Error) {
	var all []Message
	for i := 0; i < len(messages); i++ {
		m := messages[i]
		if m.Role == ToolRole { // those that belong to uses are taken below
			if len(m.Results) > 0 {
				return nil, errorf(BadRequest, "message %d: there is no use %.80q in the message before, to which it has a result", i+1, m.Results[0].ID)
			}
			m.Role = User
		}
		if len(m.Uses) == 0 {
			if strings.TrimSpace(m.Text) != "" {
				all = append(all, m)
			}
			continue
		}
		results := Message{Role: ToolRole}
		given, said := map[string]ToolResult{}, []Message(nil)
		for i+1 < len(messages) && messages[i+1].Role == ToolRole {
			i++
			for _, r := range messages[i].Results {
				if !slices.ContainsFunc(m.Uses, func(u ToolUse) bool { return u.ID == r.ID }) {
					return nil, errorf(BadRequest, "message %d: there is no use %.80q in the message before, to which it has a result", i+1, r.ID)
				}
				given[r.ID] = r
			}
			if text := messages[i].Text; strings.TrimSpace(text) != "" {
				said = append(said, Message{Role: User, Text: text})
			}
		}
		m.Uses = slices.Clone(m.Uses)
		for n, u := range m.Uses {
			if len(u.Input) == 0 {
				m.Uses[n].Input = json.RawMessage("{}")
			}
			r, ok := given[u.ID]
			if !ok {
				r = ToolResult{ID: u.ID, Text: unanswered, Failed: true}
			}
			r.Name = u.Name
			results.Results = append(results.Results, r)
		}
		all = append(append(all, m, results), said...)
	}
	if len(all) == 0 {
		return nil, errorf(BadRequest, "a conversation needs a message with something in it")
	}
	return all, nil
}
