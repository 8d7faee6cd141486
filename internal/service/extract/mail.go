package extract

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/jhillyerd/enmime/v2"
)

// mailText returns a mail as people read it: who, when, about what, the text,
// and the names of what is attached.
func mailText(data []byte) (Text, error) {
	envelope, err := enmime.ReadEnvelope(bytes.NewReader(data))
	if err != nil {
		return Text{}, refuse(Unsupported, "the mail cannot be read: %v", err)
	}
	var b strings.Builder
	for _, name := range []string{"Subject", "From", "To", "Cc", "Date"} {
		if value := OneLine(envelope.GetHeader(name)); value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	headers := b.Len()
	body := envelope.Text
	if envelope.HTML != "" && (strings.TrimSpace(body) == "" || envelope.Root == nil) {
		if t, err := htmlText([]byte(envelope.HTML), "text/html; charset=utf-8"); err == nil {
			body = t.Text
		}
	}
	if headers == 0 && strings.TrimSpace(body) == "" {
		return Text{}, refuse(Unsupported, "the file is said to be a mail and has neither headers nor text")
	}
	b.WriteString("\n" + body + "\n")
	var names []string
	for _, part := range append(envelope.Attachments, envelope.Inlines...) {
		if part.FileName != "" {
			names = append(names, OneLine(part.FileName))
		}
	}
	if len(names) > 0 {
		b.WriteString("\nAttachments: " + strings.Join(names, ", ") + "\n")
	}
	return Text{
		Text: b.String(), Title: OneLine(envelope.GetHeader("Subject")), Method: "text", Engine: "enmime", Confidence: 1,
		Details: map[string]any{"attachments": len(names), "defects": len(envelope.Errors)},
	}, nil
}

// OneLine returns text without what may end a line, and without other control
// characters: what a header says begins no other header, and no body.
func OneLine(text string) string {
	parts := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' })
	return strings.TrimSpace(strings.Join(parts, " "))
}
