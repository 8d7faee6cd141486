package rest_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

const line = "/api/v1/operations/desk/line:execute"

// A page of another site reaches nothing, by whatever name it has this machine called.
func TestForeignHostsAndOrigins(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{Named: func(name string) bool { return name == "mortise.example" }})
	own := strings.TrimPrefix(b.url, "http://")
	for _, tried := range []struct {
		host, origin string
		status       int
	}{
		{own, "", 200}, {own, b.url, 200}, {"localhost:8080", "", 200}, {"localhost:8080", "http://localhost:8080", 200}, {"[::1]:80", "", 200}, {"127.0.0.2", "", 200},
		{"mortise.example", "https://mortise.example", 200},
		{"evil.example", "", 403}, {"evil.example:8080", "http://evil.example:8080", 403}, {"localhost.evil.example", "", 403}, {"127.0.0.1.evil.example", "", 403},
		{own, "http://evil.example", 403}, {own, "null", 403}, {own, "http://localhost:1", 403}, {"mortise.example.", "", 403}, {"10.0.0.1", "", 403},
	} {
		headers := []string{"Host", tried.host}
		if tried.origin != "" {
			headers = append(headers, "Origin", tried.origin)
		}
		code := ""
		if tried.status == 403 {
			code = "policy_denied"
		}
		a := b.ask("mrt_ann", "GET", "/api/v1/operations", "", headers...)
		if a.status != tried.status || code != "" && a.at("code") != code {
			t.Errorf("%+v is answered %s", tried, a)
		}
	}
}

// A token comes in one header, and from nowhere else. What could not be found out about
// it is no bad token.
func TestCredentials(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	for _, headers := range [][]string{
		{"Cookie", "token=mrt_ann"}, {"Authorization", "Basic mrt_ann"}, {"Authorization", "mrt_ann"}, {"Authorization", "Bearer  mrt_ann"},
		{"Authorization", "Bearer ann"}, {"Authorization", "Bearer mrt_" + strings.Repeat("a", 1000)}, {"X-Api-Key", "mrt_ann"},
	} {
		b.is(b.ask("", "GET", "/api/v1/operations", "", headers...), 401, "unauthenticated")
	}
	b.is(b.ask("", "GET", "/api/v1/operations?access_token=mrt_ann", ""), 401, "unauthenticated")
	b.is(b.ask("", "GET", "/api/v1/operations", "", "Authorization", "bearer mrt_ann"), 200, "")
	if a := b.is(b.ask("mrt_often", "GET", "/api/v1/operations", ""), 429, "rate_limited"); a.header.Get("Retry-After") != "2" {
		t.Error(a.header)
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", b.url+"/api/v1/operations", nil)
	r.Header["Authorization"] = []string{"Bearer mrt_ann", "Bearer mrt_ann"}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 401 {
		t.Errorf("two tokens are answered %d", resp.StatusCode)
	}
	for given, kept := range map[string]bool{"abc-1": true, strings.Repeat("a", 129): false, "a b": false, "<x>": false} {
		if got := b.ask("mrt_ann", "GET", "/api/v1/operations", "", "X-Request-Id", given).header.Get("X-Request-Id"); (got == given) != kept {
			t.Errorf("the id %q became %q", given, got)
		}
	}
}

// A log of what was refused has no token, and nothing of what a body held.
func TestTheLogHasNoTokens(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	b := begin(t, rest.Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	for _, token := range []string{"mrt_ann", "mrt_unknown", "mrt_none", "mrt_often"} {
		b.execute(token, "line", "hunter2")
		b.execute(token, "denied", "hunter2")
		b.ask(token, "POST", line, `{"input":{"text":"hunter2"}`)
		b.ask(token, "POST", line, `{"inputs":{"text":"hunter2"}}`)
		b.ask(token, "GET", "/api/v1/calls/none", "")
	}
	if text := log.String(); strings.Contains(text, "mrt_") || strings.Contains(text, "hunter2") || !strings.Contains(text, "a request was refused") {
		t.Errorf("the log has %s", text)
	}
}

// A lockedBuffer is a buffer that several may write to.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A path has one way to be written, and one that is known says which methods it takes.
func TestPaths(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	for _, path := range []string{
		"/api/v1/", "/api/v1/nothing", "/api/v1/calls/", "/api/v1//calls", "/api/v1/./calls", "/api/v1/x/../calls", "/api/v1/calls/a%2Fb", "/api/v1/calls/x/:cancel",
		"/api/v1/plugins/desk/:enable", "/api/v2/calls", "/calls", "/api/v1/docs", "/api/v1/openapi.yaml", "/api/v1/schemas/Call",
	} {
		b.is(b.ask("mrt_ann", "GET", path, ""), 404, "not_found")
		b.is(b.ask("mrt_root", "POST", path, ""), 404, "not_found")
	}
	for path, method := range map[string]string{"/api/v1/approvals": "POST", "/api/v1/calls/x:cancel": "PUT", "/api/v1/operations/desk/line:execute": "DELETE"} {
		if a := b.is(b.ask("mrt_ann", method, path, ""), 405, "invalid_input"); a.header.Get("Allow") == "" {
			t.Error(a.header)
		}
	}
	if a := b.ask("mrt_ann", "HEAD", "/api/v1/calls", ""); a.status != 200 || a.text != "" {
		t.Error(a)
	}
	b.is(b.ask("mrt_ann", "GET", "/api/v1/calls/"+strings.Repeat("a", 2000), ""), 414, "invalid_input")
	b.is(b.ask("mrt_ann", "GET", "/api/v1/calls?state=lost", ""), 422, "invalid_input")
	b.is(b.ask("mrt_ann", "GET", "/api/v1/calls?stat=failed", ""), 422, "invalid_input")
}

// Bodies are bounded and read strictly; what is wrong with one is named by its place and
// never repeated.
func TestBodies(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{MaxInput: 1000})
	hasty := begin(t, rest.Options{MaxInput: 1000, BodyTime: 300 * time.Millisecond})
	secret := "hunter2"
	for body, want := range map[string]struct {
		status  int
		pointer string
	}{
		`{"input":{"text":"hunter2"}`:                          {400, "/input"},
		`{"input":{"text":"a"}} {"input":"hunter2"}`:           {400, ""},
		`{"input":{"text":"hunter2","text":"b"}}`:              {400, "/input/text"},
		`{"input":{"text":"a"},"input":"hunter2"}`:             {400, "/input"},
		"{\"input\":{\"text\":\"hunter2\xff\"}}":               {400, "/input/text"},
		`hunter2`:                                              {400, ""},
		`{"input":{"text":"a"},"session":5,"fresh":"hunter2"}`: {422, "/fresh"},
		`{"input":{"text":"a"},"inptu":"hunter2"}`:             {422, "/inptu"},
		`{"input":{"text":"a"},"labels":["hunter2"]}`:          {422, "/labels/0"},
		`{"input":{"text":"hunter2","n":1e999}}`:               {400, ""},
		`["hunter2"]`:                                          {422, ""},
		`{"input":{"text":"a"},"labels":["hunter2","b","c"]}`:  {422, "/labels"},
	} {
		a := b.is(b.ask("mrt_ann", "POST", line, body), want.status, "invalid_input")
		places, _ := a.at("errors").([]any)
		if strings.Contains(a.text, secret) || len(places) == 0 || !slices.ContainsFunc(places, func(p any) bool { return p.(map[string]any)["pointer"] == want.pointer }) {
			t.Errorf("%s is answered %s", body, a)
		}
	}
	for _, query := range []string{"calls?page_size=hunter2", "calls?state=hunter2", "calls/hunter2?wait=hunter2s", "ledger/entries?after=hunter2"} {
		if a := b.ask("mrt_ann", "GET", "/api/v1/"+query, ""); a.status != 422 || strings.Contains(a.text, secret) {
			t.Errorf("%s is answered %s", query, a)
		}
	}
	b.is(b.ask("mrt_ann", "POST", line, "x=1", "Content-Type", "application/x-www-form-urlencoded"), 415, "invalid_input")
	b.is(b.ask("mrt_ann", "POST", line, "{}", "Content-Encoding", "gzip"), 415, "invalid_input")
	b.is(b.ask("mrt_ann", "GET", "/api/v1/calls", "{}"), 400, "invalid_input")
	b.is(b.ask("mrt_ann", "POST", line, `{"input":{"text":"`+strings.Repeat("a", 70_000)+`"}}`), 413, "input_too_large")
	if got := b.lines(); len(got) != 0 {
		t.Errorf("what ran left %q", got)
	}

	raw := func(b *bench, text string) string {
		t.Helper()
		conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(testwait.Limit))
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		return resp.Status
	}
	head := "POST " + line + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer mrt_ann\r\nContent-Type: application/json\r\n"
	for text, want := range map[string]string{
		head + "Content-Length: 100\r\n\r\n{\"input\":":                                              "408 Request Timeout",
		head + "Content-Length: 104857600\r\n\r\n{\"input\":":                                        "413 Request Entity Too Large",
		head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"in":                                        "408 Request Timeout",
		head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n":                                            "400 Bad Request",
		strings.Replace(head, "Bearer mrt_ann", "Bearer x", 1) + "Content-Length: 104857600\r\n\r\n": "401 Unauthorized",
	} {
		to := b
		if want == "408 Request Timeout" {
			to = hasty
		}
		if got := raw(to, text); got != want {
			t.Errorf("%q is answered %q, want %q", text[len(head)-20:], got, want)
		}
	}
}

// Pages have each row once, in order, and end where there is no token; a token is for its
// list with its filters.
func TestPages(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	var made []string
	for i := range 7 {
		made = append(made, fmt.Sprint(b.is(b.execute("mrt_ann", "line", fmt.Sprint(i)), 200, "succeeded").at("call_id")))
	}
	b.is(b.execute("mrt_ben", "line", "ben"), 200, "succeeded")
	b.is(b.execute("mrt_ann", "jam", "jam"), 200, "failed")
	slices.Reverse(made)
	all := func(path, list, id string) (ids []string) {
		t.Helper()
		for token, pages := "", 0; pages < 200; pages++ {
			a := b.is(b.ask("mrt_ann", "GET", path+"&page_token="+token, ""), 200, "")
			rows, _ := a.at(list).([]any)
			for _, row := range rows {
				ids = append(ids, fmt.Sprint(row.(map[string]any)[id]))
			}
			if token, _ = a.at("next_page_token").(string); token == "" {
				return ids
			}
		}
		t.Errorf("%s has no end", path)
		return ids
	}
	if got := all("/api/v1/calls?state=succeeded&page_size=3", "calls", "call_id"); !slices.Equal(got, made) {
		t.Errorf("the pages have %q, want %q", got, made)
	}
	if got := all("/api/v1/calls?operation=desk/line&page_size=0", "calls", "call_id"); !slices.Equal(got, made) {
		t.Errorf("the pages have %q, want %q", got, made)
	}
	for _, size := range []string{"1", "2", "100000", "-5"} {
		if got := all("/api/v1/operations?page_size="+size, "operations", "name"); len(got) < 8 || !slices.IsSorted(got) || slices.Contains(got, "desk/hidden") {
			t.Errorf("with pages of %s there are the operations %q", size, got)
		}
		if got := all("/api/v1/plugins?page_size="+size, "plugins", "name"); !slices.IsSorted(got) || !slices.Contains(got, "desk") || !slices.Contains(got, "solo") {
			t.Errorf("with pages of %s there are the plugins %q", size, got)
		}
	}
	token := fmt.Sprint(b.ask("mrt_ann", "GET", "/api/v1/calls?state=succeeded&page_size=3", "").at("next_page_token"))
	if strings.Trim(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		t.Errorf("the token %q is not safe in an address", token)
	}
	for _, path := range []string{"calls?page_token=" + token, "calls?state=failed&page_token=" + token, "plans?page_token=" + token, "calls?state=succeeded&page_token=x" + token, "calls?page_token=!"} {
		b.is(b.ask("mrt_ann", "GET", "/api/v1/"+path, ""), 422, "invalid_input")
	}
	if a := b.ask("mrt_ben", "GET", "/api/v1/calls", ""); len(a.at("calls").([]any)) != 1 {
		t.Errorf("of another's calls there are %s", a)
	}
}

// The ledger is for who may read it, a page at a time, as it was written.
func TestLedger(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	for i := range 3 {
		b.is(b.execute("mrt_ann", "line", fmt.Sprint(i)), 200, "succeeded")
	}
	var seqs []int
	for token := ""; ; {
		a := b.is(b.ask("mrt_root", "GET", "/api/v1/ledger/entries?page_size=4&page_token="+token, ""), 200, "")
		for _, e := range a.at("entries").([]any) {
			var seq int
			_, _ = fmt.Sscan(fmt.Sprint(e.(map[string]any)["seq"]), &seq)
			seqs = append(seqs, seq)
		}
		if token, _ = a.at("next_page_token").(string); token == "" {
			break
		}
	}
	for i, seq := range seqs {
		if seq != i+1 {
			t.Fatalf("the pages have the entries %v", seqs)
		}
	}
	head := b.ask("mrt_root", "GET", "/api/v1/ledger/head", "")
	if !strings.Contains(head.text, fmt.Sprintf(`"seq":%d`, len(seqs))) || len(seqs) < 6 {
		t.Errorf("there are %d entries, and the head is %s", len(seqs), head)
	}
	a := b.ask("mrt_root", "GET", "/api/v1/ledger/entries?kind=call.succeeded&operation=desk/line&after=2", "")
	if got := a.at("entries").([]any); len(got) != 3 || !strings.Contains(a.text, `"origin":"api"`) {
		t.Errorf("of the calls there are %s", a)
	}
	if a := b.ask("mrt_root", "GET", "/api/v1/ledger/entries?chain=7", ""); a.status != 200 || len(a.at("entries").([]any)) != 0 {
		t.Error(a)
	}
}

// The bytes of an artifact come with their digest, whole or in part.
func TestArtifacts(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	own := b.app.As(person("ann")).Sessions()
	s, err := own.Create(t.Context(), host.NewSession{Name: "own"})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("0123456789", 20_000)
	made, err := own.AddArtifact(t.Context(), s.ID, strings.NewReader(text), host.NewArtifact{Name: "many.txt", Type: "text"})
	if err != nil {
		t.Fatal(err)
	}
	list := "/api/v1/sessions/" + s.ID + "/artifacts"
	if a := b.ask("mrt_ann", "GET", list, ""); a.status != 200 || !strings.Contains(a.text, made.ID) || !strings.Contains(a.text, made.SHA256) {
		t.Error(a)
	}
	path := list + "/" + made.ID
	whole := b.ask("mrt_ann", "GET", path, "")
	digest := whole.header.Get("Repr-Digest")
	if whole.status != 200 || whole.text != text || !strings.HasPrefix(digest, "sha-256=:") || whole.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("%d %d %v", whole.status, len(whole.text), whole.header)
	}
	for asked, want := range map[string]string{"bytes=3-6": "3456", "bytes=199995-": "56789", "bytes=-3": "789"} {
		a := b.ask("mrt_ann", "GET", path, "", "Range", asked)
		if a.status != 206 || a.text != want || a.header.Get("Repr-Digest") != digest {
			t.Errorf("%s is answered %d %.50s %v", asked, a.status, a.text, a.header)
		}
	}
	for _, none := range []string{"bytes=-0", "lines=1-2", "bytes=0-99999999999999999999", "bytes=-", "bytes= 1-2"} {
		if a := b.ask("mrt_ann", "GET", path, "", "Range", none); a.status != 200 || a.text != text {
			t.Errorf("%q is no range and answered %s", none, a)
		}
	}
	if a := b.ask("mrt_ann", "GET", path, "", "Range", "bytes=1-2,4-5"); a.status != 200 || a.text != text {
		t.Errorf("several ranges are answered %d", a.status)
	}
	if a := b.ask("mrt_ann", "GET", path, "", "If-None-Match", whole.header.Get("ETag")); a.status != 304 || a.text != "" {
		t.Errorf("%d %v", a.status, a.header)
	}
	for _, name := range []string{"art_00000000", "many.txt", made.ID[:6]} {
		b.is(b.ask("mrt_ann", "GET", list+"/"+name, ""), 404, "not_found")
	}
	b.is(b.ask("mrt_ann", "GET", "/api/v1/sessions/"+s.ID[:10], ""), 404, "not_found")
}
