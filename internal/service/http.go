package service

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

const (
	httpName  = "http"
	fetchName = "http.fetch"
	httpWrite = "http_write" // the effect of every request but GET and HEAD
)

// Bounds of one request.
const (
	fetchTimeout    = 30 * time.Second
	fetchMaxTimeout = 10 * time.Minute // and never beyond the call's own deadline
	fetchBytes      = 8 << 20          // of an answer's body, after inflating
	fetchMaxBytes   = 16 << 20
	fetchHeader     = 16 << 10 // of the headers a plugin sends
	fetchMaxHeaders = 64
)

// fetchMethods are those that plugins may use. What tunnels or echoes is not
// among them.
var fetchMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// A fetch is one request that was understood.
type fetch struct {
	method  string
	url     *url.URL
	header  http.Header
	placed  []placed // headers that the host fills in
	body    []byte
	as      string // auto, text or bytes
	follow  bool
	timeout time.Duration
	max     int64
	cut     bool // a longer body is cut, not refused
	retries int  // that the plugin asked for; only what reads is sent again
}

// reads reports whether the request changes nothing on the other side, and may
// be repeated.
func (f *fetch) reads() bool { return f.method == http.MethodGet || f.method == http.MethodHead }

// fetchTask understands http.fetch.
func fetchTask(g *grant, args json.RawMessage) (task, error) {
	f, err := parseFetch(args)
	if err != nil {
		return task{}, err
	}
	if err := g.insertions(f); err != nil {
		return task{}, err
	}
	t := task{class: Read, do: func(ctx context.Context) (any, error) { return g.broker.web.fetch(ctx, g, f) }}
	t.dry = func(ctx context.Context) (any, *plugin.Change, error) { return g.fetchDry(ctx, f) }
	if !f.reads() {
		t.class, t.effect = External, httpWrite
		if header := idempotencyHeader(g.target.Manifest.HTTP.Idempotency, f.url); header != "" {
			t.repeat = func(key string) { f.header.Set(header, key) }
		}
	}
	return t, nil
}

// idempotencyHeader returns the header in which the host of a URL takes a key;
// "" if the manifest names none.
func idempotencyHeader(declared map[string]string, u *url.URL) string {
	for host, header := range declared {
		if egress.Allow([]string{host}, u) == nil {
			return header
		}
	}
	return ""
}

func parseFetch(args json.RawMessage) (*fetch, error) {
	var in struct {
		Method  string                    `json:"method"`
		URL     string                    `json:"url"`
		Headers map[string]jsontext.Value `json:"headers"`
		Params  map[string]jsontext.Value `json:"params"`
		JSON    jsontext.Value            `json:"json"`
		Body    *string                   `json:"body"`
		Base64  *string                   `json:"body_base64"`
		As      string                    `json:"as"`
		Timeout *float64                  `json:"timeout_seconds"`
		Follow  *bool                     `json:"follow_redirects"`
		Max     *int64                    `json:"max_bytes"`
		Retries *int                      `json:"retries"`
	}
	if err := decode(fetchName, args, &in); err != nil {
		return nil, err
	}
	f := &fetch{method: strings.ToUpper(in.Method), as: in.As, follow: in.Follow == nil || *in.Follow, timeout: fetchTimeout, max: fetchBytes}
	switch {
	case f.method == "":
		f.method = http.MethodGet
	case !slices.Contains(fetchMethods, f.method):
		return nil, invalid("method: %.20q is none of %s", in.Method, strings.Join(fetchMethods, ", "))
	}
	switch f.as {
	case "":
		f.as = "auto"
	case "auto", "text", "bytes":
	default:
		return nil, invalid("as: %.20q is none of auto, text, bytes", in.As)
	}
	if in.Timeout != nil {
		if !(*in.Timeout > 0) {
			return nil, invalid("timeout_seconds: it is positive")
		}
		f.timeout = time.Duration(min(*in.Timeout, fetchMaxTimeout.Seconds()) * float64(time.Second))
	}
	if in.Max != nil {
		if *in.Max < 1 || *in.Max > fetchMaxBytes {
			return nil, invalid("max_bytes: it is 1 to %d", fetchMaxBytes)
		}
		f.max, f.cut = *in.Max, true
	}
	if in.Retries != nil {
		if *in.Retries < 0 || *in.Retries > maxRetries {
			return nil, invalid("retries: they are 0 to %d", maxRetries)
		}
		f.retries = *in.Retries
	}
	var err error
	if f.header, f.placed, err = parseHeaders(in.Headers); err != nil {
		return nil, err
	}
	if err := f.setBody(in.JSON, in.Body, in.Base64); err != nil {
		return nil, err
	}
	target, err := withParams(in.URL, in.Params)
	if err != nil {
		return nil, err
	}
	if f.url, err = egress.ParseURL(target); err != nil {
		return nil, err
	}
	return f, nil
}

func invalid(format string, args ...any) error {
	return plugin.Errorf(plugin.CodeInvalidInput, fetchName+": "+format, args...)
}

// setBody takes the body from the one argument that gives it. JSON's null
// stands for nothing.
func (f *fetch) setBody(value jsontext.Value, text, encoded *string) error {
	given := 0
	if len(value) > 0 && string(value) != "null" {
		given++
		f.body = bytes.Clone(value)
		if f.header.Get("Content-Type") == "" {
			f.header.Set("Content-Type", "application/json")
		}
	}
	if text != nil {
		given++
		f.body = []byte(*text)
	}
	if encoded != nil {
		given++
		raw, err := base64.StdEncoding.Strict().DecodeString(*encoded)
		if err != nil {
			return invalid("body_base64: %w", err)
		}
		f.body = raw
	}
	switch {
	case given > 1:
		return invalid("give one of json, body and body_base64")
	case given == 1 && f.reads():
		return invalid("a %s request has no body", f.method)
	}
	return nil
}

// parseHeaders reads the headers of a plugin: those that it gives, and those that
// it leaves to the host.
func parseHeaders(given map[string]jsontext.Value) (http.Header, []placed, error) {
	if len(given) > fetchMaxHeaders {
		return nil, nil, invalid("headers: at most %d are sent", fetchMaxHeaders)
	}
	header, size := http.Header{}, 0
	var refs []placed
	folded := map[string]bool{}
	for name, raw := range given {
		canonical, fold := http.CanonicalHeaderKey(name), egress.FoldHeader(name)
		switch {
		case !isToken(name):
			return nil, nil, invalid("headers: %.60q is no name of a header", name)
		case egress.RefusedHeader(canonical):
			return nil, nil, invalid("headers: %s is not a plugin's to send", canonical)
		case folded[fold]:
			return nil, nil, invalid("headers: %s is given twice, or servers take another name for it", canonical)
		}
		folded[fold] = true
		size += len(name) + len(raw)
		if raw.Kind() == '{' {
			var ref headerReference
			if err := decode(fetchName, json.RawMessage(raw), &ref); err != nil {
				return nil, nil, err
			}
			p, err := parsePlaced(canonical, ref)
			if err != nil {
				return nil, nil, err
			}
			refs = append(refs, p)
			continue
		}
		var value string
		if err := json2.Unmarshal(raw, &value); err != nil || raw.Kind() != '"' {
			return nil, nil, invalid("headers: the value of %s is text or {\"$secret\": name}", canonical)
		}
		if err := checkHeaderValue(canonical, value); err != nil {
			return nil, nil, err
		}
		header.Set(canonical, strings.Trim(value, " \t"))
	}
	if size > fetchHeader {
		return nil, nil, invalid("headers: they have %d bytes; at most %d are sent", size, fetchHeader)
	}
	return header, refs, nil
}

func checkHeaderValue(name, value string) error {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return invalid("headers: the value of %s holds a control character", name)
	}
	return nil
}

// isToken reports whether text may be the name of a header (RFC 9110, 5.6.2).
func isToken(text string) bool {
	for _, c := range []byte(text) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return text != ""
}

// withParams appends query parameters to a URL, by name: text as it is, true
// and numbers as JSON writes them, a list as one parameter for each item, null
// as none.
func withParams(target string, params map[string]jsontext.Value) (string, error) {
	query := url.Values{}
	for name, value := range params {
		values := []jsontext.Value{value}
		if value.Kind() == '[' {
			if err := json2.Unmarshal(value, &values); err != nil {
				return "", invalid("params: %w", err)
			}
		}
		for _, v := range values {
			switch v.Kind() {
			case 'n':
			case '"':
				var text string
				if err := json2.Unmarshal(v, &text); err != nil {
					return "", invalid("params: %w", err)
				}
				query.Add(name, text)
			case '{', '[':
				return "", invalid("params: %.60q is neither text, number, true, false nor a list of those", name)
			default:
				query.Add(name, string(v))
			}
		}
	}
	if len(query) == 0 {
		return target, nil
	}
	target, _, _ = strings.Cut(target, "#")
	switch before, existing, has := strings.Cut(target, "?"); {
	case !has:
		target += "?"
	case existing == "":
		target = before + "?"
	default:
		target += "&"
	}
	return target + query.Encode(), nil
}
