package reader

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/jhillyerd/enmime/v2"

	"github.com/mortise-dev/mortise/internal/service/extract/document"
)

// mailText returns a mail as people read it: who, when, about what, the text,
// and the names of what is attached.
func mailText(data []byte) (content, error) {
	envelope, err := enmime.ReadEnvelope(bytes.NewReader(data))
	if err != nil {
		return content{}, document.Refuse(document.Unsupported, "the mail cannot be read: %v", err)
	}
	var b strings.Builder
	for _, name := range []string{"Subject", "From", "To", "Cc", "Date"} {
		if value := document.OneLine(envelope.GetHeader(name)); value != "" {
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
		return content{}, document.Refuse(document.Unsupported, "the file is said to be a mail and has neither headers nor text")
	}
	b.WriteString("\n" + body + "\n")
	var names []string
	for _, part := range append(envelope.Attachments, envelope.Inlines...) {
		if part.FileName != "" {
			names = append(names, document.OneLine(part.FileName))
		}
	}
	if len(names) > 0 {
		b.WriteString("\nAttachments: " + strings.Join(names, ", ") + "\n")
	}
	return content{
		Text: b.String(), Title: document.OneLine(envelope.GetHeader("Subject")), Method: "text", Engine: "enmime", Confidence: 1,
		Details: map[string]any{"attachments": len(names), "defects": len(envelope.Errors)},
	}, nil
}
