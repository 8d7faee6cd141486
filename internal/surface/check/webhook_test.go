package check_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/check"
)

// A remote plugin is judged by its manifest alone: a check sends it no request.
func TestAWebhookIsNotCalled(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var called atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			called.Add(1)
			conn.Close()
		}
	}()
	dir := t.TempDir()
	files := map[string]string{
		"audit/manifest.yaml": `name: audit
version: 1.0.0
owner: test
description: Hears of what agents do.
runner: {kind: webhook, url: "http://hooks.example.com/", secret: signing}
hooks:
  - {event: tool.after@v1}
  - {event: schedule.fired@v1, failure_mode: fail}
`,
		"mortise.yaml": fmt.Sprintf("egress: {loopback: [audit], map: {hooks.example.com: %q}}\n", l.Addr()),
	}
	if err := os.Mkdir(filepath.Join(dir, "audit"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report, err := check.Run(t.Context(), filepath.Join(dir, "audit"), check.Options{Config: filepath.Join(dir, "mortise.yaml")})
	if err != nil || len(report.Results) == 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	for _, r := range report.Results {
		if r.Outcome == check.Fail {
			t.Errorf("%+v", r)
		}
	}
	l.Close()
	<-ended
	if n := called.Load(); n != 0 {
		t.Errorf("it was called %d times", n)
	}
}
