package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateEvery is how often the files of a certificate are looked at, at most.
const certificateEvery = time.Second

// A Certificate is what traffic is encrypted with, read again when its files change. It is
// safe for concurrent use, and has no goroutine: handshakes look at the files.
type Certificate struct {
	log *slog.Logger

	mu        sync.Mutex
	cert, key string // their paths, in PEM
	pair      *tls.Certificate
	seen      [2]fileState // of the files that pair was read from, or that could not be used
	looked    time.Time
}

// A fileState changes when a file is written or replaced.
type fileState struct {
	size     int64
	modified time.Time
	why      string // it could not be looked at
	file     os.FileInfo
}

func stateOf(path string) fileState {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{why: err.Error()}
	}
	return fileState{size: info.Size(), modified: info.ModTime(), file: info}
}

func (s fileState) same(other fileState) bool {
	return s.size == other.size && s.modified.Equal(other.modified) && s.why == other.why && (s.file == nil || os.SameFile(s.file, other.file))
}

// OpenCertificate reads a certificate, with those that vouch for it, and its key.
func OpenCertificate(cert, key string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{log: log}
	if err := c.Use(cert, key); err != nil {
		return nil, err
	}
	return c, nil
}

// Use puts other files in the place of those that were used, unless they are no pair.
func (c *Certificate) Use(cert, key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := [2]fileState{stateOf(cert), stateOf(key)} // before they are read, so that a change meanwhile is seen later
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("the certificate cannot be used: %w", err)
	}
	c.cert, c.key, c.pair, c.seen, c.looked = cert, key, &pair, seen, time.Now()
	return nil
}

// Get returns the certificate for a handshake, for [tls.Config.GetCertificate]. A pair that
// cannot be used, as when one file of it was replaced and the other not yet, leaves the one
// before in force; the log says so once.
func (c *Certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < certificateEvery {
		return c.pair, nil
	}
	c.looked = time.Now()
	seen := [2]fileState{stateOf(c.cert), stateOf(c.key)}
	if seen[0].same(c.seen[0]) && seen[1].same(c.seen[1]) {
		return c.pair, nil
	}
	c.seen = seen
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		c.log.Error("the new certificate cannot be used; the one before stays in force", "cert", c.cert, "expires", expiry(c.pair), "cause", err.Error())
		return c.pair, nil
	}
	c.pair = &pair
	c.log.Warn("the certificate was replaced", "cert", c.cert, "expires", expiry(c.pair))
	return c.pair, nil
}

func expiry(pair *tls.Certificate) string {
	if pair.Leaf == nil {
		return "unknown"
	}
	return pair.Leaf.NotAfter.UTC().Format(time.RFC3339)
}
