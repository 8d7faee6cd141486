package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// dryHeader tells a plugin that an answer is of a dry run.
const dryHeader = "x-mortise-dry-run"

// fetchDry answers a request that is not sent, after the questions that need no
// network: 200, with an empty JSON object. Real answers come from outside, so
// what is made of this one is tainted as theirs would be.
func (g *grant) fetchDry(f *fetch) (any, *plugin.Change, error) {
	if err := egress.Allow(g.hosts(), f.url); err != nil {
		return nil, nil, err
	}
	g.heard([]string{plugin.Untrusted})
	answer := &fetched{StatusCode: http.StatusOK, Headers: map[string]string{"content-type": "application/json", dryHeader: "1"}, URL: f.url.String()}
	body := "{}"
	switch {
	case f.method == http.MethodHead:
		body = ""
		answer.Body = &body
	case f.as == "auto":
		answer.JSON = jsontext.Value(body)
	case f.as == "bytes":
		answer.BodyBase64 = []byte(body)
	default:
		answer.Body = &body
	}
	c := &plugin.Change{Target: f.method + " " + f.url.String(), After: f.shown(), Summary: "not asked"}
	if !f.reads() {
		c.Summary = fmt.Sprintf("sent, with %d bytes", len(f.body))
	}
	return answer, c, nil
}

// shown is a request as a person may see it. Headers go by many names, and all
// that are not known for something else may be credentials.
func (f *fetch) shown() json.RawMessage {
	out := struct {
		Headers map[string]string `json:"headers,omitempty"`
		JSON    jsontext.Value    `json:"json,omitzero"`
		Body    string            `json:"body,omitempty"`
		Bytes   int               `json:"bytes,omitempty"` // of a body that is neither
	}{Headers: map[string]string{}}
	for name, values := range f.header {
		value := "[redacted]"
		if slices.Contains(keptHeaders, name) {
			value = strings.Join(values, ", ")
		}
		out.Headers[strings.ToLower(name)] = value
	}
	switch {
	case len(f.body) == 0:
	case isJSON(f.header.Get("Content-Type"), f.body):
		out.JSON = f.body
	case utf8.Valid(f.body):
		out.Body = string(f.body)
	default:
		out.Bytes = len(f.body)
	}
	if len(out.Headers) == 0 && len(f.body) == 0 {
		return nil
	}
	return shown(out)
}
