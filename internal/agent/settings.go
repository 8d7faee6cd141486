package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

// Settings are what an agent may do, and where it can be talked to.
type Settings struct {
	MaxSteps  int                `json:"max_steps,omitzero"`  // moves of its brain in one turn; 8 where it is 0
	MaxTools  int                `json:"max_tools,omitzero"`  // operations it is offered in one turn; 5 where it is 0, and at most
	MaxTokens int                `json:"max_tokens,omitzero"` // of one answer; 2,048 where it is 0
	History   int                `json:"history,omitzero"`    // messages that its brain is shown; 60 where it is 0
	Channels  map[string]Channel `json:"channels,omitempty"`  // by namespace

	Brain       string `json:"brain,omitempty"`        // the operation of kind agent that decides, plugin/operation; a model where it is empty
	LateResults string `json:"late_results,omitempty"` // what becomes of the end of a call that outlived its turn: LateTurn, where it is empty, or LateTell
}

// A Channel is a place outside where people talk to the agent.
type Channel struct {
	Scheme webhook.Scheme `json:"scheme"`           // how its deliveries prove who sent them
	Secret string         `json:"secret"`           // the name of the secret they prove it with
	Reply  string         `json:"reply,omitempty"`  // the operation that carries answers there; none are sent where it is empty
	Labels []string       `json:"labels,omitempty"` // of what comes in, beside untrusted
	End    []string       `json:"end,omitempty"`    // messages that end the conversation in place of having a turn, without regard to case
	Per    string         `json:"per,omitempty"`    // whose each conversation is: PerSender, where it is empty, or PerRoom
}

// What a conversation of a channel is with. Neither goes from one room to another.
const (
	PerSender = "sender" // one sender in one room, thread or issue
	PerRoom   = "room"   // all who are in it
)

// Bounds of settings.
const (
	maxSteps    = 32
	maxTools    = 5
	maxTokens   = 64_000
	maxHistory  = 500
	maxChannels = 16
	maxEnds     = 16
	maxEndBytes = 100
	maxPrompt   = 32 << 10
	maxSettings = 64 << 10
)

// AgentTool is how many operations an agent is offered in a turn, at most.
const AgentTools = maxTools

var (
	idPattern      = pattern.New(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	brainPattern   = pattern.New(`^[^\s/@]{1,200}/[^\s/@]{1,200}$`)
	channelPattern = pattern.New(`^[a-z0-9][a-z0-9_-]{0,31}$`)
)

// CheckID refuses what cannot be the id of an agent.
func CheckID(id string) error {
	if !idPattern.MatchString(id) {
		return plugin.Errorf(plugin.CodeInvalidInput, "%.80q cannot be the id of an agent: it has 1 to 64 of a-z, 0-9, _ and -, and begins with a letter or digit", id)
	}
	return nil
}

// CheckPrompt refuses what cannot be the prompt of an agent.
func CheckPrompt(text string) error {
	if len(text) > maxPrompt || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return plugin.Errorf(plugin.CodeInvalidInput, "a prompt is text of at most %d bytes; this one has %d", maxPrompt, len(text))
	}
	return nil
}

// Check refuses settings that cannot be kept.
func (s *Settings) Check() error {
	refuse := func(format string, args ...any) error {
		return plugin.Errorf(plugin.CodeInvalidInput, "the agent's settings: "+format, args...)
	}
	for _, bound := range []struct {
		name string
		have int
		most int
	}{{"max_steps", s.MaxSteps, maxSteps}, {"max_tools", s.MaxTools, maxTools}, {"max_tokens", s.MaxTokens, maxTokens}, {"history", s.History, maxHistory}} {
		if bound.have < 0 || bound.have > bound.most {
			return refuse("%s is %d; it is between 0 and %d", bound.name, bound.have, bound.most)
		}
	}
	if s.Brain != "" && !brainPattern.MatchString(s.Brain) {
		return refuse("brain is %.80q; it names an operation, as plugin/operation; its versions are those that the agent was given", s.Brain)
	}
	if s.LateResults != "" && s.LateResults != LateTurn && s.LateResults != LateTell {
		return refuse("late_results is %.40q; it is %s or %s", s.LateResults, LateTurn, LateTell)
	}
	if len(s.Channels) > maxChannels {
		return refuse("there are %d channels; at most %d", len(s.Channels), maxChannels)
	}
	for name, c := range s.Channels {
		switch {
		case !channelPattern.MatchString(name):
			return refuse("channel %.40q: a namespace has 1 to 32 of a-z, 0-9, _ and -", name)
		case name == Terminal || name == Scheduled || name == Called:
			return refuse("channel %s is the host's own", name)
		case !c.Scheme.Known():
			return refuse("channel %s: there is no scheme %q; the schemes are %v", name, c.Scheme, webhook.Schemes())
		case c.Per != "" && c.Per != PerSender && c.Per != PerRoom:
			return refuse("channel %s: 'per' is %.40q; it is %s or %s", name, c.Per, PerSender, PerRoom)
		case len(c.End) > maxEnds || slices.ContainsFunc(c.End, func(w string) bool { return strings.TrimSpace(w) != w || w == "" || len(w) > maxEndBytes }):
			return refuse("channel %s: 'end' has at most %d texts of 1 to %d bytes, without space around them", name, maxEnds, maxEndBytes)
		case c.Secret == "":
			return refuse("channel %s: 'secret' names the secret that its deliveries prove themselves with", name)
		}
	}
	return nil
}

// ParseSettings reads settings as they are stored, or as a person wrote them.
func ParseSettings(raw []byte) (Settings, error) {
	var s Settings
	if len(raw) == 0 {
		return s, nil
	}
	if len(raw) > maxSettings {
		return s, plugin.Errorf(plugin.CodeInvalidInput, "the agent's settings have %d bytes; at most %d", len(raw), maxSettings)
	}
	if err := json2.Unmarshal(raw, &s, json2.RejectUnknownMembers(true)); err != nil {
		return s, plugin.Errorf(plugin.CodeInvalidInput, "the agent's settings: %w", err)
	}
	return s, s.Check()
}

// Encode returns settings as they are kept.
func (s *Settings) Encode() string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("agent: settings: %v", err)) // texts and numbers alone
	}
	return string(raw)
}

// full returns the settings of a row, with what they leave open.
func full(row *AgentRow) Settings {
	s, err := ParseSettings([]byte(row.Settings))
	if err != nil {
		s = Settings{} // they were checked when they were kept
	}
	for _, d := range []struct {
		have *int
		want int
	}{{&s.MaxSteps, 8}, {&s.MaxTools, maxTools}, {&s.MaxTokens, 2048}, {&s.History, 60}} {
		if *d.have == 0 {
			*d.have = d.want
		}
	}
	return s
}

// ends reports whether a message ends its conversation.
func (c *Channel) ends(text string) bool {
	return slices.ContainsFunc(c.End, func(word string) bool { return strings.EqualFold(strings.TrimSpace(text), word) })
}

// peer is who a conversation with a sender is with.
func (c *Channel) peer(sender string) string {
	if c.Per == PerRoom {
		return ""
	}
	return sender
}

// labels are what everything is tainted with that comes in by a channel.
func (c *Channel) labels() []string {
	all := append(slices.Clone(c.Labels), plugin.Untrusted)
	slices.Sort(all)
	return slices.Compact(all)
}
