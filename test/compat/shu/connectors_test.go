package shu

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
)

// A source is what a connector reads, on this machine. It answers conditional
// requests, and refuses and holds what it is told to.
type source struct {
	address string

	mu       sync.Mutex // guards the rest
	pages    map[string]page
	seen     []string            // path and query, with the status
	refusals []response          // given first, each once
	header   map[string]string   // that every request has to have
	held     map[string]chan any // by path and query: closed when the request may go on
	arrived  chan string         // what is held now
}

// A page is an answer at a path and query.
type page struct{ kind, body, link string }

func newSource(t *testing.T) *source {
	t.Helper()
	s := &source{pages: map[string]page{}, held: map[string]chan any{}, arrived: make(chan string, 100)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.address = server.Listener.Addr().String()
	return s
}

func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := r.URL.RequestURI()
	s.mu.Lock()
	wait := s.held[at]
	s.mu.Unlock()
	if wait != nil {
		s.arrived <- at
		select {
		case <-wait:
		case <-r.Context().Done():
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.answer(w, r, at)
	s.seen = append(s.seen, fmt.Sprintf("%s %d", at, status))
}

// answer answers one request and returns the status. The caller holds the lock.
func (s *source) answer(w http.ResponseWriter, r *http.Request, at string) int {
	if len(s.refusals) > 0 {
		refusal := s.refusals[0]
		s.refusals = s.refusals[1:]
		refusal.write(w)
		return refusal.Status
	}
	p, found := s.pages[at]
	tag := fmt.Sprintf(`"%.16x"`, sha256.Sum256([]byte(p.body)))
	for name, value := range s.header {
		found = found && r.Header.Get(name) == value
	}
	switch {
	case !found:
		http.Error(w, `{"message":"Not Found"}`, http.StatusNotFound)
		return http.StatusNotFound
	case r.Header.Get("If-None-Match") == tag:
		w.WriteHeader(http.StatusNotModified)
		return http.StatusNotModified
	}
	w.Header().Set("Content-Type", p.kind)
	w.Header().Set("ETag", tag)
	if p.link != "" {
		w.Header().Set("Link", p.link)
	}
	_, _ = w.Write([]byte(p.body))
	return http.StatusOK
}

// set changes what is answered.
func (s *source) set(at string, p page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[at] = p
}

func (s *source) refuse(all ...response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = all
}

// hold lets a request wait until it is released.
func (s *source) hold(at string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := make(chan any)
	s.held[at] = wait
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.held, at)
		close(wait)
	})
}

// asked returns what was asked for since the last time.
func (s *source) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// A connector is a host with one of the connectors that are shipped, a knowledge
// base and a source.
type connector struct {
	*testing.T
	*host
	*source
	name string
}

func newConnector(t *testing.T, name string) *connector {
	t.Helper()
	c := &connector{t, newHost(t), newSource(t), name}
	c.configure(t, fmt.Sprintf(`policy:
  allow:
    - {operations: ["*"], effects: ["*"]}
egress:
  loopback: [%[1]s]
  hosts: {%[1]s: [%[2]q]}
`, name, c.address))
	c.must("plugins", "register", "../../../plugins/connectors/"+name)
	c.must("kb", "create", "base")
	return c
}

// must runs a command that succeeds and returns what it printed.
func (c *connector) must(args ...string) []byte {
	c.Helper()
	return c.host.must(c.T, args...)
}

// A taken is what a run of a connector says that it did.
type taken struct {
	Ingested    int  `json:"ingested"`
	Unchanged   int  `json:"unchanged"`
	NotModified bool `json:"not_modified"`
}

// feed makes a feed with parameters and returns its id.
func (c *connector) feed(params ...string) string {
	c.Helper()
	args := []string{"feeds", "create", c.name, "--every", "1h", "--kb", "base", "--json"}
	for _, param := range params {
		args = append(args, "--param", param)
	}
	var feed struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(c.must(args...), &feed); err != nil || feed.ID == "" {
		c.Fatalf("no feed: %v", err)
	}
	return feed.ID
}

// pass makes one run of a feed and holds what it says that it did.
func (c *connector) pass(feed string, want taken) {
	c.Helper()
	if got := c.result(c.must("feeds", "run", feed, "--wait", "--json")); got != want {
		c.Errorf("the run did %+v, not %+v", got, want)
	}
}

func (c *connector) result(printed []byte) (did taken) {
	c.Helper()
	var got struct {
		Status string `json:"status"`
		Data   taken  `json:"data"`
	}
	if err := json.Unmarshal(printed, &got); err != nil || got.Status != "succeeded" {
		c.Fatalf("%v: %s", err, printed)
	}
	return got.Data
}

// A kept is a document of the knowledge base, with what tells that it was
// written again.
type kept struct {
	Document string `json:"document_id"`
	Object   string `json:"ko_id"`
	Title    string `json:"title"`
	Hash     string `json:"content_hash"`
	Chunks   int    `json:"chunk_count"`
	Updated  string `json:"updated_at"`
}

// A shown knowledge base is what it counts of itself, and what is in it.
type shown struct {
	Documents []kept `json:"documents"`
	Base      struct {
		Documents int `json:"documents"`
		Chunks    int `json:"chunks"`
	} `json:"knowledge_base"`
}

func (c *connector) shown() (listed shown) {
	c.Helper()
	if err := json.Unmarshal(c.must("kb", "show", "base", "--json", "--limit", "1000"), &listed); err != nil {
		c.Fatal(err)
	}
	return listed
}

// documents returns the knowledge base by title. Nothing may be writing to it:
// what it counts of itself is to be what is there.
func (c *connector) documents() map[string]kept {
	c.Helper()
	listed := c.shown()
	all, chunks := map[string]kept{}, 0
	for _, one := range listed.Documents {
		if _, twice := all[one.Title]; twice {
			c.Errorf("%s is there twice", one.Title)
		}
		all[one.Title] = one
		chunks += one.Chunks
	}
	if listed.Base.Documents != len(all) || listed.Base.Chunks != chunks {
		c.Errorf("the knowledge base counts %+v; there are %d documents with %d passages", listed.Base, len(all), chunks)
	}
	return all
}

// finds counts the passages that have a word.
func (c *connector) finds(word string) int {
	c.Helper()
	var found struct {
		Results []any `json:"results"`
	}
	if err := json.Unmarshal(c.must("kb", "search", word, "--kb", "base", "--limit", "100", "--json"), &found); err != nil {
		c.Fatal(err)
	}
	return len(found.Results)
}

// same fails unless the knowledge base is as it was, but for one document that
// has been replaced; "" for none.
func (c *connector) same(before map[string]kept, but string) {
	c.Helper()
	after := c.documents()
	if len(after) != len(before) {
		c.Errorf("there were %d documents, and there are %d", len(before), len(after))
	}
	for title, was := range before {
		is := after[title]
		if title == but {
			if is.Hash == was.Hash || is.Object != was.Object || is.Document != was.Document {
				c.Errorf("%s is to be replaced in its place: it was %+v and is %+v", title, was, is)
			}
		} else if is != was {
			c.Errorf("%s was %+v and is %+v", title, was, is)
		}
	}
}

// killed starts a run and kills it, with all its processes, when now says so. It
// returns the call.
func (c *connector) killed(input map[string]any, now func()) string {
	c.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		c.Fatal(err)
	}
	cmd := exec.Command(binary, "run", c.name+"/ingest", "--json", "--input", string(raw))
	cmd.Env = append(os.Environ(), "MORTISE_HOME="+c.home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	now()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Wait()
	var listed struct {
		Calls []struct {
			ID string `json:"call_id"`
		} `json:"calls"`
	}
	if err := json.Unmarshal(c.must("calls", "list", "--json"), &listed); err != nil || len(listed.Calls) != 1 {
		c.Fatalf("%d calls, %v", len(listed.Calls), err)
	}
	return listed.Calls[0].ID
}

// long is a text of several passages.
func long(word string) string { return strings.Repeat(word+" is what this is about. ", 150) }

func rss(entries ...string) page {
	items := ""
	for i := 0; i+1 < len(entries); i += 2 {
		items += fmt.Sprintf("<item><guid isPermaLink=\"false\">%[1]s</guid><title>%[1]s</title><pubDate>Thu, 01 Jan 2026 08:00:%02[3]d GMT</pubDate>"+
			"<description>&lt;p&gt;%[2]s&lt;/p&gt;</description></item>", entries[i], entries[i+1], i%60)
	}
	return page{kind: "application/rss+xml", body: `<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>` + items + "</channel></rss>"}
}

func TestAWebFeedIsTakenInByFeeds(t *testing.T) {
	t.Parallel()
	c := newConnector(t, "web_feed")
	c.set("/feed.xml", rss("one", long("alder"), "two", long("birch"), "three", "cedar"))
	feed := c.feed("url=http://" + c.address + "/feed.xml")
	c.pass(feed, taken{Ingested: 3})
	first := c.documents()
	if first["one"].Chunks < 3 || c.finds("birch") != first["two"].Chunks {
		t.Errorf("%+v; birch is in %d passages", first, c.finds("birch"))
	}
	// The second time nothing has changed, and the source says so.
	c.pass(feed, taken{NotModified: true})
	if got, want := c.asked(), []string{"/feed.xml 200", "/feed.xml 304"}; !slices.Equal(got, want) {
		t.Errorf("asked %q, not %q", got, want)
	}
	c.same(first, "")
	// One entry changes: its passages are replaced, and no others.
	c.set("/feed.xml", rss("one", long("alder"), "two", long("larch"), "three", "cedar"))
	c.pass(feed, taken{Ingested: 1, Unchanged: 2})
	c.same(first, "two")
	if c.finds("birch") != 0 || c.finds("larch") != first["two"].Chunks || c.finds("cedar") != 1 {
		t.Error("what is found is not what the feed has")
	}
	// A feed that cannot be read changes nothing, and neither does one of too many requests.
	now := c.documents()
	for code, answer := range map[string]response{
		"malformed_feed": {Text: `<!DOCTYPE rss [<!ENTITY a "b">]><rss/>`},
		"rate_limited":   {Status: http.StatusTooManyRequests, Headers: map[string]string{"Retry-After": "900"}, Text: "later"},
	} {
		c.refuse(answer)
		out, _, err := c.command(t, "feeds", "run", feed, "--wait", "--json")
		var got outcome
		if jsonErr := json.Unmarshal(out, &got); err == nil || jsonErr != nil || got.Error.PluginCode != code {
			t.Errorf("the run ended with %q, not %s: %v %v", got.Error.PluginCode, code, err, jsonErr)
		}
	}
	c.same(now, "")
	c.pass(feed, taken{NotModified: true})
	// From the beginning: the knowledge base knows what it has.
	c.must("feeds", "reset-cursor", feed)
	c.pass(feed, taken{Unchanged: 3})
	c.same(now, "")
}

func TestAKilledRunOfAWebFeedLosesNothing(t *testing.T) {
	t.Parallel()
	c := newConnector(t, "web_feed")
	var entries []string
	for n := range 300 {
		entries = append(entries, fmt.Sprintf("entry %d", n), long(fmt.Sprintf("word%d", n)))
	}
	c.set("/feed.xml", rss(entries...))
	input := map[string]any{"url": "http://" + c.address + "/feed.xml", "kb_id": "base", "max_items": 500}
	id := c.killed(input, func() {
		testwait.Until(t, "a document is there", func() bool { return len(c.shown().Documents) > 0 })
	})
	there := c.documents()
	t.Logf("%d of 300 entries were there when it was killed", len(there))
	c.must("calls", "wait", id, "--json")
	after := c.documents()
	if len(there) == 0 || len(after) != 300 {
		t.Errorf("%d entries were there when it was killed, and %d in the end", len(there), len(after))
	}
	for title, was := range there {
		if after[title] != was {
			t.Errorf("%s was %+v and is %+v", title, was, after[title])
		}
	}
	if got := c.result(c.must("run", "web_feed/ingest", "--json", "--set", "url="+input["url"].(string), "--set", "kb_id=base")); got != (taken{NotModified: true}) {
		t.Errorf("once more it does %+v", got)
	}
}

// A tracker is a source as GitHub has it.
type tracker struct{ *connector }

type post map[string]any

func newTracker(t *testing.T) tracker {
	c := newConnector(t, "github_issues")
	// A token, from a file and no argument.
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("of-the-tests-1234567890"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.must("secrets", "set", "github_token", "--from-file", file)
	c.header = map[string]string{"Authorization": "Bearer of-the-tests-1234567890", "X-Github-Api-Version": "2022-11-28"}
	return tracker{c}
}

func issue(number, second int, body string) post {
	at := fmt.Sprintf("2026-01-01T00:00:%02dZ", second)
	return post{
		"number": number, "title": fmt.Sprintf("Issue %d", number), "body": body, "state": "open", "comments": 1, "labels": []any{},
		"user": post{"login": "ada"}, "created_at": at, "updated_at": at, "html_url": fmt.Sprintf("https://github.com/ada/engine/issues/%d", number),
	}
}

const issues = "/repos/ada/engine/issues?state=all&sort=updated&direction=asc&per_page=100"

// list answers a request for issues; after is the second of the last one known,
// next where the list goes on.
func (k tracker) list(at, next string, all ...post) {
	k.Helper()
	k.set(at, k.page(next, all...))
}

func (k tracker) page(next string, all ...post) page {
	k.Helper()
	if all == nil {
		all = []post{}
	}
	body, err := json.Marshal(all)
	if err != nil {
		k.Fatal(err)
	}
	p := page{kind: "application/json; charset=utf-8", body: string(body)}
	if next != "" {
		p.link = fmt.Sprintf(`<http://%s%s>; rel="next", <http://%s/last>; rel="last"`, k.address, next, k.address)
	}
	return p
}

// comment answers a request for the comments of an issue.
func (k tracker) comment(number int, text string) {
	k.Helper()
	k.list(comments(number), "", post{"body": text, "user": post{"login": "bob"}, "created_at": "2026-01-02T00:00:00Z"})
}

func comments(number int) string {
	return fmt.Sprintf("/repos/ada/engine/issues/%d/comments?per_page=100", number)
}

func since(second int) string {
	return issues + fmt.Sprintf("&since=2026-01-01T00%%3A00%%3A%02dZ", second)
}

func (k tracker) params() []string {
	return []string{"repository=ada/engine", "api_url=http://" + k.address}
}

func TestGitHubIssuesAreTakenInByFeeds(t *testing.T) {
	t.Parallel()
	k := newTracker(t)
	for number, word := range map[int]string{1: "alder", 2: "birch", 3: "cedar"} {
		k.comment(number, long(word))
	}
	// Two pages, by the Link header, and refusals on the way: those with
	// Retry-After the host waits for, and then the connector; the one of a limit
	// that is used up the connector alone.
	k.list(issues, "/repos/ada/engine/issues?page=2", issue(1, 1, "It is broken."), issue(2, 2, "It is stuck."))
	k.list(since(2), "", issue(2, 2, "It is stuck."), issue(3, 3, "It is loud."))
	late := response{Status: http.StatusTooManyRequests, Headers: map[string]string{"Retry-After": "1"}, Text: "later"}
	reset := fmt.Sprint(time.Now().Add(2 * time.Second).Unix())
	limit := response{Status: http.StatusForbidden, Headers: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, Text: "limit"}
	k.refuse(late, late, late, limit)
	feed := k.feed(k.params()...)
	k.pass(feed, taken{Ingested: 3})
	want := []string{issues + " 429", issues + " 429", issues + " 429", issues + " 403", issues + " 200",
		comments(1) + " 200", comments(2) + " 200", since(2) + " 200", comments(3) + " 200"}
	if got := k.asked(); !slices.Equal(got, want) {
		t.Errorf("asked\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	first := k.documents()
	two := first["#2 Issue 2"]
	if two.Chunks < 3 || k.finds("birch") == 0 || k.finds("stuck") != 1 {
		t.Errorf("%+v", first)
	}
	// The second time nothing has changed, and the third time the source says so.
	k.list(since(3), "", issue(3, 3, "It is loud."))
	k.pass(feed, taken{})
	k.pass(feed, taken{NotModified: true})
	if got, want := k.asked(), []string{since(3) + " 200", since(3) + " 304"}; !slices.Equal(got, want) {
		t.Errorf("asked %q, not %q", got, want)
	}
	k.same(first, "")
	// A comment changes one issue: its passages are replaced, and no others.
	k.comment(2, long("larch"))
	k.list(since(3), "", issue(3, 3, "It is loud."), issue(2, 9, "It is stuck."))
	k.pass(feed, taken{Ingested: 1})
	k.same(first, "#2 Issue 2")
	if k.finds("birch") != 0 || k.finds("larch") == 0 || k.finds("cedar") == 0 {
		t.Error("what is found is not what the tracker has")
	}
	// A limit that lasts longer than a run: its end is said, and nothing moves.
	now := k.documents()
	k.list(since(9), "", issue(2, 9, "It is stuck."), issue(4, 10, "It is new."))
	k.comment(4, "elm")
	k.refuse(response{Status: http.StatusTooManyRequests, Headers: map[string]string{"Retry-After": "900"}, Text: "later"})
	out, _, err := k.command(t, "feeds", "run", feed, "--wait", "--json")
	if err == nil || !strings.Contains(string(out), `"plugin_code":"rate_limited"`) || !strings.Contains(string(out), `"retry_after_seconds":900`) {
		t.Errorf("%v: %s", err, out)
	}
	k.same(now, "")
	k.pass(feed, taken{Ingested: 1})
	if strings.Contains(string(k.must("ledger", "list", "--json")), "of-the-tests") {
		t.Error("the token is in the ledger")
	}
}

func TestAKilledRunOfGitHubIssuesLosesNothing(t *testing.T) {
	t.Parallel()
	k := newTracker(t)
	var all []post
	for n := 1; n <= 5; n++ {
		all = append(all, issue(n, n, "It is broken."))
		k.comment(n, long(fmt.Sprintf("word%d", n)))
	}
	k.list(issues, "", all...)
	release := k.hold(comments(4))
	defer release()
	input := map[string]any{"repository": "ada/engine", "api_url": "http://" + k.address, "kb_id": "base"}
	id := k.killed(input, func() {
		select {
		case <-k.arrived:
		case <-time.After(30 * time.Second):
			t.Error("it never came as far as issue 4")
		}
	})
	there := k.documents()
	if len(there) != 3 {
		t.Errorf("%d issues were there when it was killed, not 3", len(there))
	}
	release()
	if got := k.result(k.must("calls", "wait", id, "--json")); got.Ingested != 5 {
		t.Errorf("resumed, it did %+v", got)
	}
	after := k.documents()
	if len(after) != 5 {
		t.Errorf("%d issues are there", len(after))
	}
	for title, was := range there {
		if after[title] != was {
			t.Errorf("%s was written again: it was %+v and is %+v", title, was, after[title])
		}
	}
	k.list(since(5), "", all[4])
	if got := k.result(k.must("run", "github_issues/ingest", "--json", "--set", "repository=ada/engine", "--set", "api_url=http://"+k.address, "--set", "kb_id=base")); got != (taken{}) {
		t.Errorf("once more it does %+v", got)
	}
}

// The tests that the connectors bring along pass, and so does what a stranger
// would check of them.
func TestConnectorsKeepTheirContract(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"web_feed", "github_issues"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			for _, command := range []string{"check", "test"} {
				if out, errs, err := h.command(t, command, "../../../plugins/connectors/"+name); err != nil {
					t.Errorf("mortise %s: %v\n%s%s", command, err, out, errs)
				}
			}
		})
	}
}
