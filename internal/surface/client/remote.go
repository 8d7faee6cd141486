package client

import (
	"bytes"
	"context"
	json1 "encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of what a host answers.
const (
	maxAnswer = 64 << 20         // bytes of one answer that is no stream and no file
	connects  = 10 * time.Second // for a host to take a connection
)

// A remote is a host that is asked over HTTP: on the socket of its owner, or at a URL. It
// is safe for concurrent use.
type remote struct {
	http  *http.Client
	base  string // of the URL, without the slash at its end
	token string // "" on the socket
	as    string // on whose behalf the owner acts; on the socket alone
	who   Who
	say   func(format string, args ...any)

	background string // the identity of a background host; "" of any other
}

// overSocket returns the host that answers on a socket.
func overSocket(path, as string, say func(string, ...any)) *remote {
	dial := net.Dialer{Timeout: connects}
	t := &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return dial.DialContext(ctx, "unix", path) },
		DisableCompression: true,
	}
	return &remote{http: &http.Client{Transport: t}, base: "http://localhost", as: as, who: Who{Manner: OverSocket}, say: say}
}

// atURL returns the host at a URL. It is not asked anything yet.
func atURL(where, token string, say func(string, ...any)) (*remote, error) {
	base, err := BaseURL(where)
	if err != nil {
		return nil, err
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	return &remote{
		http: &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		base: base, token: token, who: Who{Manner: AtURL, Server: base}, say: say,
	}, nil
}

// BaseURL returns the address of a host as it is kept. A token crosses no network in the
// clear: an address that is not of this machine is one of https.
func BaseURL(where string) (string, error) {
	u, err := url.Parse(strings.TrimRight(where, "/"))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%.200q is no address of a host, such as https://mortise.example.com", where)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "":
		return "", fmt.Errorf("%.200q has more than the address of a host: https://NAME:PORT is all", where)
	case u.Scheme == "http" && !thisMachine(u.Hostname()):
		return "", fmt.Errorf("%s would get the token in the clear: https, or a name of this machine", u.Host)
	}
	return u.Scheme + "://" + u.Host, nil
}

func thisMachine(name string) bool {
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

// Who implements [Host].
func (r *remote) Who() Who { return r.who }

// where is the host, as a person reads it.
func (r *remote) where() string {
	if r.who.Manner == OverSocket {
		return "the host that serves " + r.who.Home
	}
	return "the host at " + r.base
}

// An asking is one request.
type asking struct {
	method, path string // the path below /api/v1/, escaped
	query        url.Values
	header       http.Header
	body         any               // written as JSON; nil for none
	key          string            // the idempotency key; "" where the route takes none
	head         func(http.Header) // is shown the header of the answer; may be nil
}

// at escapes the segments of a path. What ends in a verb, such as ":cancel", keeps it.
func at(segments ...string) string {
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.PathEscape(s), "%3A", ":")
	}
	return strings.Join(segments, "/")
}

// send asks, and returns the answer, whose body the caller closes. What is refused is a
// [*plugin.Error] with the code, the message and the time of the problem.
func (r *remote) send(ctx context.Context, q asking) (*http.Response, error) {
	var body io.Reader
	if q.body != nil {
		raw, err := json.Marshal(q.body, jsontext.AllowDuplicateNames(true))
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(raw)
	}
	where := r.base + rest.Prefix + q.path
	if len(q.query) > 0 {
		where += "?" + q.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, q.method, where, body)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%.200q cannot be asked for", q.path)
	}
	for name, values := range q.header {
		req.Header[name] = values
	}
	if q.key != "" {
		req.Header.Set(KeyHeader, q.key)
	}
	req.Header.Set("User-Agent", "mortise/"+host.Version)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if r.as != "" {
		req.Header.Set(rest.AsHeader, url.QueryEscape(r.as))
	}
	res, err := r.http.Do(req)
	if err != nil {
		return nil, r.unreached(ctx, err)
	}
	if q.head != nil {
		q.head(res.Header)
	}
	if res.StatusCode >= 300 && res.StatusCode != http.StatusNotModified {
		defer res.Body.Close()
		return nil, r.refusal(res)
	}
	return res, nil
}

// unreached is why a request got no answer.
func (r *remote) unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var in *url.Error
	if errors.As(err, &in) {
		err = in.Err
	}
	return &plugin.Error{Code: plugin.CodeUnavailable, Message: fmt.Sprintf("%s does not answer: %v", r.where(), err), Retryable: true, Err: gone{err}}
}

// gone is why there was no answer, or not all of one: the host said nothing of the request.
type gone struct{ error }

// Unwrap returns the cause.
func (g gone) Unwrap() error { return g.error }

// Gone reports whether an error says that the host that was asked is not there any more.
func Gone(err error) bool { return errors.As(err, new(gone)) }

// refusal is what a host says with an answer that is none.
func (r *remote) refusal(res *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	var p rest.Problem
	if json.Unmarshal(raw, &p) != nil || !p.Code.Known() && p.Code == "" {
		text, _, _ := strings.Cut(strings.TrimSpace(string(raw)), "\n")
		return plugin.Errorf(plugin.CodeUnavailable, "%s answers %s, which is no answer of a host: %.200q", r.where(), res.Status, text)
	}
	e := problemError(&p)
	if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && e.RetryAfter == 0 {
		e.RetryAfter = time.Duration(n) * time.Second
	}
	return &refused{e, &p}
}

// A refused is a problem, with what is known of the call that it is of.
type refused struct {
	err     *plugin.Error
	problem *rest.Problem
}

// Error implements error.
func (r *refused) Error() string { return r.err.Error() }

// Unwrap returns the error that it is.
func (r *refused) Unwrap() error { return r.err }

// problemError is a problem as package host would have it.
func problemError(p *rest.Problem) *plugin.Error {
	e := &plugin.Error{Code: p.Code, Message: p.Detail, Retryable: p.Retryable, Details: json1.RawMessage(p.Details)}
	if p.Hint != "" {
		e.Message += "; " + p.Hint
	}
	var places []string
	for _, at := range p.Errors {
		if p.CallID == "" && at.Detail != "" && !strings.Contains(p.Detail, at.Detail) {
			places = append(places, strings.TrimPrefix(at.Pointer+": ", ": ")+at.Detail)
		}
	}
	if len(places) > 0 {
		e.Message += ": " + strings.Join(places, "; ")
	}
	return e
}

// asTyped is an error with a path in it as the user wrote it, where the host was told the whole.
func asTyped(err error, whole, typed string) error {
	if err == nil || whole == typed {
		return err
	}
	e := *plugin.AsError(err)
	e.Message = strings.ReplaceAll(e.Message, whole, typed)
	return &e
}

// do asks, and reads the answer into out, where that is not nil. With a key it asks again where the
// answer was lost.
func (r *remote) do(ctx context.Context, q asking, out any) (header http.Header, err error) {
	err = repeat(ctx, q.key, func() (err error) {
		header, err = r.doOnce(ctx, q, out)
		return err
	})
	return header, err
}

func (r *remote) doOnce(ctx context.Context, q asking, out any) (http.Header, error) {
	res, err := r.send(ctx, q)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, r.unreached(ctx, err)
	case len(raw) > maxAnswer:
		return nil, plugin.Errorf(plugin.CodeOutputTooLarge, "%s answers with more than %d bytes", r.where(), maxAnswer)
	case out == nil:
		return res.Header, nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "%s answers in a form that this version, %s, cannot read; it is of version %s: %w", r.where(), host.Version, r.who.Version, err)
	}
	return res.Header, nil
}

// get reads a document.
func (r *remote) get(ctx context.Context, out any, query url.Values, segments ...string) error {
	_, err := r.do(ctx, asking{method: http.MethodGet, path: at(segments...), query: query}, out)
	return err
}

// post asks for a change, or for what takes a body.
func (r *remote) post(ctx context.Context, body, out any, segments ...string) error {
	_, err := r.do(ctx, asking{method: http.MethodPost, path: at(segments...), body: body}, out)
	return err
}

// change asks for a change of what has an ETag, as it was just seen: nothing is lost that
// another caller changed meanwhile.
func (r *remote) change(ctx context.Context, method string, body, out any, tag string, segments ...string) error {
	q := asking{method: method, path: at(segments...), body: body}
	if tag != "" {
		q.header = http.Header{"If-Match": {tag}}
	}
	_, err := r.do(ctx, q, out)
	return err
}

// largestPage is how many rows a page has at most.
const largestPage = 200

// pages reads a list from its beginning, up to most rows where that is not 0. read takes a
// page, and returns how many rows it had and the token of the next.
func (r *remote) pages(ctx context.Context, query url.Values, most int, read func(raw []byte) (rows int, next string, err error), segments ...string) error {
	if query == nil {
		query = url.Values{}
	}
	for seen := 0; ; {
		size := largestPage
		if most > 0 {
			size = min(size, most-seen)
		}
		query.Set("page_size", strconv.Itoa(size))
		var raw rawJSON
		if err := r.get(ctx, &raw, query, segments...); err != nil {
			return err
		}
		n, next, err := read(raw)
		if err != nil {
			return err
		}
		if seen += n; next == "" || most > 0 && seen >= most {
			return nil
		}
		query.Set("page_token", next)
	}
}

// rawJSON is a document that is read later.
type rawJSON []byte

// UnmarshalJSON implements [json.Unmarshaler].
func (r *rawJSON) UnmarshalJSON(raw []byte) error {
	*r = bytes.Clone(raw)
	return nil
}

// rowsOf reads a list of T, member by name, from its beginning.
func rowsOf[T any](ctx context.Context, r *remote, member string, query url.Values, most int, segments ...string) ([]T, error) {
	var all []T
	err := r.pages(ctx, query, most, func(raw []byte) (int, string, error) {
		var members map[string]jsontext.Value
		if err := json.Unmarshal(raw, &members); err != nil {
			return 0, "", plugin.Errorf(plugin.CodeUnavailable, "%s answers in a form that this version cannot read: %w", r.where(), err)
		}
		var rows []T
		var next string
		if err := errors.Join(unmarshalSome(members[member], &rows), unmarshalSome(members["next_page_token"], &next)); err != nil {
			return 0, "", plugin.Errorf(plugin.CodeUnavailable, "%s answers in a form that this version cannot read: %w", r.where(), err)
		}
		all = append(all, rows...)
		return len(rows), next, nil
	}, segments...)
	return all, err
}

func unmarshalSome(raw []byte, out any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, out)
}
