package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// dryHeader tells a plugin that an answer is of a dry run.
const dryHeader = "x-mortise-dry-run"

// fetchDry answers a request that is not sent, after the questions that need no
// network: 200, with an empty JSON object. Real answers come from outside, so
// what is made of this one is tainted as theirs would be.
func (g *grant) fetchDry(ctx context.Context, f *fetch) (any, *plugin.Change, error) {
	if err := egress.Allow(g.hosts(), f.url); err != nil {
		return nil, nil, err
	}
	inserted, err := g.inserted(ctx, f)
	if err != nil {
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
	c := &plugin.Change{Target: f.method + " " + f.url.String(), After: f.shown(inserted), Summary: "not asked"}
	if !f.reads() {
		c.Summary = fmt.Sprintf("sent, with %d bytes", len(f.body))
	}
	return answer, c, nil
}

// inserted returns what the host would insert into a request, by the names of
// the headers and parameters, and refuses it where a secret is not set. Accounts
// are not asked for their tokens.
func (g *grant) inserted(ctx context.Context, f *fetch) (map[string]string, error) {
	all := map[string]string{}
	add := func(place, name, scope string, optional bool) error {
		if g.broker.Secrets == nil {
			return nowhere(fetchName)
		}
		found, labels, err := g.secretDry(ctx, name, scope)
		if err != nil {
			return err
		}
		g.heard(labels)
		switch {
		case found:
			all[place] = "secret " + name
		case !optional:
			return g.notThere(name)
		}
		return nil
	}
	for _, p := range f.placed {
		scope, err := g.placedScope(p.secret, f.url)
		if err == nil {
			err = add(strings.ToLower(p.header), p.secret, scope, false)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, in := range g.target.Manifest.HTTP.Inject {
		place := strings.ToLower(in.Header)
		if place == "" {
			place = in.Query
		}
		switch {
		case place == "" || !bound(in, f.url):
		case in.Account != "":
			all[place] = "account " + in.Account
		default:
			if err := add(place, in.Secret, scopeOr(in.AllowedScope), in.Optional); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// shown is a request as a person may see it. Headers go by many names, and all
// that are not known for something else may be credentials.
func (f *fetch) shown(inserted map[string]string) json.RawMessage {
	out := struct {
		JSON    jsontext.Value    `json:"json,omitzero"`
		Body    string            `json:"body,omitempty"`
		Bytes   int               `json:"bytes,omitzero"` // of a body that is neither
		Headers map[string]string `json:"headers,omitempty"`
		Host    map[string]string `json:"inserted,omitempty"` // by the host, by the name of the header or parameter
	}{Headers: map[string]string{}, Host: inserted}
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
	if len(out.Headers) == 0 && len(inserted) == 0 && len(f.body) == 0 {
		return nil
	}
	return shown(out)
}
