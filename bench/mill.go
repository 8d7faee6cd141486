package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

const millLines = 100_000

// A millTool is an Event Mill tool, and what it is asked.
type millTool struct {
	does  string
	tree  string        // of the package
	name  string        // its directory in there is log_analysis/NAME
	input func() string // each has other bytes, or makes a result of others, so that each result is stored as a new one
	count string        // of the result: what says that it read the whole log
	least int
	heavy bool // seconds for each
}

// requests counts those there were.
var requests atomic.Int64

var (
	searching = millTool{"text search", "testdata/plugins", "line_search", func() string {
		return fmt.Sprintf(`{"pattern":"Failed password","limit":20,"title":"search %d"}`, requests.Add(1))
	}, "matches", millLines / 10, false}
	profiling = millTool{"event_source_profiler", "../plugins", "event_source_profiler", func() string {
		return fmt.Sprintf(`{"gap_seconds":%d}`, 300+requests.Add(1))
	}, "totals.records", millLines, true}
)

// mills is table E: an Event Mill tool in Python over a log of 100,000 lines, in
// a plain interpreter and through a whole host.
func mills(ctx context.Context, l *lab) ([]table, error) {
	if l.python == nil {
		return nil, nil
	}
	log, err := l.accessLog()
	if err != nil {
		return nil, err
	}
	defer os.Remove(log)
	light, err := l.millLatency(ctx, "E1", searching, log)
	if err != nil {
		return nil, err
	}
	shipped, err := l.millLatency(ctx, "E1b", profiling, log)
	if err != nil {
		return nil, err
	}
	two, err := l.millThroughput(ctx, log)
	return []table{light, shipped, two}, err
}

// A searcher runs a tool over the log once, and says how long that took.
type searcher struct {
	name   string
	search func(ctx context.Context) (time.Duration, error)
	target target
	close  func() error
}

// millLatency is E1. Both take turns of a few calls in an order that is reversed each
// time, and are reopened a few times, since where a process lies in memory is chance.
func (l *lab) millLatency(ctx context.Context, number string, tool millTool, log string) (table, error) {
	pairs, n, turn := 4, 6, 5
	if tool.heavy {
		pairs, n, turn = 4, 5, 1
	}
	if l.quick {
		pairs, n, turn = 1, 2, 2
	}
	t := table{Title: fmt.Sprintf("%s. Event Mill tool in Python, %s over %d lines, one caller, unpinned", number, tool.does, millLines), Unit: "p50 ms"}
	var r rounds
	var all []*searcher
	for range pairs {
		one, those, err := l.millRounds(ctx, tool, log, n, turn)
		if err != nil {
			return t, err
		}
		r, all = append(r, one...), those
	}
	for i, s := range all {
		figure, ratio := r.median(i)
		t.Rows = append(t.Rows, judged(s.name, figure, ratio, s.target))
	}
	return t, nil
}

func (l *lab) millRounds(ctx context.Context, tool millTool, log string, n, turn int) (r rounds, all []*searcher, err error) {
	defer func() { err = errors.Join(err, closeSearchers(all)) }()
	floor, err := l.plainSearcher(ctx, tool, log)
	if err != nil {
		return nil, nil, err
	}
	all = append(all, floor)
	hosted, err := l.hostedSearchers(ctx, tool, log, 1)
	if err != nil {
		return nil, all, err
	}
	hosted[0].target = atMostRatio(1.05)
	all = append(all, hosted...)
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	for range n {
		round := make([]float64, len(all))
		for _, i := range order {
			took := make([]time.Duration, turn)
			for k := range took {
				if took[k], err = all[i].search(ctx); err != nil {
					return nil, all, fmt.Errorf("%s: %w", all[i].name, err)
				}
			}
			round[i] = p50(took, time.Millisecond)
		}
		r = append(r, round)
		slices.Reverse(order)
	}
	return r, all, nil
}

// millThroughput is E2: what two cores give two sessions, beside what they give
// two interpreters without a host.
func (l *lab) millThroughput(ctx context.Context, log string) (table, error) {
	t := table{Title: "E2. The same, one and two at a time (x one session)", Unit: "calls/s"}
	n, turn := 10, 2*time.Second
	if l.quick {
		n, turn = 1, 300*time.Millisecond
	}
	hosted, err := l.hostedSearchers(ctx, searching, log, 2)
	if err != nil {
		return t, err
	}
	defer closeSearchers(hosted)
	var plain []*searcher
	defer func() { _ = closeSearchers(plain) }()
	for range 2 {
		s, err := l.plainSearcher(ctx, searching, log)
		if err != nil {
			return t, err
		}
		plain = append(plain, s)
	}
	contestants := []struct {
		name   string
		of     []*searcher
		target target
	}{
		{"one session of the host", hosted[:1], target{}},
		{"two sessions at once", hosted, atLeastRatio(1.8)},
		{"one plain python3", plain[:1], target{}},
		{"two plain python3 at once", plain, target{}},
	}
	order := []int{0, 1, 2, 3}
	var r rounds
	for range n {
		round := make([]float64, len(contestants))
		for _, i := range order {
			if round[i], err = searchRate(ctx, contestants[i].of, turn); err != nil {
				return t, fmt.Errorf("%s: %w", contestants[i].name, err)
			}
		}
		r = append(r, round)
		slices.Reverse(order)
	}
	for i, c := range contestants {
		figure, ratio := r.median(i)
		t.Rows = append(t.Rows, judged(c.name, figure, ratio, c.target))
	}
	return t, nil
}

// searchRate has each searcher make one call after another for a while, all at
// the same time, and returns how many calls a second there were.
func searchRate(ctx context.Context, of []*searcher, turn time.Duration) (float64, error) {
	rates, errs := make([]float64, len(of)), make([]error, len(of))
	var all sync.WaitGroup
	for i, s := range of {
		all.Go(func() {
			begin, calls := time.Now(), 0
			for time.Since(begin) < turn {
				if _, errs[i] = s.search(ctx); errs[i] != nil {
					return
				}
				calls++
			}
			rates[i] = float64(calls) / time.Since(begin).Seconds()
		})
	}
	all.Wait()
	sum := 0.0
	for _, rate := range rates {
		sum += rate
	}
	return sum, errors.Join(errs...)
}

func closeSearchers(all []*searcher) error {
	var errs []error
	for _, s := range all {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// plainSearcher is the tool's class in an interpreter that has the framework's
// modules on its path and nothing else. It times itself, so that the pipe does
// not count.
func (l *lab) plainSearcher(ctx context.Context, tool millTool, log string) (*searcher, error) {
	folder, err := filepath.Abs(filepath.Join(tool.tree, "log_analysis", tool.name))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, l.python[0], "-I", "-X", "pycache_prefix="+filepath.Join(l.dir, "pycache"),
		filepath.Join(programs, "mill.py"), filepath.Join(l.dir, "python", "eventmill"), folder, log, tool.count)
	cmd.Stderr = os.Stderr
	to, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	from := bufio.NewReader(out)
	s := &searcher{
		name: "floor: the class in a plain python3",
		search: func(context.Context) (took time.Duration, err error) {
			if _, err := io.WriteString(to, tool.input()+"\n"); err != nil {
				return 0, err
			}
			count := 0
			if _, err := fmt.Fscanln(from, &took, &count); err != nil {
				return 0, err
			}
			return took, tool.enough(count)
		},
		close: func() error { return errors.Join(to.Close(), cmd.Wait()) },
	}
	return s, warmed(ctx, s)
}

// hostedSearchers are sessions of one host, each with the log as its artifact
// and an interpreter of its own in a full cage. What is timed is the whole call:
// judged, run, its result saved as an artifact, recorded.
func (l *lab) hostedSearchers(ctx context.Context, tool millTool, log string, sessions int) (all []*searcher, err error) {
	a, err := l.cagedHost(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	folder, err := filepath.Abs(tool.tree)
	if err != nil {
		return nil, err
	}
	if _, err := a.Registry.Register(ctx, folder, registry.RegisterOptions{Enable: true}); err != nil {
		return nil, err
	}
	for i := range sessions {
		opened, err := a.Sessions.Create(ctx, "local", session.Open{Pillar: "log_analysis"})
		if err != nil {
			return nil, err
		}
		if _, err := a.Sessions.AddFile(ctx, "local", opened.ID, log, session.Add{Name: "auth.log"}); err != nil {
			return nil, err
		}
		request := *newCall(nil)
		request.ID, request.Operation, request.Session, request.Fresh = "", tool.name, opened.ID, true
		request.Principal.Scopes = []string{"*"}
		s := &searcher{
			name: "the same through the host, in a session, fully caged",
			search: func(ctx context.Context) (time.Duration, error) {
				request := request
				request.Input = []byte(tool.input())
				begin := time.Now()
				res, err := a.Kernel.Call(ctx, request)
				took := time.Since(begin)
				if err != nil {
					return 0, err
				}
				count, err := tool.counted(res.Data)
				return took, errors.Join(err, tool.enough(count), saved(res))
			},
			close: func() error { return nil },
		}
		if i == 0 {
			s.close = a.Close
		}
		if err := warmed(ctx, s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// cagedHost is a host that runs plugins in a full cage or not at all.
func (l *lab) cagedHost(ctx context.Context) (*app.App, error) {
	home, err := os.MkdirTemp(l.dir, "home-")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(home, config.FileName), []byte("sandbox: required\n"), 0o600); err != nil {
		return nil, err
	}
	return app.Open(ctx, app.Options{Home: home, Log: slog.New(slog.DiscardHandler)})
}

// counted returns the number of a result that says how much was read.
func (t millTool) counted(data []byte) (count int, err error) {
	for name := range strings.SplitSeq(t.count, ".") {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(data, &members); err != nil {
			return 0, err
		}
		data = members[name]
	}
	return count, json.Unmarshal(data, &count)
}

// enough reports a result of less than the whole log.
func (t millTool) enough(count int) error {
	if count < t.least || count > millLines {
		return fmt.Errorf("%s says %d of a log of %d lines", t.name, count, millLines)
	}
	return nil
}

// saved reports a call whose result is in no artifact, which is not the work
// that is to be measured.
func saved(res plugin.Result) error {
	if len(res.Artifacts) != 1 {
		return fmt.Errorf("the result was saved as %d artifacts", len(res.Artifacts))
	}
	return nil
}

func warmed(ctx context.Context, s *searcher) error {
	for range 2 {
		if _, err := s.search(ctx); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", s.name, err), s.close())
		}
	}
	return nil
}

// accessLog writes a log of sshd and a firewall, the same every time, about 10 MB.
func (l *lab) accessLog() (string, error) {
	const begin = 1773446400 // 2026-03-14
	random := rand.New(rand.NewPCG(1, 2))
	users := []string{"root", "admin", "alice", "backup", "deploy", "oracle"}
	var text strings.Builder
	for i := range millLines {
		at := time.Unix(begin+int64(i)*86400/millLines, 0).UTC().Format(time.RFC3339)
		address := fmt.Sprintf("203.0.113.%d", random.IntN(250))
		port := 1024 + random.IntN(64000)
		switch user := users[random.IntN(len(users))]; random.IntN(8) {
		case 0:
			fmt.Fprintf(&text, "%s gw3 sshd[%d]: Failed password for invalid user %s from %s port %d ssh2\n", at, port, user, address, port)
		case 1:
			fmt.Fprintf(&text, "%s gw3 sshd[%d]: Accepted publickey for %s from %s port %d ssh2: ED25519\n", at, port, user, address, port)
		case 2:
			fmt.Fprintf(&text, "%s gw3 kernel: DROP in=eth0 src=%s dst=198.51.100.7 proto=TCP spt=%d dpt=22\n", at, address, port)
		default:
			fmt.Fprintf(&text, "%s gw3 nginx: %s \"GET /account/%d HTTP/1.1\" 200 %d \"https://www.example.com/\"\n", at, address, port, 100*port)
		}
	}
	path := l.program("auth.log")
	return path, os.WriteFile(path, []byte(text.String()), 0o644)
}
