package server_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/internal/surface/server"
	"github.com/mortise-dev/mortise/plugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const path = "/api/agents/support/channels/desk/webhook"

// forged is a header of deliveries whose senders prove nothing.
const forged = "X-Forged"

// A desk takes deliveries, as it is told to.
type desk struct {
	mu     sync.Mutex
	answer server.Received
	err    error
	hold   chan struct{} // what deliveries wait for, where it is not nil
	taken  []string

	entered atomic.Int64
}

func (d *desk) Receive(_ context.Context, tenant, agent, namespace string, header http.Header, body []byte, proved func() error) (server.Received, error) {
	d.entered.Add(1)
	if header.Get(forged) != "" {
		return server.Received{}, plugin.Errorf(plugin.CodeUnauthenticated, "forged")
	}
	if err := proved(); err != nil {
		return server.Received{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	hold := d.hold
	if hold != nil {
		d.mu.Unlock()
		<-hold
		d.mu.Lock()
	}
	d.taken = append(d.taken, fmt.Sprint(tenant, " ", agent, " ", namespace, " ", string(body)))
	return d.answer, d.err
}

func (d *desk) says(r server.Received, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer, d.err = r, err
}

func (d *desk) took() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.taken...)
}

// begin serves a desk on loopback, until the test ends.
func begin(t *testing.T, d *desk, o server.Options) (address string) {
	t.Helper()
	o.Agents, o.Tenant = d, "local"
	o.BodyTime, o.UnreadTime = cmp.Or(o.BodyTime, testwait.Limit), cmp.Or(o.UnreadTime, testwait.Limit)
	l, err := server.Listen(t.Context(), "127.0.0.1:0", false, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(ctx, l, server.New(o), nil, time.Second, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return l.Addr().String()
}

// post sends a delivery and returns the status and the answer.
func post(t *testing.T, url, body string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, strings.TrimSpace(string(raw))
}

func TestWhatBecameOfADelivery(t *testing.T) {
	t.Parallel()
	d := &desk{}
	url := "http://" + begin(t, d, server.Options{})
	for _, c := range []struct {
		got    server.Received
		err    error
		status int
		want   string
	}{
		{server.Received{Session: "sess_1"}, nil, 202, `{"session":"sess_1"}`},
		{server.Received{Session: "sess_1", Seen: true}, nil, 200, `{"seen":true}`},
		{server.Received{Ignored: true}, nil, 200, `{"ignored":true}`},
		{server.Received{Challenge: `a"b`}, nil, 200, `{"challenge":"a\"b"}`},
		{server.Received{}, plugin.Errorf(plugin.CodeUnauthenticated, "forged"), 401, `{"error":{"code":"unauthenticated","message":"forged"}}`},
		{server.Received{}, plugin.Errorf(plugin.CodeUnavailable, "the secret desk is not set"), 503, `{"error":{"code":"unavailable","message":"the host cannot take this now; its log says why"}}`},
		{server.Received{}, errors.New("disk full at /var"), 500, `{"error":{"code":"internal","message":"the host cannot take this now; its log says why"}}`},
	} {
		d.says(c.got, c.err)
		resp, body := post(t, url+path, `{"text":"hello"}`)
		if resp.StatusCode != c.status || body != c.want {
			t.Errorf("%+v, %v: %d %s, want %d %s", c.got, c.err, resp.StatusCode, body, c.status, c.want)
		}
		if resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("Access-Control-Allow-Origin") != "" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("its header is %v", resp.Header)
		}
	}
	if took := d.took(); len(took) != 7 || took[0] != `local support desk {"text":"hello"}` {
		t.Errorf("taken were %q", took)
	}
}

// Every code has the status of its class, and none is left out.
func TestEveryCodeHasAStatus(t *testing.T) {
	t.Parallel()
	d := &desk{}
	h := server.New(server.Options{Agents: d, Rate: 1e6, Burst: 1e6})
	want := map[plugin.Code]int{
		plugin.CodeUnauthenticated: 401, plugin.CodeNotFound: 404, plugin.CodeInvalidInput: 422, plugin.CodeInputTooLarge: 413, plugin.CodeUnavailable: 503,
		plugin.CodeRateLimited: 429, plugin.CodeOverloaded: 503, plugin.CodePolicyDenied: 403, plugin.CodeInternal: 500, plugin.CodeTimeout: 504, plugin.CodeKeyConflict: 409,
	}
	for _, code := range plugin.Codes {
		status := rest.StatusOf(code)
		if w, said := want[code]; said && w != status {
			t.Errorf("%s is answered with %d, want %d", code, status, w)
		}
		d.says(server.Received{}, &plugin.Error{Code: code, Message: "because", RetryAfter: 1500 * time.Millisecond})
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", path, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(w, r)
		if w.Code != status || !strings.Contains(w.Body.String(), `"code":"`+string(code)+`"`) || w.Header().Get("Retry-After") != "2" {
			t.Errorf("%s: %d %s %v", code, w.Code, w.Body, w.Header())
		}
	}
}

// Requests that mean one thing to one reader and another to the next, and bodies
// that pretend to be something else: none is taken for a delivery (T36).
func TestConfusionsAreNoDeliveries(t *testing.T) {
	t.Parallel()
	d := &desk{}
	address := begin(t, d, server.Options{Rate: 1e6, Burst: 1e6})
	const (
		kind = "Content-Type: application/json\r\n"
		form = "Content-Type: multipart/form-data; boundary=x\r\n"
	)
	tried := 0
	try := func(method, target, header, body string, want ...int) {
		t.Helper()
		tried++
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if !strings.Contains(header, "Content-Length") && !strings.Contains(header, "Transfer-Encoding") {
			header += fmt.Sprintf("Content-Length: %d\r\n", len(body))
		}
		fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: hooks.example.com\r\nConnection: close\r\n%s\r\n%s", method, target, header, body)
		_ = conn.SetReadDeadline(time.Now().Add(testwait.Limit))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s %s: %v", method, target, err)
			return
		}
		defer resp.Body.Close()
		for _, w := range want {
			if resp.StatusCode == w {
				if w == 405 && resp.Header.Get("Allow") == "" {
					t.Errorf("%s %s: no Allow", method, target)
				}
				return
			}
		}
		t.Errorf("%s %s with %q: %d, want %v", method, target, header, resp.StatusCode, want)
	}
	for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "POSTED", "post", "PROPFIND"} {
		try(method, path, kind, "{}", 405)
	}
	for _, target := range []string{
		"/", "/api", path + "/", path + "/x", "/" + path, "//" + path[1:], strings.ToUpper(path), "/x/.." + path, "/api/agents/../agents/support/channels/desk/webhook",
		"/api/agents//channels/desk/webhook", "/api/agents/support/channels//webhook", "/api/agents/%73upport/channels/desk/webhook", "/api/agents/support%2fchannels/desk/webhook",
		"/api/agents/support%00/channels/desk/webhook", "/api/agents/./channels/desk/webhook", "/api/agents/..%2fadmin/channels/desk/webhook", "/api/agents/support;x=1/channels/desk/webhook",
		"/api/agents/Support/channels/desk/webhook", "/api/agents/" + strings.Repeat("a", 65) + "/channels/desk/webhook", "/api/agents/support/channels/desk/webhook%20",
		"/api/agents/support/channels/desk%3Fx/webhook", "/api/agents/support/channels/desk", "/api/agents/support\\channels\\desk\\webhook", "*", "/healthz/", "/readyz/..%2f",
	} {
		try("POST", target, kind, "{}", 404, 400)
	}
	for _, header := range []string{
		"", form, "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n", "Content-Type: application/json; charset=utf-7\r\n",
		"Content-Type: application/jsonx\r\n", kind + form, form + kind, "Content-Type: application/json, multipart/form-data\r\n",
		kind + "Content-Encoding: gzip\r\n", kind + "Content-Encoding: identity\r\n", kind + "Content-Encoding: br, gzip\r\n",
	} {
		try("POST", path, header, `{"text":"x"}`, 415)
	}
	try("GET", path, kind+"X-HTTP-Method-Override: POST\r\n", "{}", 405)
	try("GET", path+"?_method=POST", kind, "{}", 405)
	try("POST", "/healthz", kind, "{}", 405)
	try("POST", "/readyz", kind, "{}", 405)
	try("POST", path, kind+"Content-Length: 2\r\nContent-Length: 3\r\n", "{}", 400)
	try("POST", path, kind+"Transfer-Encoding: xchunked\r\n", "{}", 400, 501)
	try("POST", path, kind+"Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n", 400)
	try("POST", path, kind+"Content-Length: 2097152\r\n", "", 413)
	try("POST", path, kind+"Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", server.MaxBody+1, strings.Repeat("x", server.MaxBody+1)), 413)
	if took := d.took(); len(took) != 0 || tried < 50 {
		t.Errorf("of %d requests these were taken: %.300q", tried, took)
	}
	// What is none of these is taken, also by another name of the host and with a query.
	try("POST", path+"?from=proxy", "Content-Type: application/json; charset=UTF-8\r\n", `{"text":"x","files":[{"filepath":"/etc/passwd"}]}`, 202)
	try("POST", "http://other.example.com"+path, kind, strings.Repeat(" ", server.MaxBody-2)+"{}", 202)
	if took := d.took(); len(took) != 2 {
		t.Errorf("taken were %d", len(took))
	}
}

// sendHalf begins n deliveries that never come to an end, each within the rate of its channel.
func sendHalf(t *testing.T, address string, n int) (all []net.Conn) {
	t.Helper()
	for i := range n {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		target := fmt.Sprintf("/api/agents/support/channels/slow%d/webhook", i%4)
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", target)
		all = append(all, conn)
	}
	return all
}

// Two hundred senders that never come to an end keep no other sender out (T37).
func TestSlowSendersKeepNoSenderOut(t *testing.T) {
	t.Parallel()
	d := &desk{answer: server.Received{Session: "sess_1"}}
	address := begin(t, d, server.Options{})
	slow := sendHalf(t, address, 200)
	for i := range 20 {
		for _, conn := range slow { // a byte now and then
			if _, err := conn.Write([]byte(" ")); err != nil {
				t.Fatal(err)
			}
		}
		if resp, body := post(t, "http://"+address+path, `{"text":"hello"}`); resp.StatusCode != 202 {
			t.Errorf("delivery %d: %d %s, want 202", i, resp.StatusCode, body)
		}
	}
}

// The server tells each sender whose body does not come in time that it is late (T37).
func TestSlowSendersAreToldThatTheyAreLate(t *testing.T) {
	t.Parallel()
	address := begin(t, &desk{}, server.Options{BodyTime: 500 * time.Millisecond})
	for i, conn := range sendHalf(t, address, 200) {
		_ = conn.SetReadDeadline(time.Now().Add(testwait.Limit))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("slow sender %d: %v", i, err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusRequestTimeout {
			t.Errorf("slow sender %d is answered %s, want 408", i, resp.Status)
		}
	}
}

func TestAFloodIsRefusedAndOthersAreNot(t *testing.T) {
	t.Parallel()
	d := &desk{}
	address := begin(t, d, server.Options{Rate: 1, Burst: 5})
	accepted, refused, began := 0, 0, time.Now()
	for range 20 {
		switch resp, _ := post(t, "http://"+address+path, "{}"); resp.StatusCode {
		case 202:
			accepted++
		case 429:
			refused++
			if resp.Header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After is %q", resp.Header.Get("Retry-After"))
			}
		default:
			t.Errorf("%d", resp.StatusCode)
		}
	}
	if most := 5 + int(time.Since(began).Seconds()); accepted < 5 || accepted > most {
		t.Errorf("%d deliveries were accepted and %d refused, want 5 to %d accepted", accepted, refused, most)
	}
	if resp, body := post(t, "http://"+address+"/api/agents/support/channels/other/webhook", "{}"); resp.StatusCode != 202 {
		t.Errorf("another channel: %d %s", resp.StatusCode, body)
	}
}

func TestOnlySoManyAtATime(t *testing.T) {
	t.Parallel()
	d := &desk{hold: make(chan struct{})}
	address := begin(t, d, server.Options{AtOnce: 4})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { post(t, "http://"+address+path, "{}") })
	}
	testwait.Until(t, "four deliveries are at work", func() bool { return d.entered.Load() >= 4 })
	if resp, body := post(t, "http://"+address+path, "{}"); resp.StatusCode != 503 || !strings.Contains(body, "overloaded") || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	close(d.hold)
	all.Wait()
	if resp, body := post(t, "http://"+address+path, "{}"); resp.StatusCode != 202 {
		t.Errorf("afterwards: %d %s", resp.StatusCode, body)
	}
}

// Large bodies of many senders at a time are bounded together, and small ones are
// taken meanwhile.
func TestLargeBodiesAreBoundedTogether(t *testing.T) {
	t.Parallel()
	d := &desk{hold: make(chan struct{})}
	address := begin(t, d, server.Options{Rate: 1000, Burst: 1000})
	var all sync.WaitGroup
	var refused atomic.Int64
	large := `{"text":"` + strings.Repeat("x", 1<<20-100) + `"}`
	for range 40 {
		all.Go(func() {
			resp, err := http.Post("http://"+address+path, "application/json", strings.NewReader(large))
			if err != nil {
				t.Errorf("a sender did not see its answer: %v", err)
				return
			}
			if _ = resp.Body.Close(); resp.StatusCode == 503 {
				refused.Add(1)
			}
		})
	}
	testwait.Until(t, "large bodies fill the room and the rest are refused", func() bool { return d.entered.Load() >= 15 && refused.Load() >= 20 })
	entered := d.entered.Load()
	all.Go(func() { post(t, "http://"+address+path, "{}") })
	testwait.Until(t, "a small body needs no room", func() bool { return d.entered.Load() > entered })
	if n := d.entered.Load(); n > 18 { // none has left: those that come later take the room of others
		t.Errorf("%d bodies of 1 MiB were at hand", n)
	}
	close(d.hold)
	all.Wait()
	if resp, body := post(t, "http://"+address+path, large); resp.StatusCode != 202 {
		t.Errorf("afterwards: %d %.200s", resp.StatusCode, body)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	sick := false
	h := server.New(server.Options{Agents: &desk{}, Health: func(context.Context) error {
		if sick {
			return errors.New("the disk /dev/sda is full")
		}
		return nil
	}})
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	for _, s := range []bool{false, true} {
		sick = s
		if code, body := ask("/healthz"); code != 200 || body != "{\"status\":\"ok\"}\n" {
			t.Errorf("healthz: %d %s", code, body)
		}
		code, body := ask("/readyz")
		if s != (code == 503) || strings.Contains(body, "disk") {
			t.Errorf("readyz: %d %s", code, body)
		}
	}
}

func TestAPanicIsAnAnswer(t *testing.T) {
	t.Parallel()
	h := server.New(server.Options{Agents: nil})
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", path, bytes.NewReader([]byte("{}")))
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, r)
	if w.Code != 500 || strings.Contains(w.Body.String(), "nil pointer") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// What is under /api/v1/ is another handler's, as many requests at once as there may be;
// where there is none, nothing is there.
func TestTheAPIIsMounted(t *testing.T) {
	t.Parallel()
	hold, entered := make(chan struct{}), make(chan struct{}, 8)
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-hold
		_, _ = io.WriteString(w, r.URL.Path)
	})
	h := server.New(server.Options{Agents: &desk{}, API: api, AtOnce: 2})
	ask := func(h http.Handler, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	var waits sync.WaitGroup
	for range 2 {
		waits.Go(func() {
			if w := ask(h, "/api/v1/calls"); w.Body.String() != "/api/v1/calls" {
				t.Errorf("it is answered %d %s", w.Code, w.Body)
			}
		})
		<-entered
	}
	if w := ask(h, "/api/v1/calls"); w.Code != 503 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"code":"overloaded"`) {
		t.Errorf("where there is no room it is answered %d %s", w.Code, w.Body)
	}
	if w := ask(h, "/healthz"); w.Code != 200 {
		t.Errorf("meanwhile the health is answered %d", w.Code)
	}
	close(hold)
	waits.Wait()
	for _, path := range []string{"/api/v1", "/api/v2/calls", "/api/"} {
		if w := ask(h, path); w.Code != 404 {
			t.Errorf("%s is answered %d", path, w.Code)
		}
	}
	if w := ask(server.New(server.Options{Agents: &desk{}}), "/api/v1/calls"); w.Code != 404 {
		t.Errorf("without one it is answered %d", w.Code)
	}
}
