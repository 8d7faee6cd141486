package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
)

// A Type is a kind of artifact that tools say they read or make.
type Type struct {
	Name     string   `json:"type"`
	What     string   `json:"what"`
	Suffixes []string `json:"suffixes"` // of file names, by which it is recognised
}

// Types are all types there are.
func Types() []Type { return slices.Clone(types) }

var types = []Type{
	{"pcap", "captured network traffic", []string{"pcap", "pcapng", "cap"}},
	{"json_events", "events as JSON, whole or a line each", []string{"json", "jsonl", "ndjson"}},
	{"log_stream", "lines of a log", []string{"log", "syslog"}},
	{"risk_model", "a model of risks", []string{"risk_model"}},
	{"cloud_audit_log", "what was done in a cloud account, as JSON", []string{"cloudtrail"}},
	{"pdf_report", "a PDF document", []string{"pdf"}},
	{"html_report", "a page of HTML", []string{"html", "htm"}},
	{"image", "a picture", []string{"png", "jpg", "jpeg", "gif", "webp", "bmp", "svg"}},
	{"text", "any other text, and what nothing is known of", []string{"txt", "md", "csv", "tsv", "xml", "yaml", "yml"}},
	{"none", "no artifact at all", []string{}},
}

func isType(name string) bool {
	return slices.ContainsFunc(types, func(t Type) bool { return t.Name == name })
}

// Detect returns the type of a file by its name and how it begins. Formats that
// can be nothing else count first, then suffixes from right to left, so that
// auth.log.1 is a log, then what the text looks like.
func Detect(name string, head []byte) string {
	if found := byMagic(head); found != "" {
		return found
	}
	found := bySuffix(name)
	if found != "" && found != "json_events" {
		return found
	}
	text := asUTF8(head)
	looks := byText(text)
	switch {
	case looks == "json_events" && isAudit(text):
		return "cloud_audit_log"
	case found != "":
		return found
	}
	return looks
}

// magics are how formats begin.
var magics = []struct{ begins, name string }{
	{"\xd4\xc3\xb2\xa1", "pcap"}, {"\xa1\xb2\xc3\xd4", "pcap"}, // microseconds, both byte orders
	{"\x4d\x3c\xb2\xa1", "pcap"}, {"\xa1\xb2\x3c\x4d", "pcap"}, // nanoseconds
	{"\x89PNG\r\n\x1a\n", "image"}, {"\xff\xd8\xff", "image"}, {"GIF87a", "image"}, {"GIF89a", "image"},
	{"%PDF-", "pdf_report"},
}

func byMagic(head []byte) string {
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.begins)) {
			return m.name
		}
	}
	// pcapng: a section header, whose byte order is said after its length.
	if len(head) >= 12 && bytes.HasPrefix(head, []byte("\x0a\x0d\x0d\x0a")) {
		if order := binary.BigEndian.Uint32(head[8:]); order == 0x1a2b3c4d || order == 0x4d3c2b1a {
			return "pcap"
		}
	}
	return ""
}

func bySuffix(name string) string {
	parts := strings.Split(strings.ToLower(name), ".")
	for i := len(parts) - 1; i > 0; i-- {
		for _, t := range types {
			if slices.Contains(t.Suffixes, parts[i]) {
				return t.Name
			}
		}
	}
	return ""
}

// byText returns what a text looks like.
func byText(text []byte) string {
	text = bytes.TrimSpace(text)
	start := strings.ToLower(string(text[:min(len(text), 64)]))
	switch {
	case strings.HasPrefix(start, "<!doctype html"), strings.HasPrefix(start, "<html"):
		return "html_report"
	case isJSON(text):
		return "json_events"
	}
	return "text"
}

// isJSON reports whether text begins with an object or an array, and is JSON as
// far as it goes.
func isJSON(text []byte) bool {
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		if _, err := dec.ReadToken(); err != nil {
			return err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)
		}
	}
}

// isAudit reports whether JSON has the members that clouds write into their
// audit logs: AWS CloudTrail, Google Cloud, Azure.
func isAudit(text []byte) bool {
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return !bytes.Contains(text, []byte(`"`+name+`"`)) })
	}
	return has("eventSource", "eventName", "awsRegion") || has("type.googleapis.com/google.cloud.audit.AuditLog") ||
		has("operationName", "resourceId", "callerIpAddress")
}

// asUTF8 returns a text that may be in UTF-16, and without a byte order mark.
func asUTF8(text []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(text, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	}
	text = text[2:]
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = order.Uint16(text[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}
