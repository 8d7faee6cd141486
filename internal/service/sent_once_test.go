package service

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// A request that may change something goes out once, whatever becomes of the
// connection, and whatever headers it has that HTTP clients take for leave to send
// it again. The server ends a connection that was used before, at each point.
func TestAnEffectIsSentOnceOverWhateverConnection(t *testing.T) {
	t.Parallel()
	ends := map[string]func(conn net.Conn, in *bufio.Reader, n int) (received bool){
		"before it reads": func(conn net.Conn, in *bufio.Reader, n int) bool { _, err := in.Peek(1); return err == nil },
		"in the request line": func(conn net.Conn, in *bufio.Reader, n int) bool {
			_, err := io.CopyN(io.Discard, in, 8)
			return err == nil
		},
		"after the request": func(conn net.Conn, in *bufio.Reader, n int) bool { return read(in) },
		"in the status line": func(conn net.Conn, in *bufio.Reader, n int) bool {
			ok := read(in)
			fmt.Fprint(conn, "HTTP/1.1 2")
			return ok
		},
		"in the headers": func(conn net.Conn, in *bufio.Reader, n int) bool {
			ok := read(in)
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nA: b\r\n")
			return ok
		},
		"before the body ends": func(conn net.Conn, in *bufio.Reader, n int) bool {
			ok := read(in)
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab")
			return ok
		},
	}
	headers := []map[string]any{nil, {"Idempotency-Key": "k"}, {"x-idempotency-key": "k"}}
	for point, end := range ends {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			for _, declared := range []bool{false, true} {
				for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
					for _, header := range headers {
						s, received := endsConnections(t, end)
						if declared {
							s.target.Manifest.HTTP.Idempotency = map[string]string{"api.example.com": "Idempotency-Key"}
						}
						s.must("http://api.example.com/")
						args := []any{"method", method}
						if header != nil {
							args = append(args, "headers", header)
						}
						_, err := s.fetch("http://api.example.com/effect", args...)
						if n := received.Load(); n > 1 {
							t.Errorf("%s with %v: it was received %d times (%v)", method, header, n, err)
						}
					}
				}
			}
		})
	}
}

func read(in *bufio.Reader) bool {
	req, err := http.ReadRequest(in)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, req.Body)
	return true
}

// endsConnections gives a scene a server that answers GETs, and ends the
// connection at some point of any other request that comes over one that was used
// before or, where all are new, over the first and the following.
func endsConnections(t *testing.T, end func(net.Conn, *bufio.Reader, int) bool) (*scene, *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var received atomic.Int32
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for n := 0; ; n++ {
					if first, err := in.Peek(4); err != nil {
						return
					} else if string(first) == "GET " {
						read(in)
						fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
						continue
					}
					if end(conn, in, n) {
						received.Add(1)
					}
					return
				}
			})
		}
	})
	s := newScene(t)
	s.broker.web.connect = s.connectTo(listener.Addr().String())
	t.Cleanup(func() { s.broker.web.close(); listener.Close(); all.Wait() })
	return s, &received
}

// A key of the plugin's own making is passed on and promises nothing; where the
// manifest declares the header, its value is the host's.
func TestTheIdempotencyHeaderThatIsDeclaredIsTheHosts(t *testing.T) {
	t.Parallel()
	for _, declared := range []bool{false, true} {
		var got http.Header
		s := newScene(t).serve(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
		if declared {
			s.target.Manifest.HTTP.Idempotency = map[string]string{"api.example.com": "Idempotency-Key"}
		}
		args := fmt.Appendf(nil, `{"method":"POST","url":"http://api.example.com/","headers":{"Idempotency-Key":"own"}}`)
		task, err := fetchTask(s.services().(*grant), args)
		if err != nil {
			t.Fatal(err)
		}
		if (task.repeat != nil) != declared {
			t.Errorf("declared %t: the other side counts as one that takes a key: %t", declared, task.repeat != nil)
		}
		want := "own"
		if task.repeat != nil {
			task.repeat("the host's")
			want = "the host's"
		}
		if _, err := task.do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got.Get("Idempotency-Key") != want || len(got.Values("Idempotency-Key")) != 1 {
			t.Errorf("declared %t: the header is %v, want %s", declared, got.Values("Idempotency-Key"), want)
		}
	}
}
