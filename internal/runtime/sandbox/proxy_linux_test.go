package sandbox_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
)

// dialer prints what it reads where a program finds its proxy, and what came of other ways out.
func dialer(args []string) {
	conn, err := net.DialTimeout("tcp4", fmt.Sprintf("127.0.0.1:%d", sandbox.ProxyPort), time.Minute)
	if err != nil {
		fmt.Println("proxy:", err)
		return
	}
	text, _ := io.ReadAll(conn)
	fmt.Printf("proxy: %s\n", text)
	for name, call := range map[string]func() error{
		"ulp":         func() error { return unix.SetsockoptString(fd(conn), unix.SOL_TCP, unix.TCP_ULP, "tls") },
		"ip option":   func() error { return unix.SetsockoptInt(fd(conn), unix.SOL_IP, unix.IP_TTL, 3) },
		"mptcp":       func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 262); return err },
		"raw":         func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, 1); return err },
		"bind":        func() error { return unix.Bind(fd(conn), &unix.SockaddrInet4{Port: 9999}) },
		"stream pair": func() error { return redirect(unix.SOCK_STREAM, args) },
		"packet pair": func() error { return redirect(unix.SOCK_SEQPACKET, args) },
		"another port": func() error {
			conn, err := net.DialTimeout("tcp4", "127.0.0.1:3129", time.Minute)
			if err == nil {
				_ = conn.Close()
			}
			return err
		},
	} {
		fmt.Printf("%s: %v\n", name, call())
	}
}

// redirect tries to connect one end of a pair to a socket that has a path, once the other is closed.
func redirect(kind int, paths []string) error {
	if len(paths) < 2 {
		return unix.EISCONN // there is none to try
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
	if err != nil {
		return nil
	}
	_ = unix.Close(pair[1])
	path := paths[0]
	if kind == unix.SOCK_SEQPACKET {
		path = paths[1]
	}
	return unix.Connect(pair[0], &unix.SockaddrUnix{Name: path})
}

func fd(conn net.Conn) (n int) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		panic(err)
	}
	_ = raw.Control(func(d uintptr) { n = int(d) })
	return n
}

// dials runs a dialer and greets it at its proxy, if that is wanted.
func dials(t *testing.T, s *sandbox.Sandbox, greeting string, proxied bool) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	dir, err := os.MkdirTemp("/tmp", "shown-") // with sockets that others listen on
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	stream, packet := dir+"/stream", dir+"/packet"
	for network, path := range map[string]string{"unix": stream, "unixpacket": packet} {
		l, err := net.Listen(network, path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	spec := self(t, "dialer", stream, packet)
	spec.Scratch, spec.Limits, spec.Proxy, spec.Read = t.TempDir(), usual, proxied, append(spec.Read, dir)
	p, err := s.Start(t.Context(), spec, sandbox.Files{Stdin: null, Stdout: w, Stderr: w})
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if (p.Proxy() != nil) != proxied {
		t.Fatalf("its proxy is %v", p.Proxy())
	}
	if proxied {
		conn, err := p.Proxy().Accept()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, greeting)
		_ = conn.Close()
	}
	out, _ := io.ReadAll(r)
	p.Wait()
	p.Release()
	if proxied {
		if _, err := p.Proxy().Accept(); err == nil {
			t.Error("its listener is open still")
		}
	}
	return string(out)
}

// A program with a proxy reaches that, its own, and nothing more; one without has no socket.
func TestAProgramReachesItsProxyAlone(t *testing.T) {
	t.Parallel()
	s := full(t)
	for _, greeting := range []string{"one", "two"} {
		t.Run(greeting, func(t *testing.T) {
			t.Parallel() // each at the same address
			out := dials(t, s, greeting, true)
			if !strings.HasPrefix(out, "proxy: "+greeting+"\n") {
				t.Fatal(out)
			}
			for _, want := range []string{
				"ulp: operation not permitted", "ip option: operation not permitted", "mptcp: operation not permitted", "raw: operation not permitted",
				"bind: operation not permitted", "stream pair: transport endpoint is already connected", "packet pair: transport endpoint is already connected", "another port: dial tcp4 127.0.0.1:3129: connect: ",
			} {
				if !strings.Contains(out, want) {
					t.Errorf("not %q: %s", want, out)
				}
			}
		})
	}
	if out := dials(t, s, "", false); !strings.Contains(out, "operation not permitted") {
		t.Errorf("without a proxy: %s", out)
	}
}

// With a proxy, a program can do one thing more: have a socket of TCP.
func TestAProxyOpensNothingElse(t *testing.T) {
	t.Parallel()
	s := full(t)
	probe := func(proxied bool) map[string]string {
		spec := self(t, "prober", "/etc/shadow", "/proc/sys/kernel/osrelease")
		spec.Proxy = proxied
		got := run(t, s, spec)
		said := map[string]string{}
		if err := json.Unmarshal([]byte(got.out), &said); err != nil {
			t.Fatalf("%v %s %s", got.State, got.out, got.err)
		}
		if got.report.Level != sandbox.Full {
			t.Errorf("level %s", got.report.Level)
		}
		return said
	}
	without, with := probe(false), probe(true)
	for _, name := range slices.Sorted(maps.Keys(without)) {
		if (without[name] == "") != (with[name] == "") && name != "socket inet" {
			t.Errorf("%s: %q without a proxy, %q with one", name, without[name], with[name])
		}
	}
	if without["socket inet"] == "" || with["socket inet"] != "" {
		t.Errorf("a socket: %q without a proxy, %q with one", without["socket inet"], with["socket inet"])
	}
}

func TestAnOrdinaryUsersProgramHasAProxyToo(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user: run the test as root")
	}
	full(t)
	report, out, _ := strings.Cut(ordinaryHost(t)("dialer"), "\n")
	if !strings.Contains(report, `"level":"full"`) {
		t.Skipf("needs a machine on which an ordinary user reaches level full; mortise doctor says what is missing: %s", report)
	}
	if !strings.HasPrefix(out, "proxy: ordinary\n") {
		t.Error(out)
	}
}

// Where there is no network namespace, a program that wants a proxy is not started.
func TestWithoutASandboxThereIsNoProxy(t *testing.T) {
	t.Parallel()
	spec := self(t, "dialer")
	spec.Scratch, spec.Limits, spec.Proxy = t.TempDir(), usual, true
	if _, err := newSandbox(t, sandbox.Off).Start(t.Context(), spec, sandbox.Files{}); plugin.CodeOf(err) != plugin.CodeIsolationUnavailable {
		t.Error(err)
	}
}
