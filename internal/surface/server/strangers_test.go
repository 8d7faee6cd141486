package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/surface/server"
)

// A sender who does not prove who it is uses up nothing of what the sender needs who does,
// although both come from one address.
func TestStrangersKeepNoSenderOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options server.Options
		begin   func(t *testing.T, address string)
		body    string
	}{
		"forged signatures": {server.Options{Rate: 0.001, Burst: 20}, forge, "{}"},
		"slow bodies":       {server.Options{AtOnce: 16, UnreadTime: 50 * time.Millisecond}, func(t *testing.T, address string) { stall(t, address, 40, 24, "{") }, "{}"},
		"bytes": {server.Options{UnreadTime: 50 * time.Millisecond}, func(t *testing.T, address string) { stall(t, address, 20, 2, large[:len(large)-1]) },
			large},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &desk{answer: server.Received{Session: "sess_1"}}
			address := begin(t, d, c.options)
			c.begin(t, address)
			for i := range 20 {
				if resp, body := post(t, "http://"+address+path, c.body); resp.StatusCode != http.StatusAccepted {
					t.Errorf("delivery %d is answered %d %s, want 202", i, resp.StatusCode, body)
				}
			}
		})
	}
}

// large is a delivery of the largest size.
var large = `{"text":"` + strings.Repeat("x", server.MaxBody-11) + `"}`

// forge sends many deliveries whose sender proves nothing.
func forge(t *testing.T, address string) {
	t.Helper()
	for i := range 200 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(forged, "yes")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.Body.Close(); resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("forged delivery %d is answered %d, want 401", i, resp.StatusCode)
		}
	}
}

// stall begins n deliveries whose bodies do not come to an end, and waits until so many of them
// were displaced.
func stall(t *testing.T, address string, n, displaced int, text string) {
	t.Helper()
	var refused atomic.Int64
	for range n {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		go func() {
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(text)+1, text)
			if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
				_ = resp.Body.Close()
				if resp.StatusCode == http.StatusServiceUnavailable {
					refused.Add(1)
				}
			}
		}()
	}
	testwait.Until(t, "the first of the slow senders are displaced", func() bool { return refused.Load() >= int64(displaced) })
}
