package service

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/plugin"
)

// raw gives the scene a server that answers each request with these bytes, and
// then hangs up.
func (s *scene) raw(answer func(conn net.Conn)) *scene {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				answer(conn)
			}
			conn.Close()
		}
	}()
	s.t.Cleanup(func() { listener.Close(); <-done })
	s.broker.web.connect = s.connectTo(listener.Addr().String())
	return s
}

func says(text string) func(net.Conn) {
	return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
}

func zipped(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	chunk := make([]byte, 1<<20)
	for ; n > 0; n -= len(chunk) {
		_, _ = w.Write(chunk[:min(n, len(chunk))])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGzip(t *testing.T) {
	t.Parallel()
	body := zipped(t, 1000)
	s := newScene(t).serve(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", r.URL.Path[1:])
		_, _ = w.Write(body)
	})
	res := s.must("http://api.example.com/gzip")
	headers := res["headers"].(map[string]any)
	if got := res["body"]; got != strings.Repeat("\x00", 1000) || headers["content-encoding"] != nil || headers["content-length"] != nil {
		t.Errorf("%v", res)
	}
	if res := s.must("http://api.example.com/br"); res["body_base64"] == nil || res["headers"].(map[string]any)["content-encoding"] != "br" {
		t.Errorf("an encoding that the host does not know: %v", res)
	}
	if res := s.must("http://api.example.com/gzip", "method", "HEAD"); res["body"] != "" {
		t.Errorf("HEAD: %v", res)
	}
}

func TestBombs(t *testing.T) {
	t.Parallel()
	bomb := zipped(t, 12<<20)
	empty := zipped(t, 0)
	s := newScene(t).serve(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		switch r.URL.Path {
		case "/bomb":
			_, _ = w.Write(bomb)
		case "/nothing": // members without content, for ever
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat(empty, 1000)); err != nil {
					return
				}
			}
		case "/twice":
			var b bytes.Buffer
			zw := gzip.NewWriter(&b)
			_, _ = zw.Write(bomb)
			_ = zw.Close()
			w.Header().Add("Content-Encoding", "gzip")
			_, _ = w.Write(b.Bytes())
		case "/broken":
			_, _ = w.Write(bomb[:len(bomb)/1000])
		case "/none":
			_, _ = io.WriteString(w, "plain text")
		}
	})
	for _, c := range []struct {
		path string
		args []any
		code plugin.Code
	}{
		{"/bomb", nil, plugin.CodeLimitExceeded}, {"/bomb", []any{"max_bytes", 1000}, ""}, {"/nothing", nil, plugin.CodeUnavailable},
		{"/twice", nil, ""}, {"/broken", []any{"max_bytes", 16 << 20}, plugin.CodeUnavailable}, {"/none", nil, plugin.CodeUnavailable},
	} {
		res, err := s.fetch("http://api.example.com"+c.path, c.args...)
		if plugin.CodeOf(err) != c.code {
			t.Errorf("%s %v: %v", c.path, c.args, err)
		}
		if c.args != nil && err == nil && (len(res["body"].(string)) != 1000 || res["truncated"] != true) {
			t.Errorf("%s: %d bytes, truncated %v", c.path, len(res["body"].(string)), res["truncated"])
		}
	}
}

func TestLongBodies(t *testing.T) {
	t.Parallel()
	s := newScene(t).serve(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		if r.URL.Path == "/announced" {
			w.Header().Set("Content-Length", strconv.Itoa(n))
		}
		_, _ = w.Write(bytes.Repeat([]byte("x"), n))
		if r.URL.Path == "/more" { // for which a caller should not wait
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	for _, path := range []string{"/", "/announced", "/more"} {
		if _, err := s.fetch("http://api.example.com" + path + "?n=8388609"); plugin.CodeOf(err) != plugin.CodeLimitExceeded {
			t.Errorf("%s: %v", path, err)
		}
		if path == "/more" {
			if res := s.must("http://api.example.com/more?n=10000", "max_bytes", 9999); res["truncated"] != true {
				t.Errorf("%v", res["truncated"])
			}
			continue
		}
		for max, truncated := range map[int]bool{1: true, 9999: true, 10000: false, 16 << 20: false} {
			res := s.must("http://api.example.com"+path+"?n=10000", "max_bytes", max)
			if n := len(res["body"].(string)); n != min(max, 10000) || res["truncated"] != truncated {
				t.Errorf("%s, at most %d: %d, %v", path, max, n, res["truncated"])
			}
		}
	}
	if _, err := s.fetch("http://api.example.com/?n=5000000", "method", "POST"); plugin.CodeOf(err) != plugin.CodeLimitExceeded || !strings.Contains(err.Error(), "the effect has happened") {
		t.Error(err)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	huge := "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Filler: "+strings.Repeat("x", 1000)+"\r\n", 100) + "\r\n"
	for name, c := range map[string]struct {
		answer string
		code   plugin.Code
	}{
		"nothing":                  {"", plugin.CodeUnavailable},
		"no HTTP":                  {"SSH-2.0-OpenSSH_9.6\r\n", plugin.CodeUnavailable},
		"half a header":            {"HTTP/1.1 200 OK\r\nContent-Le", plugin.CodeUnavailable},
		"half a body":              {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", plugin.CodeUnavailable},
		"half a chunk":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n123", plugin.CodeUnavailable},
		"two lengths":              {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", plugin.CodeUnavailable},
		"a negative length":        {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", plugin.CodeUnavailable},
		"huge headers":             {huge, plugin.CodeUnavailable},
		"another protocol":         {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", plugin.CodeUnavailable},
		"a hundred before the one": {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: "+strings.Repeat("x", 1000)+"\r\n\r\n", 100), plugin.CodeUnavailable},
	} {
		for _, method := range []string{"GET", "POST"} {
			s := newScene(t).raw(says(c.answer))
			_, err := s.fetch("http://api.example.com/", "method", method)
			e := plugin.AsError(err)
			if e == nil || e.Code != c.code || method == "POST" && e.Retryable || strings.ContainsAny(e.Message, "\r\n") || len(e.Message) > 500 {
				t.Errorf("%s, %s: %v", name, method, err)
			}
			if method == "POST" && s.connections() != 1 {
				t.Errorf("%s: a POST was repeated", name)
			}
		}
	}
}

func TestTooLate(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	slow := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.WriteHeader(http.StatusOK)
			for range 1000 {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-hang:
					return
				case <-r.Context().Done():
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		}
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}
	s := newScene(t).serve(slow)
	defer close(hang)
	for _, path := range []string{"/header", "/body"} {
		var both sync.WaitGroup
		for method, retryable := range map[string]bool{"GET": true, "POST": false} {
			both.Go(func() {
				// Long enough to send the request on a busy machine: a POST that was not sent can be retried.
				_, err := s.fetch("http://api.example.com"+path, "timeout_seconds", 3, "method", method)
				e := plugin.AsError(err)
				if e == nil || e.Code != plugin.CodeTimeout || e.Retryable != retryable {
					t.Errorf("%s %s: %v", method, path, err)
				}
			})
		}
		both.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if _, err := s.fetchWithin(ctx, "http://api.example.com"+path); plugin.CodeOf(err) != plugin.CodeCancelled {
			t.Errorf("%s, cancelled: %v", path, err)
		}
		over := plugin.Errorf(plugin.CodeTimeout, "the call took longer than 1 s")
		ctx, cancel = context.WithTimeoutCause(t.Context(), 100*time.Millisecond, over)
		if _, err := s.fetchWithin(ctx, "http://api.example.com"+path); plugin.CodeOf(err) != plugin.CodeTimeout || !strings.Contains(err.Error(), over.Message) {
			t.Errorf("%s, the call's own deadline: %v", path, err)
		}
		cancel()
	}
}

func TestTryingAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, method string
		statuses     []int
		after        string
		want         float64
		requests     int
		waits        int
		within       int
	}{
		{"503, then well", "GET", []int{503, 200}, "", 200, 2, 1, 5},
		{"429, 502, then well", "HEAD", []int{429, 502, 200}, "", 200, 3, 2, 5},
		{"504 for good", "GET", []int{504}, "", 504, 3, 2, 5},
		{"500 is an answer", "GET", []int{500}, "", 500, 1, 0, 5},
		{"404 is an answer", "GET", []int{404}, "", 404, 1, 0, 5},
		{"a POST is not repeated", "POST", []int{503}, "0", 503, 1, 0, 5},
		{"a DELETE is not repeated", "DELETE", []int{429}, "", 429, 1, 0, 5},
		{"after two seconds", "GET", []int{429, 200}, "2", 200, 2, 1, 5},
		{"after a minute is too long", "GET", []int{429, 200}, "60", 429, 1, 0, 300},
		{"no longer than five seconds in all", "GET", []int{503}, "3", 503, 2, 1, 300},
		{"after the deadline is too late", "GET", []int{503, 200}, "9", 503, 1, 0, 5},
		{"after a date that has passed", "GET", []int{503, 200}, "Wed, 01 Jan 2020 00:00:00 GMT", 200, 2, 1, 5},
		{"after a date far off", "GET", []int{503, 200}, "Wed, 01 Jan 2070 00:00:00 GMT", 503, 1, 0, 300},
		{"after nonsense", "GET", []int{503, 200}, "soon", 200, 2, 1, 5},
	} {
		var n atomic.Int32
		s := newScene(t).serve(func(w http.ResponseWriter, _ *http.Request) {
			i := int(n.Add(1)) - 1
			if c.after != "" {
				w.Header().Set("Retry-After", c.after)
			}
			w.WriteHeader(c.statuses[min(i, len(c.statuses)-1)])
		})
		res := s.must("http://api.example.com/", "method", c.method, "timeout_seconds", c.within, "retries", 2)
		if res["status_code"] != c.want || int(n.Load()) != c.requests || len(s.waits) != c.waits {
			t.Errorf("%s: %v after %d requests and waits of %v", c.name, res["status_code"], n.Load(), s.waits)
		}
		for i, pause := range s.waits {
			low, high := backoff<<i/2, backoff<<i*3/2
			if seconds, err := strconv.Atoi(c.after); err == nil && seconds > 0 {
				low, high = time.Duration(seconds)*time.Second, time.Duration(seconds)*time.Second
			}
			if pause < low || pause > high {
				t.Errorf("%s: a wait of %v", c.name, pause)
			}
		}
		if u := s.uses[0]; u.Attempts != c.requests {
			t.Errorf("%s: %d attempts are reported", c.name, u.Attempts)
		}
	}
}

// TestNoRequestIsRepeatedUnasked: a plugin may retry itself, and then every
// repetition of the host's would multiply its own.
func TestNoRequestIsRepeatedUnasked(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 502, 503, 504} {
		var n atomic.Int32
		s := newScene(t).serve(func(w http.ResponseWriter, _ *http.Request) {
			n.Add(1)
			w.WriteHeader(status)
		})
		if res := s.must("http://api.example.com/"); res["status_code"] != float64(status) || n.Load() != 1 || len(s.waits) != 0 {
			t.Errorf("%d: %v after %d requests and waits of %v", status, res["status_code"], n.Load(), s.waits)
		}
	}
}

func TestTryingToConnectAgain(t *testing.T) {
	t.Parallel()
	for method, attempts := range map[string]int{"GET": 3, "POST": 1} {
		s := newScene(t)
		n := 0
		s.broker.web.connect = func(context.Context, netip.AddrPort, func(netip.AddrPort) error) (net.Conn, error) {
			n++
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		_, err := s.fetch("http://api.example.com/", "method", method, "retries", 2)
		e := plugin.AsError(err)
		if e == nil || e.Code != plugin.CodeUnavailable || !e.Retryable || n != attempts || e.Message != "http.fetch: api.example.com cannot be reached: connection refused" {
			t.Errorf("%s: %v after %d", method, err, n)
		}
	}
}

func TestAllAddressesAreTried(t *testing.T) {
	t.Parallel()
	s := newScene(t).serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	s.names["api.example.com"] = addresses("1.1.1.1", "2606:4700:4700::1111", "1.1.1.1", "8.8.8.8")
	reach := s.broker.web.connect
	s.broker.web.connect = func(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
		if to.Addr() != netip.MustParseAddr("8.8.8.8") {
			return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("network is unreachable")}
		}
		return reach(ctx, to, check)
	}
	if res := s.must("http://api.example.com/"); res["body"] != "ok" || s.connections() != 1 {
		t.Errorf("%v", res)
	}
}

func TestRequestsAtATime(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int32
	finish := make(chan struct{})
	s := newScene(t).serve(func(http.ResponseWriter, *http.Request) {
		n := now.Add(1)
		for {
			old := most.Load()
			if n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		<-finish
		now.Add(-1)
	})
	done := make(chan error, 3*maxAtOnce)
	for range 3 * maxAtOnce {
		go func() { _, err := s.fetch("http://api.example.com/"); done <- err }()
	}
	testwait.Until(t, "as many requests are under way as may be", func() bool { return now.Load() >= maxAtOnce })
	for range 3 * maxAtOnce {
		finish <- struct{}{}
		if err := testwait.Receive(t, "the end of a request", done); err != nil {
			t.Error(err)
		}
	}
	if n := most.Load(); n != maxAtOnce {
		t.Errorf("%d requests at a time, want %d", n, maxAtOnce)
	}
}
