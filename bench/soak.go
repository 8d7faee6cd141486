package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/service/session"
)

// What a soak is made of.
const (
	soakPlugins  = 200 // registered
	soakCalled   = 20  // of these, called
	soakSessions = 50
	soakRows     = 20   // of the table
	soakFlat     = 1.10 // what memory may grow to over the last half
)

// soak makes so many calls of a host, in rows, and prints the resident memory of the host after
// each. It fails where memory grows by more than a tenth over the last half.
func soak(ctx context.Context, l *lab, calls int) error {
	a, err := l.soakHost(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	var sessions []string
	for range soakSessions {
		opened, err := a.Sessions.Create(ctx, "local", session.Open{Pillar: "log_analysis"})
		if err != nil {
			return err
		}
		sessions = append(sessions, opened.ID)
	}
	fmt.Printf("%d calls, %d plugins registered, %d of them called, %d sessions, %d callers\n\n", calls, soakPlugins, soakCalled, soakSessions, callers)
	fmt.Printf("%12s %14s %12s %12s %12s\n", "calls", "calls/s", "resident MB", "heap MB", "goroutines")
	var resident []float64
	for row := range soakRows {
		begin := time.Now()
		if err := soakRow(ctx, a, sessions, row*calls/soakRows, (row+1)*calls/soakRows); err != nil {
			return err
		}
		took := time.Since(begin)
		if err := a.Ledger.Flush(ctx); err != nil {
			return err
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		rss, err := residentMB()
		if err != nil {
			return err
		}
		resident = append(resident, rss)
		fmt.Printf("%12d %14.0f %12.1f %12.1f %12d\n", (row+1)*calls/soakRows, float64(calls/soakRows)/took.Seconds(), rss, float64(m.HeapAlloc)/(1<<20), runtime.NumGoroutine())
	}
	half := resident[soakRows/2-1:]
	least, most := half[0], half[0]
	for _, one := range half {
		least, most = min(least, one), max(most, one)
	}
	fmt.Printf("\nover the last half: %.1f to %.1f MB, %.2fx\n", least, most, most/least)
	if half[len(half)-1] > half[0]*soakFlat {
		return fmt.Errorf("resident memory grew from %.1f to %.1f MB over the last half", half[0], half[len(half)-1])
	}
	return nil
}

// soakRow makes the calls from first to last. One in four is in a session; none is answered
// from the cache.
func soakRow(ctx context.Context, a *app.App, sessions []string, first, last int) error {
	var next atomic.Int64
	next.Store(int64(first))
	var mu sync.Mutex
	var failed error
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= last {
					return
				}
				request := *newCall([]byte(`{"n":"` + strconv.Itoa(n) + `"}`))
				request.ID, request.Operation, request.Fresh = "", fmt.Sprintf("bench.echo%d", n%soakCalled), true
				if n%4 == 0 {
					request.Session = sessions[n/4%len(sessions)]
				}
				if _, err := a.Kernel.Call(ctx, request); err != nil {
					mu.Lock()
					failed = errors.Join(failed, fmt.Errorf("call %d: %w", n, err))
					mu.Unlock()
					return
				}
			}
		})
	}
	all.Wait()
	return failed
}

// soakHost is a host with many plugins.
func (l *lab) soakHost(ctx context.Context) (*app.App, error) {
	a, err := l.host(ctx)
	if err != nil {
		return nil, err
	}
	for i := range soakPlugins - 1 {
		dir := filepath.Join(l.dir, fmt.Sprintf("soak-%d", i))
		name := fmt.Sprintf("bench.echo%d", i)
		manifest := strings.NewReplacer("name: bench.echo", "name: "+name, "[./echo]", "[./echo, -name, "+name+"]").Replace(hostManifest)
		err := errors.Join(os.Mkdir(dir, 0o755), os.Link(l.program("echo"), filepath.Join(dir, "echo")), os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(manifest), 0o644))
		if err == nil {
			_, err = a.Registry.Register(ctx, dir, registry.RegisterOptions{Enable: true})
		}
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	return a, nil
}

// residentMB returns the resident memory of this process.
func residentMB() (float64, error) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kb / 1024, err
		}
	}
	return 0, errors.New("/proc/self/status has no VmRSS")
}
