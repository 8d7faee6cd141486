package server_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/surface/server"
)

// A journal is a log that is read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) count(what string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), what)
}

// A certificate that is replaced on the disk is used without a restart. A pair that is
// broken leaves the one before in force: no one is refused, the host stays ready, and its
// log says so once.
func TestCertificatesAreReadAgainWhenTheyChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := writeCertificate(t, dir, 1)
	log := &journal{}
	cert, err := server.OpenCertificate(first.cert, first.key, slog.New(slog.NewTextHandler(log, nil)))
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
		ended <- server.Serve(ctx, l, server.New(server.Options{Agents: &desk{}}), cert, time.Second, slog.New(slog.DiscardHandler))
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	// serial is that of the certificate with which a new connection is encrypted. All that
	// were written are trusted, so that no handshake fails.
	trusted := first.leaf
	second := writeCertificate(t, t.TempDir(), 2)
	client := trusting(trusted, second.leaf)
	serial := func() int64 {
		t.Helper()
		resp, err := client.Get("https://" + l.Addr().String() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("it is not ready: %s", resp.Status)
		}
		return resp.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Fatalf("the first certificate has the serial %d", got)
	}
	broken := filepath.Join(t.TempDir(), "broken.pem")
	if err := os.WriteFile(broken, []byte("no key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	replace(t, broken, first.key)
	testwait.Until(t, "the log says that the pair is broken", func() bool { return serial() == 1 && log.count("cannot be used") > 0 })
	replace(t, second.cert, first.cert) // its key is not there yet
	testwait.Until(t, "the log says that half a pair is none", func() bool { return serial() == 1 && log.count("cannot be used") > 1 })
	replace(t, second.key, first.key)
	testwait.Until(t, "the new certificate is used", func() bool { return serial() == 2 })
	if n := log.count("cannot be used"); n != 2 {
		t.Errorf("the log complains %d times of two broken pairs", n)
	}
	if n := log.count("was replaced"); n != 1 {
		t.Errorf("the log says %d times that one was replaced", n)
	}
	if _, err := server.OpenCertificate(second.key, second.cert, slog.Default()); err == nil {
		t.Error("a host begins to serve without a certificate that can be used")
	}
}

// replace puts a copy of a file in the place of another, as tools that renew certificates do.
func replace(t *testing.T, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to+".new", raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(to+".new", to); err != nil {
		t.Fatal(err)
	}
}
