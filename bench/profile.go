package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// profileWarm writes CPU profiles of the Go plugin's warm calls, through the runner and through
// the whole kernel, by one caller pinned to one core and by 16 unpinned, and with inside those of
// the plugin as well. Each is made by a copy of this program, so that none sees another.
//
//	go tool pprof -top profiles/host-16.pprof
func profileWarm(ctx context.Context, l *lab, dir string, inside bool) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, n := range []int{1, callers} {
		cmd := exec.CommandContext(ctx, self, "role-profile", l.dir, fmt.Sprint(l.quick), dir, strconv.Itoa(n), fmt.Sprint(inside))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		start := cmd.Start
		if n == 1 {
			start = func() error { return pinned(cmd.Start) }
		}
		if err := start(); err != nil {
			return err
		}
		if err := cmd.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// profileRole is that copy.
func profileRole(args []string) error {
	ctx := context.Background()
	l, err := openLab(ctx, args[0], args[1] == "true")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	entry := l.program("echo")
	if args[4] == "true" {
		entry += " -cpuprofile " + filepath.Join(args[2], fmt.Sprintf("plugin-%d.pprof", n))
	}
	r := l.runner(process.Options{})
	defer r.Close()
	operation, request := echo(entry, protocol.Version2, plugin.IsolationTenant), newCall(payload())
	call := func(ctx context.Context) error { _, err := r.Run(ctx, operation, request, nil); return err }
	if err := call(ctx); err != nil {
		return err
	}
	if err := l.profileCalls(ctx, call, n, filepath.Join(args[2], fmt.Sprintf("host-%d.pprof", n))); err != nil {
		return err
	}
	if err := l.profileKernel(ctx, n, filepath.Join(args[2], fmt.Sprintf("kernel-%d.pprof", n))); err != nil {
		return err
	}
	if args[4] != "true" {
		return nil
	}
	stop := *operation
	stop.Operation = &plugin.Operation{Name: "profiled", Kind: plugin.Tool}
	_, err = r.Run(ctx, &stop, request, nil)
	return err
}

// profileKernel profiles a whole host that calls the same plugin.
func (l *lab) profileKernel(ctx context.Context, n int, file string) error {
	c, err := kernelContestant(ctx, l)
	if err != nil {
		return err
	}
	defer c.close()
	return l.profileCalls(ctx, c.call, n, file)
}

func (l *lab) profileCalls(ctx context.Context, call func(context.Context) error, n int, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, turn := l.length()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := pprof.StartCPUProfile(f); err != nil {
		return errors.Join(err, f.Close())
	}
	calls := 0.0
	for range 20 {
		rate, err := throughput(ctx, n, turn, call)
		if err != nil {
			pprof.StopCPUProfile()
			return errors.Join(err, f.Close())
		}
		calls += rate * turn.Seconds()
	}
	pprof.StopCPUProfile()
	runtime.ReadMemStats(&after)
	if err := profileAllocations(ctx, call, strings.TrimSuffix(file, ".pprof")+"-allocs.pprof"); err != nil {
		return errors.Join(err, f.Close())
	}
	fmt.Printf("%2d callers: %6.0f calls/s; the host allocates %.1f times and %.0f bytes a call; %s\n", n, calls/(20*turn.Seconds()),
		float64(after.Mallocs-before.Mallocs)/calls, float64(after.TotalAlloc-before.TotalAlloc)/calls, file)
	return f.Close()
}

// profileAllocations writes where 2,000 calls allocate, each allocation of them.
func profileAllocations(ctx context.Context, call func(context.Context) error, file string) error {
	before := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	defer func() { runtime.MemProfileRate = before }()
	for range 2000 {
		if err := call(ctx); err != nil {
			return err
		}
	}
	time.Sleep(200 * time.Millisecond) // what is written behind
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
