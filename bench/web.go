package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/surface/cli"
)

// connections are how many the load has at a time, in the tables of H.
var connections = []int{1, 16, 64}

// web is table H: a call over HTTP, by a host that is a process of its own.
func web(ctx context.Context, l *lab) (tables []table, err error) {
	all, absent, closeAll, err := openWeb(ctx, l)
	defer closeAll()
	if err != nil {
		return nil, err
	}
	n, turn := 7, time.Second
	if l.quick {
		n, turn = 1, 200*time.Millisecond
	}
	for _, c := range all { // warm, and right
		for range 3 {
			if _, err := c.load(ctx, 16, 100*time.Millisecond); err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	for _, at := range connections {
		var r rounds
		for range n {
			var round []float64
			for _, c := range all {
				rate, err := c.load(ctx, at, turn)
				if err != nil {
					return tables, fmt.Errorf("%s: %w", c.name, err)
				}
				round = append(round, rate)
			}
			r = append(r, round)
		}
		t := table{Title: fmt.Sprintf("H. Over HTTP, %d connections, 1 KB each way; the load shares the cores", at), Unit: "calls/s", Absent: absent}
		for i, c := range all {
			figure, ratio := r.median(i)
			t.Rows = append(t.Rows, judged(c.name, figure, ratio, c.targets[at]))
		}
		tables = append(tables, t)
	}
	t, err := collected(ctx, l, n, turn)
	return append(tables, t), err
}

// collected is table H4: how long the slowest calls take where each is traced and the
// collector answers, where it takes connections and never answers, and where none is.
func collected(ctx context.Context, l *lab, n int, turn time.Duration) (t table, err error) {
	dead, err := net.Listen("tcp", "127.0.0.1:0") // nothing reads from it
	if err != nil {
		return t, err
	}
	defer dead.Close()
	self, err := os.Executable()
	if err != nil {
		return t, err
	}
	alive, end, err := startSite(ctx, exec.CommandContext(ctx, self, "role-http", "nothing"), "listening on ")
	if err != nil {
		return t, err
	}
	defer end()
	var all []*site
	for _, c := range []struct{ name, traces string }{
		{"floor: a tool in Go, its traces taken", alive}, {"its traces to a collector that does not answer", dead.Addr().String()}, {"no traces", ""},
	} {
		more := ""
		if c.traces != "" {
			more = "telemetry: {traces: 'http://" + c.traces + "'}\n"
		}
		h, err := startHost(ctx, l, false, more)
		if err != nil {
			return t, err
		}
		defer h.end()
		s := siteAt(c.name, h.address, "/api/v1/operations/web_go/echo:execute", h.token, append(append([]byte(`{"input":`), payload()...), '}'), false)
		s.timed = true
		all = append(all, s)
	}
	all[1].targets[16] = atMostRatio(1.1)
	var r rounds
	for i := range n + 2 {
		var round []float64
		for _, s := range all {
			if _, err := s.load(ctx, 16, turn); err != nil {
				return t, fmt.Errorf("%s: %w", s.name, err)
			}
			slices.Sort(s.took)
			round = append(round, float64(s.took[len(s.took)*99/100].Microseconds())/1000)
			s.took = nil
		}
		if i >= 2 { // warm
			r = append(r, round)
		}
	}
	t = table{Title: "H4. Over HTTP, 16 connections: of 100 calls, the slowest", Unit: "ms, p99"}
	for i, s := range all {
		figure, ratio := r.median(i)
		t.Rows = append(t.Rows, judged(s.name, figure, ratio, s.targets[16]))
	}
	return t, nil
}

// A site is something that answers over HTTP.
type site struct {
	name    string
	address string
	head    string // the request up to its length; %s is a key, where it has one
	body    []byte
	keyed   bool
	targets map[int]target

	says  []byte // what each answer has in it
	timed bool   // how long each request took is kept
	mu    sync.Mutex
	took  []time.Duration
}

// load sends requests over so many connections, one after another on each, for as long as a
// turn is, and returns how many were answered in a second. An answer that is not 200 ends it.
func (s *site) load(ctx context.Context, connections int, turn time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, turn+time.Minute)
	defer cancel()
	var all sync.WaitGroup
	var answered atomic.Int64
	failed := make(chan error, connections)
	begin := time.Now()
	end := begin.Add(turn)
	for range connections {
		all.Go(func() {
			n, err := s.send(ctx, end)
			answered.Add(n)
			if err != nil {
				failed <- err
			}
		})
	}
	all.Wait()
	took := time.Since(begin)
	select {
	case err := <-failed:
		return 0, err
	default:
		return float64(answered.Load()) / took.Seconds(), nil
	}
}

var keys atomic.Int64

// send sends requests over one connection.
func (s *site) send(ctx context.Context, end time.Time) (n int64, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 16<<10)
	var out bytes.Buffer
	var took []time.Duration
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.took = append(s.took, took...)
	}()
	for time.Now().Before(end) {
		begin := time.Now()
		out.Reset()
		if s.keyed {
			fmt.Fprintf(&out, s.head, keys.Add(1))
		} else {
			out.WriteString(s.head)
		}
		out.Write(s.body)
		if _, err := conn.Write(out.Bytes()); err != nil {
			return n, err
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return n, err
		}
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
			return n, fmt.Errorf("%s: %s", resp.Status, text)
		}
		if len(s.says) == 0 {
			_, err = io.Copy(io.Discard, resp.Body)
		} else if text, all := io.ReadAll(resp.Body); all != nil || !bytes.Contains(text, s.says) {
			err = errors.Join(all, fmt.Errorf("it answered %.500s", text))
		}
		if err != nil {
			return n, err
		}
		if n++; s.timed {
			took = append(took, time.Since(begin))
		}
	}
	return n, nil
}

func siteAt(name, address, path, token string, body []byte, keyed bool) *site {
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, address, len(body))
	if token != "" {
		head += "Authorization: Bearer " + token + "\r\n"
	}
	if keyed {
		head = strings.ReplaceAll(head, "%", "%%") + "Idempotency-Key: bench-%d\r\n"
	}
	return &site{name: name, address: address, head: head + "\r\n", body: body, keyed: keyed, targets: map[int]target{}}
}

// inputSchema describes the payload.
func inputSchema() string {
	properties, required := map[string]any{}, []string{}
	for i := range 20 {
		name := fmt.Sprintf("property_%c", 'a'+i)
		properties[name] = map[string]any{"type": "string", "maxLength": 100}
		required = append(required, name)
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false})
	if err != nil {
		panic(err) // it is the same each time
	}
	return string(raw)
}

// openWeb starts all that answer. The first is the floor.
func openWeb(ctx context.Context, l *lab) (all []*site, absent []string, closeAll func(), err error) {
	var ends []func()
	closeAll = func() {
		for _, end := range ends {
			end()
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, closeAll, err
	}
	body := payload()
	for _, floor := range []struct{ name, how string }{{"floor: net/http, the bytes back", "bytes"}, {"net/http, decoded to a map and encoded", "decode"}} {
		address, end, err := startSite(ctx, exec.CommandContext(ctx, self, "role-http", floor.how), "listening on ")
		if err != nil {
			return nil, nil, closeAll, err
		}
		ends = append(ends, end)
		all = append(all, siteAt(floor.name, address, "/", "", body, false))
	}
	call := append(append([]byte(`{"input":`), body...), '}')
	for _, durable := range []bool{false, true} {
		h, err := startHost(ctx, l, durable, "")
		if err != nil {
			return nil, nil, closeAll, err
		}
		ends = append(ends, h.end)
		entry, share := "its entry behind", 0.3
		if durable {
			entry, share = "its entry on the disk first", 0.25
		}
		for _, plugin := range []string{"Go", "Python"} {
			if plugin == "Python" && l.python == nil {
				absent = append(absent, "a tool in Python: there is no python3")
				continue
			}
			s := siteAt("Mortise: a tool in "+plugin+", "+entry, h.address, "/api/v1/operations/web_"+strings.ToLower(plugin)+"/echo:execute", h.token, call, false)
			if plugin == "Go" {
				s.targets[16] = atLeastRatio(share)
				if !durable {
					s.targets[1] = atLeastRatio(0.15)
				}
			}
			all = append(all, s)
		}
		if !durable {
			s := siteAt("Mortise: an operator in Go with a key, two commits", h.address, "/api/v1/operations/web_go/apply:execute", h.token, call, true)
			s.targets[1], s.targets[16] = atLeastRatio(0.06), atLeastRatio(0.10)
			all = append(all, s)
		}
	}
	peer, end, err := startPeer(ctx)
	if err != nil {
		return all, append(absent, "FastAPI on uvicorn: "+err.Error()), closeAll, nil
	}
	ends = append(ends, end)
	return append(all, siteAt("FastAPI on uvicorn, jsonschema, the tool inside, nothing recorded", peer, "/", "", body, false)), absent, closeAll, nil
}

// startSite starts a program that says, in a line of its standard error, where it listens.
func startSite(ctx context.Context, cmd *exec.Cmd, says string) (address string, end func(), err error) {
	errs, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}
	said := bufio.NewScanner(errs)
	for said.Scan() {
		if _, at, found := strings.Cut(said.Text(), says); found {
			go func() { _, _ = io.Copy(io.Discard, errs) }()
			return strings.TrimPrefix(at, "http://"), end, nil
		}
	}
	end()
	return "", nil, fmt.Errorf("%s: it does not listen", cmd.Path)
}

// httpRole is a floor: a server that answers what it gets.
func httpRole(args []string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "listening on %s\n", l.Addr())
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if args[0] == "nothing" {
			return
		}
		if err == nil && args[0] == "decode" {
			var all map[string]any
			if err = json.Unmarshal(raw, &all); err == nil {
				raw, err = json.Marshal(all)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(raw)
	}))
}

// A webHost is 'mortise serve' with the plugins.
type webHost struct {
	address, token string
	end            func()

	home string
	pid  int
	run  func(args ...string) (string, error) // a command beside it
}

// startHost starts one with a data directory of its own. more is appended to mortise.yaml.
func startHost(ctx context.Context, l *lab, durable bool, more string) (h webHost, err error) {
	mortise, err := filepath.Abs("../bin/mortise")
	if err == nil {
		_, err = os.Stat(mortise)
	}
	if err != nil {
		return h, errors.Join(err, errors.New("make build makes the host"))
	}
	home, err := os.MkdirTemp(l.dir, "h")
	if err != nil {
		return h, err
	}
	tools := "behind"
	if durable {
		tools = "durable"
	}
	manifest := "name: %s\nversion: 1.0.0\nowner: bench\ndescription: Answers its input.\nrunner: {kind: process, %s}\noperations:\n" +
		"  echo: {kind: tool, description: Answer the input., no_cache: true, input: " + inputSchema() + "}\n"
	files := map[string]string{
		"mortise.yaml": "ledger: {tools: " + tools + "}\nserver: {rate: 1000000, burst: 1000000}\npolicy: {allow: [{kinds: [tool]}, {operations: [web_go], effects: [db_write]}]}\n" + more,
		"web_go/manifest.yaml": fmt.Sprintf(manifest, "web_go", "command: [./web]") +
			"  apply: {kind: operator, description: Answer the input., effects: [db_write], input: " + inputSchema() + "}\n",
		"web_python/manifest.yaml": fmt.Sprintf(manifest, "web_python", "entry: web.py"),
	}
	for name, from := range map[string]string{"web_go/web": l.program("web"), "web_python/web.py": filepath.Join(programs, "web.py")} {
		raw, err := os.ReadFile(from)
		if err != nil {
			return h, err
		}
		files[name] = string(raw)
	}
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
			return h, err
		}
	}
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, mortise, append([]string{"--home", home}, args...)...)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("mortise %s: %w: %s", strings.Join(args, " "), err, errs.String())
		}
		return strings.TrimSpace(string(out)), nil
	}
	for _, name := range []string{"web_go", "web_python"} {
		if name == "web_python" && l.python == nil {
			continue
		}
		if _, err := run("plugins", "register", filepath.Join(home, name)); err != nil {
			return h, err
		}
	}
	if h.token, err = run("tokens", "create", "bench", "--scope", "run"); err != nil {
		return h, err
	}
	serve := exec.CommandContext(ctx, mortise, "--home", home, "serve", "--listen", "127.0.0.1:0")
	if l.profile != "" { // a copy of this program is the host then
		self, err := os.Executable()
		if err != nil {
			return h, err
		}
		serve = exec.CommandContext(ctx, self, append([]string{"role-host", l.profile}, serve.Args[1:]...)...)
	}
	h.address, h.end, err = startSite(ctx, serve, "listening on ")
	h.home, h.run = home, run
	if serve.Process != nil {
		h.pid = serve.Process.Pid
	}
	return h, err
}

// hostRole is a host that writes a profile of its processors' time when it ends.
func hostRole(args []string) error {
	f, err := os.Create(args[0])
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	status := cli.Main(args[1:], os.Stdin, os.Stdout, os.Stderr)
	pprof.StopCPUProfile()
	if err := f.Close(); err != nil || status != 0 {
		return fmt.Errorf("the host ended with %d, %w", status, err)
	}
	return nil
}

// profileWeb writes profiles of the host under load: of a tool, and of an operator with a key.
func profileWeb(ctx context.Context, l *lab, dir string) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return err
	}
	call := append(append([]byte(`{"input":`), payload()...), '}')
	for _, operation := range []string{"echo", "apply"} {
		l.profile = filepath.Join(dir, "http-"+operation+".pprof")
		h, err := startHost(ctx, l, false, "")
		if err != nil {
			return err
		}
		s := siteAt(operation, h.address, "/api/v1/operations/web_go/"+operation+":execute", h.token, call, operation == "apply")
		rate, err := s.load(ctx, callers, 5*time.Second)
		h.end()
		if err != nil {
			return err
		}
		fmt.Printf("%.0f calls/s, %s\n", rate, l.profile)
	}
	return nil
}

// startPeer starts FastAPI, with the interpreter that has it.
func startPeer(ctx context.Context) (address string, end func(), err error) {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, python, "-c", "import fastapi, uvicorn, jsonschema").Run() != nil {
			continue
		}
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, err
		}
		address = free.Addr().String()
		_, port, _ := net.SplitHostPort(address)
		_ = free.Close()
		cmd := exec.CommandContext(ctx, python, filepath.Join(programs, "peer.py"), port, inputSchema())
		if err := cmd.Start(); err != nil {
			return "", nil, err
		}
		end = func() {
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
		}
		for late := time.Now().Add(20 * time.Second); time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
			if conn, err := net.Dial("tcp", address); err == nil {
				_ = conn.Close()
				return address, end, nil
			}
		}
		end()
		return "", nil, errors.New("it does not listen")
	}
	return "", nil, errors.New("no python3 here has fastapi, uvicorn and jsonschema; on Debian they are python3-fastapi, python3-uvicorn and python3-jsonschema")
}
