package session_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/mortise-dev/mortise/internal/service/session"
)

func utf16le(text string) string {
	raw := []byte("\xff\xfe")
	for _, unit := range utf16.Encode([]rune(text)) {
		raw = binary.LittleEndian.AppendUint16(raw, unit)
	}
	return string(raw)
}

func TestDetect(t *testing.T) {
	t.Parallel()
	trail := `{"Records": [{"eventVersion": "1.08", "eventSource": "iam.amazonaws.com", "eventName": "CreateUser", "awsRegion": "us-east-1"`
	for _, test := range []struct{ name, head, want string }{
		{"auth.log.1", "", "log_stream"},
		{"auth.LOG", "", "log_stream"},
		{"events.json.log", "{}", "log_stream"},
		{"notes.log.txt", "", "text"},
		{"access.log.2026-02-03.gz", "\x1f\x8b\x08", "log_stream"},
		{"x.jsonl", `{"a":1}`, "json_events"},
		{"x.json", "not json", "json_events"},
		{"x.pcap", "", "pcap"},
		{"x.html", "", "html_report"},
		{"x.pdf", "", "pdf_report"},
		{"x.jpeg", "", "image"},
		{"x.csv", "a,b", "text"},
		{"log", "", "text"},
		{"x", "", "text"},
		{"x.bin", "\x00\x01\x02", "text"},

		{"x", "\xd4\xc3\xb2\xa1\x02\x00", "pcap"},
		{"x", "\xa1\xb2\xc3\xd4\x00\x02", "pcap"},
		{"x", "\x4d\x3c\xb2\xa1\x02\x00", "pcap"},
		{"x", "\xa1\xb2\x3c\x4d\x00\x02", "pcap"},
		{"x", "\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a", "pcap"},
		{"x", "\x0a\x0d\x0d\x0a\x00\x00\x00\x1c\x1a\x2b\x3c\x4d", "pcap"},
		{"x", "\x0a\x0d\x0d\x0a\x00\x00\x00\x1c\x00\x00\x00\x00", "text"},
		{"x", "\x89PNG\r\n\x1a\n", "image"},
		{"x", "\xff\xd8\xff\xe0", "image"},
		{"x", "%PDF-1.7", "pdf_report"},
		{"traffic.log", "\xd4\xc3\xb2\xa1\x02\x00", "pcap"},
		{"x", "\n<!DOCTYPE html><p>", "html_report"},
		{"x", "<html lang=en>", "html_report"},
		{"x", "{\"a\": 1}\n{\"a\": 2}\n", "json_events"},
		{"x", ` [{"a": "cut sho`, "json_events"},
		{"x", "[2026-02-03 04:05] started", "text"},
		{"x", "{not json}", "text"},
		{"x", "{}", "json_events"},

		{"x.json", trail, "cloud_audit_log"},
		{"x", trail, "cloud_audit_log"},
		{"x.log", trail, "log_stream"},
		{"x.json", `[{"protoPayload": {"@type": "type.googleapis.com/google.cloud.audit.AuditLog"}}]`, "cloud_audit_log"},
		{"x.json", `[{"operationName": "a", "resourceId": "b", "callerIpAddress": "c"}]`, "cloud_audit_log"},
		{"x.json", `[{"eventName": "click"}]`, "json_events"},

		{"x", utf16le("hello"), "text"},
		{"x", utf16le(`{"a": 1}`), "json_events"},
		{"x", "\xfe\xff\x00<\x00h\x00t\x00m\x00l\x00>", "html_report"},
		{"x", "\xef\xbb\xbf" + `{"a": 1}`, "json_events"},
		{"x.json", utf16le(trail), "cloud_audit_log"},
	} {
		if got := session.Detect(test.name, []byte(test.head)); got != test.want {
			t.Errorf("%s beginning with %.30q: %s, want %s", test.name, test.head, got, test.want)
		}
	}
}

func TestTypesAreTheTenOfTheContract(t *testing.T) {
	t.Parallel()
	var got []string
	for _, typ := range session.Types() {
		got = append(got, typ.Name)
		for _, suffix := range typ.Suffixes {
			if found := session.Detect("x."+suffix, nil); found != typ.Name {
				t.Errorf("x.%s is %s, want %s", suffix, found, typ.Name)
			}
		}
	}
	want := strings.Fields("pcap json_events log_stream risk_model cloud_audit_log pdf_report html_report image text none")
	if !slices.Equal(got, want) {
		t.Errorf("the types are %v", got)
	}
}

func FuzzDetect(f *testing.F) {
	f.Add("auth.log.1", []byte("\xff\xfe{"))
	f.Add("x", []byte("\x0a\x0d\x0d\x0a"))
	f.Fuzz(func(t *testing.T, name string, head []byte) {
		got := session.Detect(name, head)
		if !slices.ContainsFunc(session.Types(), func(typ session.Type) bool { return typ.Name == got }) {
			t.Errorf("%q is no type", got)
		}
	})
}
