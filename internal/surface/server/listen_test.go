package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

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

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A host that stops takes nothing new, and answers what it has begun to.
func TestStoppingAnswersWhatWasAsked(t *testing.T) {
	t.Parallel()
	d := &desk{hold: make(chan struct{}), answer: server.Received{Session: "sess_1"}}
	cert := certificate(t)
	l, err := server.Listen(t.Context(), "127.0.0.1:0", true, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(ctx, l, server.New(server.Options{Agents: d}), &cert, 10*time.Second, slog.New(slog.DiscardHandler))
	}()
	pool := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(leaf)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
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
	eventually(t, "it is being answered", func() bool { return d.entered.Load() == 1 })
	stop()
	eventually(t, "no other user is let in", func() bool {
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
	began := time.Now()
	if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\nX-A: "); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.ReadAll(conn); err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	if n := server.Counted(10_000); n != 4096 {
		t.Errorf("%d channels are counted", n)
	}
}
