package agent

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"

	"github.com/mortise-dev/mortise/internal/webhook"
	"github.com/mortise-dev/mortise/plugin"
)

// Incoming is what a delivery says.
type Incoming struct {
	Text      string          `json:"text"`
	Sender    string          `json:"sender"` // as the channel names them
	Metadata  json.RawMessage `json:"metadata,omitzero"`
	Channel   string          `json:"channel"`
	Challenge string          `json:"-"` // to be answered, in place of anything else

	mark string // the same for every delivery of the message, where it may come in several ways
}

// read returns what a delivery says; nil where it is nothing that anybody said.
// The platforms' own events are read as far as a message needs it.
func read(scheme webhook.Scheme, d *webhook.Delivery, kind string) (*Incoming, error) {
	readers := map[webhook.Scheme]func([]byte, string) (*Incoming, error){
		webhook.Standard: readStandard, webhook.Slack: readSlack, webhook.GitHub: readGitHub, webhook.Telegram: readTelegram,
	}
	in, err := readers[scheme](d.Body, kind)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the delivery is no event of %s: %w", scheme, err)
	}
	if in != nil && in.Challenge == "" {
		if strings.TrimSpace(in.Text) == "" {
			return nil, nil
		}
		if len(in.Text) > MaxText || strings.ContainsRune(in.Text, 0) {
			return nil, plugin.Errorf(plugin.CodeInputTooLarge, "a message has at most %d bytes and no NUL; this one has %d", MaxText, len(in.Text))
		}
		if len(in.Sender) > 255 {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "its sender has %d bytes; at most 255", len(in.Sender))
		}
		if strings.ContainsFunc(in.Sender, unicode.IsControl) {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "its sender %.80q has control characters", in.Sender)
		}
	}
	return in, nil
}

// readStandard reads our own form: {"text", "sender"?, "metadata"?}.
func readStandard(body []byte, _ string) (*Incoming, error) {
	var said struct {
		Text     *string        `json:"text"`
		Sender   string         `json:"sender"`
		Metadata map[string]any `json:"metadata"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, err
	}
	if said.Text == nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, `it has no member "text"`)
	}
	return &Incoming{Text: *said.Text, Sender: said.Sender, Metadata: metadata(said.Metadata)}, nil
}

// readSlack reads the Events API: messages of people, and the one question that
// is asked when the address is set up.
func readSlack(body []byte, _ string) (*Incoming, error) {
	var said struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
		Event     struct {
			Type, Subtype, Text, User, Channel string
			BotID                              string `json:"bot_id"`
			TS                                 string `json:"ts"`
			Thread                             string `json:"thread_ts"`
		} `json:"event"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, err
	}
	if said.Type == "url_verification" {
		return &Incoming{Challenge: said.Challenge}, nil
	}
	e := said.Event
	if e.Type != "message" && e.Type != "app_mention" || e.Subtype != "" || e.BotID != "" || e.Text == "" {
		return nil, nil
	}
	in := &Incoming{Text: e.Text, Sender: e.User, Metadata: metadata(map[string]any{"channel": e.Channel, "ts": e.TS, "thread_ts": e.Thread})}
	if e.Channel != "" && e.TS != "" { // that the agent is mentioned in it is another event with another id
		in.mark = e.Channel + "/" + e.TS
	}
	return in, nil
}

// readGitHub reads comments, and issues and pull requests that are opened. kind
// is the X-GitHub-Event.
func readGitHub(body []byte, kind string) (*Incoming, error) {
	type item struct {
		Number int    `json:"number"`
		Title  string `json:"title"`
		Body   string `json:"body"`
		URL    string `json:"html_url"`
	}
	var said struct {
		Action     string `json:"action"`
		Comment    *item  `json:"comment"`
		Issue      *item  `json:"issue"`
		Pull       *item  `json:"pull_request"`
		Repository struct {
			Name string `json:"full_name"`
		} `json:"repository"`
		Sender struct {
			Login, Type string
		} `json:"sender"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, err
	}
	about := said.Issue
	if about == nil {
		about = said.Pull
	}
	text, url := "", ""
	switch {
	case said.Sender.Type == "Bot":
	case said.Comment != nil && said.Action == "created":
		text, url = said.Comment.Body, said.Comment.URL
	case about != nil && said.Action == "opened":
		text, url = strings.TrimSpace(about.Title+"\n\n"+about.Body), about.URL
	}
	if text == "" {
		return nil, nil
	}
	more := map[string]any{"event": kind, "repository": said.Repository.Name, "url": url}
	if about != nil {
		more["number"] = about.Number
	}
	return &Incoming{Text: text, Sender: said.Sender.Login, Metadata: metadata(more)}, nil
}

// readTelegram reads text messages of people.
func readTelegram(body []byte, _ string) (*Incoming, error) {
	var said struct {
		Message *struct {
			ID   int64  `json:"message_id"`
			Text string `json:"text"`
			From struct {
				ID  int64 `json:"id"`
				Bot bool  `json:"is_bot"`
			} `json:"from"`
			Chat struct {
				ID int64 `json:"id"`
			} `json:"chat"`
		} `json:"message"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, err
	}
	if m := said.Message; m != nil && m.Text != "" && !m.From.Bot {
		return &Incoming{Text: m.Text, Sender: strconv.FormatInt(m.From.ID, 10), Metadata: metadata(map[string]any{"chat_id": m.Chat.ID, "message_id": m.ID})}, nil
	}
	return nil, nil
}

// metadata returns members as they are kept: nil where there are none.
func metadata(members map[string]any) json.RawMessage {
	for k, v := range members {
		if v == "" {
			delete(members, k)
		}
	}
	if len(members) == 0 {
		return nil
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return nil // they came out of JSON
	}
	return raw
}
