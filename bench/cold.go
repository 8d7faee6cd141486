package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// A starter makes one call to a plugin that does not run, or stands by.
type starter struct {
	name   string
	call   func(ctx context.Context) error
	settle time.Duration // until what the call leaves behind is over, and a standby is ready
	target target
	close  func()
}

// Enough for what a call left behind to end; a standby has to be up again.
const (
	settleEnd     = 30 * time.Millisecond
	settleStandby = 600 * time.Millisecond
)

// cold is table B: calls that have no process yet.
func cold(ctx context.Context, l *lab) ([]table, error) {
	all := l.starters()
	defer func() {
		for _, s := range all {
			s.close()
		}
	}()
	n := 31
	if l.quick {
		n = 3
	}
	var r rounds
	for i := range n + 1 {
		var round []float64
		for _, s := range all {
			time.Sleep(s.settle)
			begin := time.Now()
			if err := s.call(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			round = append(round, float64(time.Since(begin))/float64(time.Millisecond))
		}
		if i > 0 { // the first reads files and starts the standbys
			r = append(r, round)
		}
	}
	t := table{Title: "B. Cold one-shot call, 1 KB echo, unpinned", Unit: "p50 ms"}
	for i, s := range all {
		figure, ratio := r.median(i)
		t.Rows = append(t.Rows, judged(s.name, figure, ratio, s.target))
	}
	return []table{t}, nil
}

// starters are the contestants of table B, the floor first.
func (l *lab) starters() []*starter {
	all := []*starter{
		{
			name:   "floor: fork + exec of an empty Go binary",
			call:   func(ctx context.Context) error { return exec.CommandContext(ctx, l.program("empty")).Run() },
			settle: settleEnd,
			close:  func() {},
		},
		{
			name:   "the Go plugin's binary, which finds no host and ends",
			call:   func(ctx context.Context) error { return exec.CommandContext(ctx, l.program("echo")).Run() },
			settle: settleEnd,
			close:  func() {},
		},
		l.starter("Go plugin, protocol 1", l.program("echo"), protocol.Version1, false, atMostRatio(1.25)),
		l.starter("Go plugin, protocol 2, scope call", l.program("echo"), protocol.Version2, false, atMostRatio(1.25)),
		l.starter("Go plugin through a standby", l.program("echo"), protocol.Version2, true, atMostRatio(0.5)),
	}
	if l.python != nil {
		all = append(all,
			l.starter("Python plugin through a standby", echoFile("echo.py"), protocol.Version2, true, atMostRatio(0.5)),
			l.starter("Python plugin, cold", echoFile("echo.py"), protocol.Version2, false, target{}))
	}
	if l.node != nil {
		all = append(all,
			l.starter("Node plugin through a standby", l.program("echo.mjs"), protocol.Version2, true, atMostRatio(0.5)),
			l.starter("Node plugin, cold", l.program("echo.mjs"), protocol.Version2, false, target{}))
	}
	for _, transport := range []string{"netrpc", "grpc"} {
		all = append(all, l.hashicorpStarter(transport))
	}
	return all
}

// starter goes through a runner of its own, each call in a process of its own.
func (l *lab) starter(name, entry, version string, standby bool, t target) *starter {
	r := l.runner(process.Options{Standby: standby})
	operation, request := echo(entry, version, plugin.IsolationCall), newCall(payload())
	s := &starter{name: name, settle: settleEnd, target: t, close: func() { _ = r.Close() }}
	if standby {
		s.settle = settleStandby
	}
	s.call = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := r.Run(ctx, operation, request, nil)
		return err
	}
	return s
}

func (l *lab) hashicorpStarter(transport string) *starter {
	in := payload()
	return &starter{
		name:   "HashiCorp go-plugin " + transport + ": start, call, kill",
		settle: settleEnd,
		call: func(context.Context) error {
			client := l.hashicorpClient(transport)
			defer client.Kill()
			e, err := dispense(client)
			if err != nil {
				return err
			}
			_, err = e.Bytes(in)
			return err
		},
		close: func() {},
	}
}
