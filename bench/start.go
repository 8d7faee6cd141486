package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// starts is table G: commands from their start to their end, and the size of the program.
func starts(ctx context.Context, l *lab) (tables []table, err error) {
	h, err := startHost(ctx, l, false, "")
	if h.end != nil {
		defer h.end()
	}
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp(l.dir, "g")
	if err != nil {
		return nil, err
	}
	mortise, err := filepath.Abs("../bin/mortise")
	if err != nil {
		return nil, err
	}
	input := string(payload())
	all := []struct {
		name   string
		target target
		args   []string
	}{
		{"floor: fork + exec of an empty Go binary", target{}, []string{l.program("empty")}},
		{"mortise version", atMost(15), []string{mortise, "version"}},
		{"mortise plugins list, embedded", atMost(60), []string{mortise, "--home", home, "plugins", "list"}},
		{"mortise plugins list, by a host that serves", target{}, []string{mortise, "--home", h.home, "plugins", "list"}},
		{"mortise run of a warm tool, by a host that serves", atMost(40), []string{mortise, "--home", h.home, "run", "web_go/echo", "--input", input}},
	}
	n := 31
	if l.quick {
		n = 3
	}
	var r rounds
	for i := range n + 1 {
		var round []float64
		for _, c := range all {
			cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
			begin := time.Now()
			out, err := cmd.CombinedOutput()
			if err != nil {
				return nil, fmt.Errorf("%s: %w: %s", c.name, err, out)
			}
			round = append(round, float64(time.Since(begin))/float64(time.Millisecond))
		}
		if i > 0 { // the first makes the data directory, and starts the tool
			r = append(r, round)
		}
	}
	t := table{Title: "G1. Commands from start to end", Unit: "p50 ms"}
	for i, c := range all {
		figure, ratio := r.median(i)
		t.Rows = append(t.Rows, judged(c.name, figure, ratio, c.target))
	}
	size := table{Title: "G2. Size", Unit: "MB"}
	for i, name := range []string{l.program("empty"), mortise} {
		about, statErr := os.Stat(name)
		if err = errors.Join(err, statErr); statErr != nil {
			continue
		}
		mb := float64(about.Size()) / 1e6
		if i == 0 {
			size.Rows = append(size.Rows, row{Name: "an empty Go binary, not stripped", Figure: mb})
		} else {
			size.Rows = append(size.Rows, judged("mortise", mb, 0, atMost(75)))
		}
	}
	return []table{t, size}, err
}
