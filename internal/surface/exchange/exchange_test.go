package exchange_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/exchange"
)

const page = "# Page\n\n## Doors\n\n```text\nAnn:\n> POST /doors\n> Authorization: Bearer $TOKEN\n>\n> {\"open\": true}\n" +
	"< 200\n< Location: /doors\n<  /$ID\n< {\"id\": \"$ID\", \"at\": \"...\", \"by\": {\"name\": \"ann\"},\n<  \"n\": 1}\n```\n\n```text\n> GET /doors/$ID\n< 404\n< ...<h1>No door</h1>...\n```\n\n" +
	"```text\n> GET /stream\n< 200\n<\n< event: a\n< data: {\"n\":...}\n<\n```\n"

// What a page shows is read whole, and an answer that differs in any part of it is told.
func TestAnAnswerIsHeldAgainstThePage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := exchange.Read(path)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d exchanges, %v", len(all), err)
	}
	first, second := all[0], all[1]
	if first.Section != "Doors" || first.Note != "Ann:" || second.Note != "" || first.Body != `{"open": true}` || len(first.Headers) != 2 || second.Path != "/doors/$ID" {
		t.Errorf("%+v, %+v", first, second)
	}
	const body = `{"id":"7","at":"now","by":{"name":"ann"},"n":1}`
	where := func(location string) func(string) []string {
		return func(string) []string { return []string{"elsewhere", location} }
	}
	for what, c := range map[string]struct {
		status         int
		location, body string
	}{
		"status":        {201, "/doors/7", body},
		"header":        {200, "/windows/7", body},
		"another id":    {200, "/doors/8", body},
		"number":        {200, "/doors/7", `{"id":"7","at":"now","by":{"name":"ann"},"n":2}`},
		"nested":        {200, "/doors/7", `{"id":"7","at":"now","by":{"name":"eve"},"n":1}`},
		"null":          {200, "/doors/7", `{"id":"7","at":null,"by":{"name":"ann"},"n":1}`},
		"member more":   {200, "/doors/7", `{"id":"7","at":"now","by":{"name":"ann"},"n":1,"m":2}`},
		"member less":   {200, "/doors/7", `{"id":"7","at":"now","by":{"name":"ann"}}`},
		"what is there": {200, "/doors/7", "gone"},
	} {
		if (exchange.Values{}).Differs(first, c.status, where(c.location), c.body) == "" {
			t.Errorf("%s: it does not differ", what)
		}
	}
	v := exchange.Values{"TOKEN": "secret"}
	if at := v.Differs(first, 200, where("/doors/7"), body); at != "" || v["ID"] != "7" || v.Fill(first.Headers[1]) != "Bearer secret" {
		t.Errorf("%s, %v", at, v)
	}
	more := *first
	more.Answer = `{"id": "$ID", "...": "..."}`
	if at := v.Differs(&more, 200, where("/doors/7"), body); at != "" {
		t.Errorf("with members that are not shown: %s", at)
	}
	if at := v.Differs(&more, 200, where("/doors/7"), `{"id":"8","n":1}`); at == "" {
		t.Error("then another id is not told")
	}
	if at := v.Differs(second, 404, where(""), "<p><h1>No door</h1>\n</p>"); at != "" {
		t.Error(at)
	}
	if at := v.Differs(all[2], 200, where(""), "event: a\ndata: {\"n\":1}\n\n"); at != "" {
		t.Error(at)
	}
	if at := v.Differs(all[2], 200, where(""), "event: a\n\ndata: {\"n\":1}\n\n"); at == "" {
		t.Error("another line of a text is not told")
	}
	if at := v.Differs(second, 404, where(""), "<h1>A door</h1>"); at == "" {
		t.Error("another page is not told")
	}
}
