package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// A told is an event as a browser reads it.
type told struct {
	id, name, data string
	body           map[string]any
}

func (e told) String() string { return fmt.Sprintf("%s %s (%s)", e.name, e.data, e.id) }

// A follower reads a stream.
type follower struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Reader
	cancel   func()
	last     string   // the id of the last event, or position
	comments []string // that came
}

// followed opens a stream. headers are names and values in turn.
func (b *bench) followed(token, method, path, body string, headers ...string) *follower {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, b.url+path, in)
	if err != nil {
		b.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	f := &follower{t: b.T, response: resp, lines: bufio.NewReader(resp.Body), cancel: cancel}
	b.Cleanup(f.leave)
	if h := resp.Header; resp.StatusCode == 200 && (h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" || h.Get("Cache-Control") != "no-store") {
		b.Errorf("%s is answered with %v", path, h)
	}
	return f
}

func (f *follower) leave() {
	f.cancel()
	_ = f.response.Body.Close()
}

// next reads the next block of lines. It fails where the stream ends.
func (f *follower) next() (told, error) {
	var e told
	began := false
	for {
		line, err := f.lines.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && began:
			return e, nil
		case line == "":
		case field == "":
			f.comments = append(f.comments, value)
			began = true
		case field == "id":
			e.id, f.last, began = value, value, true
		case field == "event":
			e.name, began = value, true
		case field == "data":
			e.data, began = value, true
			_ = json.Unmarshal([]byte(value), &e.body)
		default:
			began = true
		}
	}
}

// event reads the next event within a time.
func (f *follower) event() told {
	f.t.Helper()
	timer := time.AfterFunc(testwait.Limit, f.leave)
	defer timer.Stop()
	for {
		e, err := f.next()
		if err != nil {
			f.t.Fatalf("the stream ends: %v %q", err, f.comments)
		}
		if e.name != "" {
			return e
		}
	}
}

// events reads until an event of a type, and returns all as "type id-of-the-noun".
func (f *follower) until(name string) (all []string) {
	f.t.Helper()
	for {
		e := f.event()
		all = append(all, fmt.Sprint(e.name, " ", e.body["id"]))
		if e.name == name {
			return all
		}
	}
}

// ends reads until the end of the stream, and returns its last comment.
func (f *follower) ends() string {
	f.t.Helper()
	timer := time.AfterFunc(testwait.Limit, func() { f.t.Error("the stream does not end"); f.leave() })
	defer timer.Stop()
	for {
		if _, err := f.next(); err != nil {
			if len(f.comments) == 0 {
				return ""
			}
			return f.comments[len(f.comments)-1]
		}
	}
}

// Each principal is told of the nouns that they may see, and of no other; an id leads on
// from there, also on another stream.
func TestEventsAreOfWhatMayBeSeen(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	const path = "/api/v1/events?types=call,approval,plan,agent,plugin"
	ann, ben, bob, root := b.followed("mrt_ann", "GET", path, ""), b.followed("mrt_ben", "GET", path, ""), b.followed("mrt_bobs", "GET", path, ""), b.followed("mrt_root", "GET", path, "")
	b.is(b.execute("mrt_ann", "line", "one"), 200, "succeeded")
	asked := b.execute("mrt_ann", "gated", "two")
	b.is(asked, 202, "pending_approval")
	approval, gated := fmt.Sprint(asked.at("approval", "id")), fmt.Sprint(asked.at("call_id"))
	things := b.things()
	b.decide(approval, false)
	last := b.execute("mrt_ben", "line", "his")
	b.is(last, 200, "succeeded")
	his := fmt.Sprint(last.at("call_id"))

	got := strings.Join(ann.until("approval.denied"), "\n")
	for _, want := range []string{"call.succeeded", "call.pending " + gated, "approval.requested " + approval, "plan.proposed " + things["plan"], "approval.denied " + approval} {
		if !strings.Contains(got, want) {
			t.Errorf("who made them is told\n%s\nwithout %s", got, want)
		}
	}
	if got := strings.Join(ben.until("call.succeeded"), "\n"); strings.Contains(got, things["call"]) || strings.Contains(got, gated) || strings.Contains(got, "approval") || !strings.Contains(got, his) {
		t.Errorf("another is told\n%s", got)
	}
	if got := strings.Join(bob.until("approval.denied"), "\n"); !strings.Contains(got, "approval.requested "+approval) || !strings.Contains(got, "call.pending "+gated) || strings.Contains(got, "call.succeeded") {
		t.Errorf("who decides is told\n%s", got)
	}
	if got := strings.Join(root.until("approval.denied"), "\n"); !strings.Contains(got, "approval.requested "+approval) {
		t.Errorf("the administrator is told\n%s", got)
	}
	// A call is told of without what it holds.
	again := b.followed("mrt_ben", "GET", "/api/v1/events?types=call.queued,call.started&after=0", "")
	e := again.event()
	for name := range e.body {
		switch name {
		case "type", "noun", "id", "at", "entry":
		default:
			t.Errorf("an event has %s: %s", name, e)
		}
	}
	if e.body["id"] != his || e.body["noun"] != "call" {
		t.Errorf("it is %s", e)
	}
	// The id leads on from there: as a parameter, and as the header that a browser sends.
	whole := b.followed("mrt_ann", "GET", "/api/v1/events?types=call,approval&after=0", "")
	first := whole.event()
	second := whole.event()
	if e := b.followed("mrt_ann", "GET", "/api/v1/events?types=call,approval&after="+first.id, "").event(); e.String() != second.String() {
		t.Errorf("after %s comes %s, want %s", first, e, second)
	}
	if e := b.followed("mrt_ann", "GET", "/api/v1/events?types=call,approval&after=0", "", "Last-Event-ID", first.id).event(); e.String() != second.String() {
		t.Errorf("after %s comes %s, want %s", first, e, second)
	}
}

// A plugin that a principal may not know of is never named, nor what agents have.
func TestHiddenPluginsAreNoEvents(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{Beat: 20 * time.Millisecond})
	dir := filepath.Join(t.TempDir(), "covert")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ben := b.followed("mrt_ben", "GET", "/api/v1/events", "")
	root := b.followed("mrt_root", "GET", "/api/v1/events?types=plugin,agent", "")
	b.write(filepath.Join(dir, "manifest.yaml"), fmt.Sprintf("name: covert\nversion: 1.0.0\nowner: test\ndescription: A test.\nrunner: {kind: process, command: [%q, solo, x]}\n", self))
	if _, err := b.app.Registry.Register(t.Context(), dir, host.RegisterOptions{Enable: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.app.As(person("root")).Agents().Create(t.Context(), host.NewAgent{ID: "covert-agent"}); err != nil {
		t.Fatal(err)
	}
	b.is(b.ask("mrt_root", "POST", "/api/v1/plugins/solo:disable", ""), 200, "")
	if got := strings.Join(root.until("plugin.disabled"), " "); !strings.Contains(got, "solo@1.0.0") {
		t.Errorf("the administrator is told %s", got)
	}
	if got := strings.Join(ben.until("plugin.disabled"), " "); strings.Contains(got, "covert") {
		t.Errorf("ben is told %s", got)
	}
	a := b.ask("mrt_ben", "GET", "/api/v1/events?types=ledger", "")
	b.is(a, 403, "policy_denied")
	// Where nothing comes that is for a reader, the position moves on all the same.
	was := ben.last
	b.is(b.execute("mrt_ann", "line", "one"), 200, "succeeded")
	for ben.last == was {
		if e, err := ben.next(); err != nil || e.name != "" {
			t.Fatal(e, err)
		}
	}
}

func TestWhereTheLedgerEnds(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	f := b.followed("mrt_root", "GET", "/api/v1/events?types=ledger.head", "")
	first := f.event()
	b.is(b.execute("mrt_ann", "line", "one"), 200, "succeeded")
	second := f.event()
	if first.name != "ledger.head" || first.id != "" || second.data == first.data || !strings.Contains(second.data, `"chain":1`) || !strings.Contains(second.data, `"hash":`) {
		t.Errorf("%s, then %s", first, second)
	}
}

// An id that leads nowhere is answered with a reset, and what comes then is told.
func TestAnUnknownIDIsAReset(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	for _, id := range []string{"nonsense", "1.1.00000000", "1.99999999.00000000", "7.1.00000000"} {
		f := b.followed("mrt_ann", "GET", "/api/v1/events?types=call", "", "Last-Event-ID", id)
		if e := f.event(); e.name != "reset" || e.id == "" || e.body["reason"] == "" {
			t.Errorf("after %s comes %s", id, e)
		}
		b.is(b.execute("mrt_ann", "line", "one"), 200, "succeeded")
		f.until("call.succeeded")
		f.leave()
	}
	b.is(b.ask("mrt_ann", "GET", "/api/v1/events?types=secret", ""), 422, "invalid_input")
	if a := b.ask("mrt_ann", "HEAD", "/api/v1/events", ""); a.status != 200 || a.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD is answered %s", a)
	}
}

// A stream shows signs of life, and ends with its token, with the host, and where there
// are too many.
func TestAStreamEnds(t *testing.T) {
	t.Parallel()
	closing, stop := context.WithCancel(t.Context())
	b := begin(t, rest.Options{Beat: 10 * time.Millisecond, PerToken: 2, Streams: 3, Closing: closing})
	tokens := b.app.As(person("root")).Tokens()
	token, secret, err := tokens.Create(t.Context(), host.NewToken{Name: "mine", For: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	f := b.followed(secret, "GET", "/api/v1/events", "")
	for range 3 {
		if _, err := f.next(); err != nil {
			t.Fatal(err)
		}
	}
	second := b.followed(secret, "GET", "/api/v1/events", "")
	b.is(b.ask(secret, "GET", "/api/v1/events", ""), 429, "rate_limited")
	third := b.followed("mrt_ann", "GET", "/api/v1/events", "")
	b.is(b.ask("mrt_ben", "GET", "/api/v1/events", ""), 503, "overloaded")
	if _, err := tokens.Revoke(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*follower{f, second} {
		if got := f.ends(); got != "the token is not valid any more" {
			t.Errorf("the stream of a token that was revoked ends with %q", got)
		}
	}
	stop()
	if got := third.ends(); got != "the host stops" {
		t.Errorf("the stream of a host that stops ends with %q", got)
	}
}

// A token that expires ends its stream when it is looked at again, and so does one whose
// host was told in another way that it is none.
func TestATokenIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{Beat: 10 * time.Millisecond, Recheck: 50 * time.Millisecond})
	_, secret, err := b.app.As(person("root")).Tokens().Create(t.Context(), host.NewToken{Name: "short", For: "ann", Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	asked := b.execute("mrt_ann", "gated", "one")
	f, g := b.followed(secret, "GET", "/api/v1/events", ""), b.followed(secret, "GET", fmt.Sprint("/api/v1/calls/", asked.at("call_id"), "/events"), "")
	b.expired.Store(&secret)
	if got := f.ends(); got != "the token is not valid any more" {
		t.Errorf("it ends with %q", got)
	}
	if got := g.ends(); got != "the token is not valid any more" {
		t.Errorf("that of a call ends with %q", got)
	}
}

// A stream has the rights with which it was opened, and ends when its caller has others, more or
// fewer: who comes again has those of then.
func TestAStreamEndsWithTheRightsThatItWasOpenedWith(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{Beat: 10 * time.Millisecond, Recheck: 50 * time.Millisecond})
	path := fmt.Sprint("/api/v1/calls/", b.execute("mrt_ann", "gated", "one").at("call_id"), "/events")
	open := func(name string) (host.Caller, [2]*follower) {
		c := host.Caller{Principal: grouped("ann", "people"), Asker: "api:ann", Token: name, Scopes: []string{"read", "run"}, Operations: []string{"desk/*"}}
		b.given.Store(name, c)
		return c, [2]*follower{b.followed(name, "GET", "/api/v1/events?types=call", ""), b.followed(name, "GET", path, "")}
	}
	same, stay := open("the same")
	same.SignedInAt = time.Now()
	b.given.Store("the same", same)
	changed := map[string][2]*follower{}
	for name, change := range map[string]func(*host.Caller){
		"fewer scopes":           func(c *host.Caller) { c.Scopes = []string{"read"} },
		"more scopes":            func(c *host.Caller) { c.Scopes = []string{"read", "run", "approve"} },
		"other operations":       func(c *host.Caller) { c.Operations = []string{"mail/*"} },
		"all operations":         func(c *host.Caller) { c.Operations = nil },
		"no group":               func(c *host.Caller) { c.Principal.Groups = nil },
		"scopes of the link":     func(c *host.Caller) { c.Principal.Scopes = []string{"desk:use"} },
		"another principal":      func(c *host.Caller) { c.Principal.ID = "ben" },
		"a service of that name": func(c *host.Caller) { c.Principal.Type = "service" },
	} {
		c, opened := open(name)
		changed[name] = opened
		change(&c)
		b.given.Store(name, c)
	}
	for name, opened := range changed {
		for i, f := range opened {
			if got := f.ends(); !strings.HasPrefix(got, "the rights of the caller changed") {
				t.Errorf("%s: stream %d ends with %q", name, i, got)
			}
		}
	}
	looked := b.authenticated.Load()
	testwait.Until(t, "the streams that stay are looked at again", func() bool { return b.authenticated.Load() >= looked+4 })
	b.is(b.execute("mrt_ann", "line", "two"), 200, "succeeded")
	stay[0].until(string(plugin.EntryCallSucceeded))
	b.is(b.ask("mrt_ann", "POST", strings.TrimSuffix(path, "/events")+":cancel", `{"reason":"enough"}`), 200, "failed")
	stay[1].until("result")
}

// What happens to a call is told until its end, which is what the call is answered.
func TestACallIsFollowed(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	asked := b.execute("mrt_ann", "gated", "one")
	id := fmt.Sprint(asked.at("call_id"))
	f := b.followed("mrt_ann", "GET", "/api/v1/calls/"+id+"/events", "")
	if e := f.event(); e.name != string(plugin.EntryCallPending) && e.name != string(plugin.EntryApprovalRequested) {
		t.Errorf("it begins with %s", e)
	}
	b.is(b.ask("mrt_ann", "POST", "/api/v1/calls/"+id+":cancel", `{"reason":"enough"}`), 200, "failed")
	var names []string
	for e := f.event(); ; e = f.event() {
		if names = append(names, e.name); e.name == "result" {
			if e.body["status"] != "failed" || e.body["call_id"] != id {
				t.Errorf("it ends with %s", e)
			}
			break
		}
	}
	if got := strings.Join(names, " "); !strings.Contains(got, "call.failed") {
		t.Errorf("it is told %s", got)
	}
	if got := f.ends(); got != "" {
		t.Errorf("after that comes %q", got)
	}
}
