package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/surface/server"
	"github.com/mortise-dev/mortise/plugin"
)

// An address that other machines can reach is not opened in plain text, unless the
// caller permits it explicitly (T34).
func TestWhereTheHostListens(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "localhost:0", "[::1]:0", "127.1.2.3:0"} {
		l, err := server.Listen(t.Context(), address, false, false)
		if err != nil {
			if address == "[::1]:0" && plugin.CodeOf(err) == plugin.CodeUnavailable {
				continue // no IPv6 on this machine
			}
			t.Errorf("%s: %v", address, err)
			continue
		}
		if _, port, err := net.SplitHostPort(l.Addr().String()); err != nil || port == "0" {
			t.Errorf("%s: listens on %s", address, l.Addr())
		}
		l.Close()
	}
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:8080"} {
		if _, err := server.Listen(t.Context(), address, false, false); plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), "--insecure-listen") {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, way := range [][2]bool{{true, false}, {false, true}} {
		l, err := server.Listen(t.Context(), "0.0.0.0:0", way[0], way[1])
		if err != nil {
			t.Errorf("%v: %v", way, err)
			continue
		}
		if _, err := server.Listen(t.Context(), l.Addr().String(), way[0], way[1]); plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), "in use") {
			t.Errorf("twice: %v", err)
		}
		l.Close()
	}
	for _, address := range []string{"8080", "127.0.0.1", "127.0.0.1:http:1", "127.0.0.1:99999"} {
		if _, err := server.Listen(t.Context(), address, false, false); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// A written certificate is one in files, for an hour.
type written struct {
	leaf      *x509.Certificate
	cert, key string
}

// writeCertificate makes a certificate for 127.0.0.1, in cert.pem and key.pem of a
// directory.
func writeCertificate(t *testing.T, dir string, serial int64) written {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	w := written{leaf, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for path, block := range map[string]*pem.Block{w.cert: {Type: "CERTIFICATE", Bytes: der}, w.key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// trusting is a client that trusts some certificates, and opens a connection for each
// request.
func trusting(all ...*x509.Certificate) *http.Client {
	pool := x509.NewCertPool()
	for _, one := range all {
		pool.AddCert(one)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
}

// A host that stops takes nothing new, and answers what it has begun to.
func TestStoppingAnswersWhatWasAsked(t *testing.T) {
	t.Parallel()
	d := &desk{hold: make(chan struct{}), answer: server.Received{Session: "sess_1"}}
	files := writeCertificate(t, t.TempDir(), 1)
	cert, err := server.OpenCertificate(files.cert, files.key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := server.Listen(t.Context(), "127.0.0.1:0", true, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(ctx, l, server.New(server.Options{Agents: d}), cert, testwait.Limit, slog.New(slog.DiscardHandler))
	}()
	client := trusting(files.leaf)
	answer := make(chan string, 1)
	go func() {
		resp, err := client.Post("https://"+l.Addr().String()+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		raw, _ := io.ReadAll(resp.Body)
		answer <- resp.Proto + " " + resp.Status + " " + string(raw)
	}()
	testwait.Until(t, "it is being answered", func() bool { return d.entered.Load() == 1 })
	stop()
	testwait.Until(t, "no other user is let in", func() bool {
		conn, err := net.DialTimeout("tcp", l.Addr().String(), time.Second)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	close(d.hold)
	if got := <-answer; got != "HTTP/2.0 202 Accepted {\"session\":\"sess_1\"}\n" {
		t.Errorf("it was answered %q", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The server hangs up on a client that never finishes its header.
func TestSlowHeadersAreHungUpOn(t *testing.T) {
	t.Parallel()
	address := begin(t, &desk{}, server.Options{})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\nX-A: "); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(testwait.Limit))
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the server does not hang up: %v", err)
	}
}

func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	if n := server.Counted(10_000); n != 4096 {
		t.Errorf("%d channels are counted", n)
	}
}
