package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

const maxResident = 256 // MB, of pattern_extractor on a large log

// patterns is table P: a plugin of the project on a log of 200 MB.
func patterns(ctx context.Context, l *lab) ([]table, error) {
	if l.python == nil {
		return nil, nil
	}
	size := 200_000_000
	if l.quick {
		size = 10_000_000
	}
	log, err := l.generateLog(ctx, size)
	if err != nil {
		return nil, err
	}
	defer os.Remove(log)
	folder, err := filepath.Abs(patternExtractor)
	if err != nil {
		return nil, err
	}
	op := &plugin.Operation{Name: "pattern_extractor", Kind: plugin.Tool, Timeout: 10 * time.Minute}
	m := &plugin.Manifest{
		Name: "pattern_extractor", Version: "1.0.0", Isolation: plugin.IsolationCall,
		Runner:     plugin.Runner{Kind: "process", Entry: filepath.Join(folder, "plugin.py"), Protocol: protocol.Version2},
		Operations: []*plugin.Operation{op},
	}
	input, err := json.Marshal(map[string]any{"artifacts": []any{map[string]string{"path": log}}})
	if err != nil {
		return nil, err
	}
	r := l.runner(process.Options{})
	defer r.Close()
	ctx, cancel := context.WithTimeout(ctx, op.Timeout)
	defer cancel()

	peak := watchChildren()
	begin := time.Now()
	res, err := r.Run(ctx, &plugin.Target{Manifest: m, Operation: op}, newCall(input), nil)
	seconds := time.Since(begin).Seconds()
	resident := peak()
	if err != nil {
		return nil, err
	}
	var found struct {
		Totals struct {
			Bytes     int `json:"bytes"`
			Lines     int `json:"lines"`
			Templates int `json:"templates"`
		} `json:"totals"`
	}
	if err := json.Unmarshal(res.Data, &found); err != nil {
		return nil, err
	}
	if found.Totals.Bytes != size {
		return nil, fmt.Errorf("pattern_extractor read %d bytes of %d", found.Totals.Bytes, size)
	}
	mb := float64(size) / 1e6
	return []table{{
		Title: fmt.Sprintf("P. pattern_extractor on a log of %.0f MB, %d lines, %d templates", mb, found.Totals.Lines, found.Totals.Templates),
		Unit:  "figure",
		Rows: []row{
			judged("seconds", seconds, 0, target{}),
			judged("MB/s", mb/seconds, 0, target{}),
			judged("MB resident at the peak, plugin process", resident, 0, atMost(maxResident)),
		},
	}}, nil
}

// generateLog writes a log of size bytes, the same every time.
func (l *lab) generateLog(ctx context.Context, size int) (string, error) {
	f, err := os.Create(filepath.Join(l.dir, "mixed.log"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	cmd := exec.CommandContext(ctx, l.python[0], filepath.Join(patternExtractor, "tests", "generate_log.py"),
		"--bytes", strconv.Itoa(size), "--seed", "1")
	cmd.Stdout, cmd.Stderr = f, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("generate_log.py: %w", err)
	}
	return f.Name(), f.Close()
}

// watchChildren looks at the children of this process until the returned
// function is called, which returns the largest peak that one had, in MB.
func watchChildren() (stop func() float64) {
	quit, peak := make(chan struct{}), make(chan float64)
	go func() {
		largest := 0.0
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				peak <- largest
				return
			case <-ticker.C:
				for _, pid := range children() {
					largest = max(largest, highWater(pid))
				}
			}
		}
	}()
	return func() float64 { close(quit); return <-peak }
}

// children returns the processes that threads of this one have started.
func children() (pids []string) {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		raw, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, pid := range bytes.Fields(raw) {
			pids = append(pids, string(pid))
		}
	}
	return pids
}

// highWater returns VmHWM of a process in MB, 0 where it has ended.
func highWater(pid string) float64 {
	raw, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(raw, []byte("VmHWM:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseFloat(string(fields[0]), 64)
	return kib * 1024 / 1e6
}
