package agent

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/plugin"
)

// Incoming is what a delivery says.
type Incoming struct {
	Text      string          `json:"text"`
	Sender    string          `json:"sender"`         // as the channel names them
	Room      string          `json:"room,omitempty"` // where they said it: a room, a thread in one, an issue; "" for no place in particular
	Metadata  json.RawMessage `json:"metadata,omitzero"`
	Channel   string          `json:"channel"`
	Late      *Late           `json:"late,omitempty"` // what the host says of a call, in place of a sender
	Ends      bool            `json:"ends,omitzero"`  // it ends the conversation, and has no turn
	Challenge string          `json:"-"`              // to be answered, in place of anything else

	mark string // the same for every delivery of the message, where it may come in several ways
}

// maxRoom is how long the name of a room may be, in bytes.
const maxRoom = 500

// read returns what a delivery says; nil if it is not a message of a user. It
// reads the platforms' own events as far as a message needs it.
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
		if len(in.Room) > maxRoom || strings.ContainsFunc(in.Room, unicode.IsControl) {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "its room has %d bytes; it has at most %d, and no control characters", len(in.Room), maxRoom)
		}
	}
	return in, nil
}

// Deliveries are read by the exact names of their members: one in other letters, which a
// relay passes on for a stranger, says nothing.

// readStandard reads our own form: {"text", "sender"?, "room"?, "metadata"?}.
func readStandard(body []byte, _ string) (*Incoming, error) {
	var said struct {
		Text     *string        `json:"text"`
		Sender   string         `json:"sender"`
		Room     string         `json:"room"`
		Metadata jsontext.Value `json:"metadata"`
	}
	if err := json2.Unmarshal(body, &said); err != nil {
		return nil, err
	}
	if said.Text == nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, `it has no member "text"`)
	}
	in := &Incoming{Text: *said.Text, Sender: said.Sender, Room: said.Room}
	switch said.Metadata.Kind() {
	case 'n', jsontext.KindInvalid: // null, or absent
	case '{': // as it came: a number may be an id that no double holds
		if err := said.Metadata.Compact(); err != nil {
			return nil, err
		}
		in.Metadata = json.RawMessage(said.Metadata)
	default:
		return nil, plugin.Errorf(plugin.CodeInvalidInput, `its member "metadata" is no object`)
	}
	return in, nil
}

// readSlack reads the Events API: messages of people, and the one question that
// is asked when the address is set up.
func readSlack(body []byte, _ string) (*Incoming, error) {
	var said struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
		Event     struct {
			Type    string `json:"type"`
			Subtype string `json:"subtype"`
			Text    string `json:"text"`
			User    string `json:"user"`
			Channel string `json:"channel"`
			BotID   string `json:"bot_id"`
			TS      string `json:"ts"`
			Thread  string `json:"thread_ts"`
		} `json:"event"`
	}
	if err := json2.Unmarshal(body, &said); err != nil {
		return nil, err
	}
	if said.Type == "url_verification" {
		return &Incoming{Challenge: said.Challenge}, nil
	}
	e := said.Event
	if e.Type != "message" && e.Type != "app_mention" || e.Subtype != "" || e.BotID != "" || e.Text == "" {
		return nil, nil
	}
	in := &Incoming{Text: e.Text, Sender: e.User, Room: place(e.Channel, e.Thread), Metadata: metadata(map[string]any{"channel": e.Channel, "ts": e.TS, "thread_ts": e.Thread})}
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
			Login string `json:"login"`
			Type  string `json:"type"`
		} `json:"sender"`
	}
	if err := json2.Unmarshal(body, &said); err != nil {
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
	more, room := map[string]any{"event": kind, "repository": said.Repository.Name, "url": url}, said.Repository.Name
	if about != nil {
		more["number"], room = about.Number, room+"#"+strconv.Itoa(about.Number)
	}
	return &Incoming{Text: text, Sender: said.Sender.Login, Room: room, Metadata: metadata(more)}, nil
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
			Topic  int64 `json:"message_thread_id"`
			Topics bool  `json:"is_topic_message"` // else it is a reply to another message
		} `json:"message"`
	}
	if err := json2.Unmarshal(body, &said); err != nil {
		return nil, err
	}
	if m := said.Message; m != nil && m.Text != "" && !m.From.Bot {
		topic := ""
		if m.Topics {
			topic = strconv.FormatInt(m.Topic, 10)
		}
		return &Incoming{Text: m.Text, Sender: strconv.FormatInt(m.From.ID, 10), Room: place(strconv.FormatInt(m.Chat.ID, 10), topic), Metadata: metadata(map[string]any{"chat_id": m.Chat.ID, "message_id": m.ID})}, nil
	}
	return nil, nil
}

// place is a room, and a thread in it where there is one.
func place(room, thread string) string {
	if thread != "" {
		return room + "/" + thread
	}
	return room
}

// metadata returns what a platform's event says beside its text: nil where that is
// nothing.
func metadata(members map[string]any) json.RawMessage {
	for k, v := range members { // a member that the event did not have
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

// exactNumbers returns JSON in which every number above 2^53 is text with the same
// digits: as a number it does not mean the same to every program, and the kernel
// takes none in the input of an operation with effects.
func exactNumbers(raw json.RawMessage) (json.RawMessage, error) {
	in := jsontext.NewDecoder(bytes.NewReader(raw))
	var out bytes.Buffer
	to := jsontext.NewEncoder(&out)
	for {
		if kind := in.PeekKind(); kind != '0' && kind != jsontext.KindInvalid {
			token, err := in.ReadToken()
			if err == nil {
				err = to.WriteToken(token)
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		number, err := in.ReadValue()
		if err == io.EOF {
			return bytes.TrimSpace(out.Bytes()), nil
		}
		if err == nil && tooBig(string(number)) {
			err = to.WriteToken(jsontext.String(string(number)))
		} else if err == nil {
			err = to.WriteValue(number)
		}
		if err != nil {
			return nil, err
		}
	}
}

// tooBig reports whether a JSON number's magnitude is above 2^53, however it is spelled.
func tooBig(spelled string) bool {
	const most = "9007199254740992"
	digits := strings.TrimPrefix(spelled, "-")
	value, err := strconv.ParseFloat(digits, 64)
	return err != nil || value >= 1<<53 && digits != most
}
