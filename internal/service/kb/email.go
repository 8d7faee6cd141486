package kb

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/internal/service/extract/document"
	"github.com/mortise-dev/mortise/plugin"
)

// An Email is a message as plugins have it from their providers. Members that
// providers spell in several ways are whatever JSON they are.
type Email struct {
	Subject    string `json:"subject"`
	Sender     any    `json:"sender"`
	Recipients any    `json:"recipients"` // {to, cc, bcc}, or a list
	Date       any    `json:"date"`
	MessageID  string `json:"message_id"`
	ThreadID   string `json:"thread_id"`
	BodyText   string `json:"body_text"`
	BodyHTML   string `json:"body_html"`
	Labels     any    `json:"labels"`
}

// Source is the message as a text to be found. id takes the place of the
// message's own where it is not empty.
func (e *Email) Source(id string) Source {
	if id == "" {
		id = e.MessageID
	}
	var b strings.Builder
	line := func(name string, value any) {
		if text := document.OneLine(people(value)); text != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, text)
		}
	}
	line("Subject", e.Subject)
	line("From", e.Sender)
	if r, ok := e.Recipients.(map[string]any); ok {
		line("To", r["to"])
		line("Cc", r["cc"])
		line("Bcc", r["bcc"])
	} else {
		line("To", e.Recipients)
	}
	line("Date", dated(e.Date))
	body := e.BodyText
	if strings.TrimSpace(body) == "" && e.BodyHTML != "" {
		body = extract.Plain(e.BodyHTML)
	}
	b.WriteString("\n" + body)
	details := map[string]any{"message_id": e.MessageID}
	if e.ThreadID != "" {
		details["thread_id"] = e.ThreadID
	}
	if e.Labels != nil {
		details["labels"] = e.Labels
	}
	return Source{ID: id, Title: document.OneLine(e.Subject), Text: b.String(), Details: details}
}

// people spells an address, or a list of them.
func people(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return strings.TrimSpace(v)
	case []any:
		var all []string
		for _, one := range v {
			if text := people(one); text != "" {
				all = append(all, text)
			}
		}
		return strings.Join(all, ", ")
	case map[string]any:
		name, address := people(v["name"]), people(v["email"])
		if address == "" {
			address = people(v["address"])
		}
		switch {
		case name != "" && address != "":
			return name + " <" + address + ">"
		default:
			return name + address
		}
	}
	if number, ok := value.(float64); ok { // with its digits, not an exponent
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// dated spells a date. Providers have it as text, or as a number of seconds,
// milliseconds or microseconds since 1970: that keeps its digits and is told as
// what it means beside them.
func dated(value any) string {
	text := people(value)
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || number < 1e8 || number >= 1e17 { // earlier than 1973, or no such number
		return text
	}
	for number >= 1e11 {
		number /= 1000
	}
	return text + " (" + time.Unix(int64(number), 0).UTC().Format(time.RFC3339) + ")"
}

// Object is a knowledge object of a plugin's own making as a source. One that
// does not name its source is refused.
func Object(ko map[string]any) (Source, error) {
	text := func(names ...string) string {
		for _, name := range names {
			if value, ok := ko[name].(string); ok && value != "" {
				return value
			}
		}
		return ""
	}
	if ko["source"] == nil || ko["source"] == "" {
		return Source{}, plugin.Errorf(plugin.CodeInvalidInput, "the knowledge object has no source; ko.source says where it is from")
	}
	s := Source{ID: text("external_id", "source_id", "id", "ko_id"), Title: text("title", "name"), URL: text("source_url", "url"), Text: text("content", "text", "body", "summary")}
	if source, ok := ko["source"].(map[string]any); ok && s.ID == "" {
		s.ID, _ = source["id"].(string)
	}
	if s.ID == "" {
		return Source{}, plugin.Errorf(plugin.CodeInvalidInput, "the knowledge object has no external_id, by which it is found again")
	}
	if s.Text == "" { // it is data: found by its words all the same
		raw, err := json2.Marshal(ko, json2.Deterministic(true))
		if err != nil {
			return Source{}, plugin.Errorf(plugin.CodeInvalidInput, "the knowledge object: %w", err)
		}
		s.Text = string(raw)
	}
	s.Details = map[string]any{"source": ko["source"]}
	for _, name := range []string{"type", "kind", "metadata"} {
		if ko[name] != nil {
			s.Details[name] = ko[name]
		}
	}
	if _, err := json.Marshal(s.Details); err != nil {
		return Source{}, plugin.Errorf(plugin.CodeInvalidInput, "the knowledge object: %w", err)
	}
	return s, nil
}
