package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/app"
)

// protocolTables are tables M: a call over the Model Context Protocol, of the host beside a
// server of the SDK alone, and through a mounted server beside the SDK's client alone.
func protocolTables(ctx context.Context, l *lab) ([]table, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	bare, end, err := startSite(ctx, exec.CommandContext(ctx, self, "role-mcp"), "listening on ")
	if err != nil {
		return nil, err
	}
	defer end()
	served, err := servedTables(ctx, l, bare)
	if err != nil {
		return served, err
	}
	mounted, err := mountedTable(ctx, l, bare)
	if err != nil {
		return append(served, mounted), err
	}
	many, err := manyTools(ctx, l)
	return append(served, mounted, many), err
}

// maxTools is how many tools the large server of M3 has.
const maxTools = 5000

// manyTools is table M3: what a mounted server of many tools takes, and how long a list that the
// router chooses from them.
func manyTools(ctx context.Context, l *lab) (t table, err error) {
	self, err := os.Executable()
	if err != nil {
		return t, err
	}
	large, end, err := startSite(ctx, exec.CommandContext(ctx, self, "role-mcp", fmt.Sprint(maxTools)), "listening on ")
	if err != nil {
		return t, err
	}
	defer end()
	h, err := startHost(ctx, l, false, "mcp: {list: routed, for: 'do the thing of number 4711'}\negress: {loopback: [bare]}\n")
	if err != nil {
		return t, err
	}
	defer h.end()
	list := siteAt("tools/list, routed", h.address, "/mcp", h.token, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`), false)
	list.head = list.head[:len(list.head)-2] + "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n\r\n"
	list.timed = true
	if _, err := list.load(ctx, 1, time.Second); err != nil {
		return t, err
	}
	before := highWater(fmt.Sprint(h.pid))
	dir := filepath.Join(h.home, "bare")
	manifest := fmt.Sprintf("name: bare\nversion: 1.0.0\nowner: bench\ndescription: Has many tools.\nrunner: {kind: mcp, url: 'http://%s/'}\n", large)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(manifest), 0o600)); err != nil {
		return t, err
	}
	if _, err := h.run("plugins", "register", dir); err != nil {
		return t, err
	}
	list.took, list.says = nil, []byte("mortise.call_result")
	if _, err := list.load(ctx, 1, time.Second); err != nil { // the router reads them once
		return t, err
	}
	list.took = nil
	if _, err := list.load(ctx, 1, 3*time.Second); err != nil {
		return t, err
	}
	t = table{Title: fmt.Sprintf("M3. A mounted server of %d tools", maxTools), Unit: "ms, MB"}
	t.Rows = append(t.Rows, judged("tools/list, routed: p50 in ms", p50(list.took, time.Millisecond), 0, atMost(20)),
		judged("memory of the host at most, above before, in MB", highWater(fmt.Sprint(h.pid))-before, 0, atMost(64)))
	return t, nil
}

// mcpRole is a server of the SDK with one tool, checked against a schema as the SDK does it, or
// with as many as its argument says.
func mcpRole(args []string) error {
	var schema any
	if err := json.Unmarshal([]byte(inputSchema()), &schema); err != nil {
		return err
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "echo", Description: "Answer the input.", InputSchema: schema}, func(_ context.Context, _ *sdk.CallToolRequest, in map[string]any) (*sdk.CallToolResult, any, error) {
		return nil, in, nil
	})
	if len(args) > 0 {
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		for i := range n {
			schema := map[string]any{"type": "object", "properties": map[string]any{fmt.Sprintf("p%d", i): map[string]any{"type": "string", "description": "What to do it with."}}}
			server.AddTool(&sdk.Tool{Name: fmt.Sprintf("tool_%04d", i), Description: fmt.Sprintf("Does the thing of number %d.", i), InputSchema: schema}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{}, nil
			})
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "listening on %s\n", l.Addr())
	return http.Serve(l, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true}))
}

// servedTables hold the host's /mcp against the bare server.
func servedTables(ctx context.Context, l *lab, bare string) (tables []table, err error) {
	h, err := startHost(ctx, l, false, "mcp: {list: all}\n")
	if err != nil {
		return nil, err
	}
	defer h.end()
	floor, err := toolAt("floor: the Go SDK's server, the tool inside", bare, "/", "", "echo")
	if err != nil {
		return nil, err
	}
	ours, err := toolAt("Mortise: /mcp, a tool in Go, its entry behind", h.address, "/mcp", h.token, "web_go.echo")
	if err != nil {
		return nil, err
	}
	ours.targets[1], ours.targets[16] = atLeastRatio(0.8), atLeastRatio(0.8)
	all := []*site{floor, ours}
	n, turn := 7, time.Second
	if l.quick {
		n, turn = 1, 200*time.Millisecond
	}
	for _, s := range all {
		for range 3 {
			if _, err := s.load(ctx, 16, 100*time.Millisecond); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	for _, at := range []int{1, 16} {
		var r rounds
		for range n {
			var round []float64
			for _, s := range all {
				rate, err := s.load(ctx, at, turn)
				if err != nil {
					return tables, fmt.Errorf("%s: %w", s.name, err)
				}
				round = append(round, rate)
			}
			r = append(r, round)
		}
		t := table{Title: fmt.Sprintf("M1. Over MCP, %d connections, 1 KB each way; the load shares the cores", at), Unit: "calls/s"}
		for i, s := range all {
			figure, ratio := r.median(i)
			t.Rows = append(t.Rows, judged(s.name, figure, ratio, s.targets[at]))
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// toolAt is a tool that is called over the protocol.
func toolAt(name, address, path, token, tool string) (*site, error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": tool, "arguments": json.RawMessage(payload()), "_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": map[string]any{"name": "bench", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		},
	}})
	if err != nil {
		return nil, err
	}
	s := siteAt(name, address, path, token, body, false)
	s.head = s.head[:len(s.head)-2] + "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: " + tool + "\r\n\r\n"
	s.says = []byte("property_a")
	return s, nil
}

// profileProtocol writes a profile of the host under load over the protocol.
func profileProtocol(ctx context.Context, l *lab, dir string) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return err
	}
	l.profile = filepath.Join(dir, "mcp.pprof")
	h, err := startHost(ctx, l, false, "mcp: {list: all}\n")
	if err != nil {
		return err
	}
	s, err := toolAt("echo", h.address, "/mcp", h.token, "web_go.echo")
	if err != nil {
		return err
	}
	rate, err := s.load(ctx, callers, 5*time.Second)
	h.end()
	if err == nil {
		fmt.Printf("%.0f calls/s, %s\n", rate, l.profile)
	}
	return err
}

// mountedTable holds a call of a mounted server against the SDK's own client.
func mountedTable(ctx context.Context, l *lab, bare string) (t table, err error) {
	session, err := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, &sdk.StreamableClientTransport{Endpoint: "http://" + bare + "/", DisableStandaloneSSE: true}, nil)
	if err != nil {
		return t, err
	}
	defer session.Close()
	a, err := l.mountingHost(ctx, bare)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	request := *newCall(payload())
	request.Operation, request.ID, request.Fresh = "bare/echo", "", true
	all := []*contestant{
		{name: "floor: the Go SDK's client", call: func(ctx context.Context) error {
			res, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "echo", Arguments: json.RawMessage(payload())})
			if err == nil && res.IsError {
				err = errors.New("the tool failed")
			}
			return err
		}},
		{name: "Mortise: a mounted tool, recorded", pinned: atMostRatio(1.25), call: func(ctx context.Context) error { _, err := a.Kernel.Call(ctx, request); return err }},
	}
	n, turn := l.length()
	for _, c := range all {
		for range 300 {
			if err := c.call(ctx); err != nil {
				return t, fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	var r rounds
	for range n {
		var round []float64
		for _, c := range all {
			took, err := latencies(ctx, c, turn)
			if err != nil {
				return t, fmt.Errorf("%s: %w", c.name, err)
			}
			round = append(round, p50(took, time.Microsecond))
		}
		r = append(r, round)
	}
	t = table{Title: "M2. A call of a server over MCP, 1 KB each way, one caller", Unit: "p50 us"}
	for i, c := range all {
		figure, ratio := r.median(i)
		t.Rows = append(t.Rows, judged(c.name, figure, ratio, c.pinned))
	}
	return t, nil
}

// mountingHost is a whole host that has mounted a server.
func (l *lab) mountingHost(ctx context.Context, address string) (*app.App, error) {
	home, err := os.MkdirTemp(l.dir, "home-")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(home, "bare")
	manifest := fmt.Sprintf("name: bare\nversion: 1.0.0\nowner: bench\ndescription: Answers its input.\nrunner: {kind: mcp, url: 'http://%s/'}\noperations: {echo: {kind: tool}}\n", address)
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(manifest), 0o600),
		os.WriteFile(filepath.Join(home, "mortise.yaml"), []byte("egress: {loopback: [bare]}\n"), 0o600)); err != nil {
		return nil, err
	}
	return openWith(ctx, app.Options{Home: home}, dir)
}
