package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mortise-dev/mortise/internal/surface/cli"
)

// mountedConfig lets the owner call what the server that is mounted has.
const mountedConfig = `egress: {loopback: [server]}
policy:
  allow: [{operations: [server/*], effects: ["*"]}]
`

// A mountedHost is a host that mounts the server of one scenario, in a data directory of its own.
type mountedHost struct{ home string }

// A toolCall is a call of a tool that a scenario expects.
type toolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// clientMain is the program that the suite starts as a client, once for each scenario: it mounts
// the server at a URL as a plugin, and calls the tools that the scenario expects as operations.
func clientMain(url string) int {
	home, err := os.MkdirTemp("", "c")
	if err != nil {
		return fail("%v", err)
	}
	defer func() { _ = os.RemoveAll(home) }()
	h := mountedHost{home}
	if err := os.WriteFile(filepath.Join(home, "mortise.yaml"), []byte(mountedConfig), 0o600); err != nil {
		return fail("%v", err)
	}
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	if strings.HasPrefix(scenario, "auth/") {
		return h.signedIn(scenario, url)
	}
	if _, status := h.run("mcp", "mount", "server", "--url", url); status != 0 {
		return status
	}
	calls, err := h.calls(scenario)
	if err != nil {
		return fail("%v", err)
	}
	for _, c := range calls {
		// Whether it is answered is for the scenario to judge.
		_, _ = h.run("run", "server/"+c.Name, "--input", string(c.Arguments))
	}
	return 0
}

// calls are those that a scenario expects: what it says itself, or else each tool once.
func (h mountedHost) calls(scenario string) (calls []toolCall, err error) {
	var said struct {
		ToolCalls []toolCall `json:"toolCalls"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			return nil, err
		}
	}
	if len(said.ToolCalls) > 0 {
		return said.ToolCalls, nil
	}
	out, status := h.run("plugins", "show", "server", "--json")
	if status != 0 {
		return nil, fmt.Errorf("plugins show ended with %d", status)
	}
	var shown struct {
		Operations []string `json:"operations"`
	}
	if err := json.Unmarshal([]byte(out), &shown); err != nil {
		return nil, err
	}
	for _, name := range shown.Operations {
		calls = append(calls, toolCall{name, arguments(scenario)})
	}
	return calls, nil
}

// arguments are those with which a scenario wants each tool to be called.
func arguments(scenario string) json.RawMessage {
	switch scenario {
	case "tools_call":
		return json.RawMessage(`{"a":5,"b":3}`)
	case "http-invalid-tool-headers":
		return json.RawMessage(`{"region":"us-west1"}`)
	}
	return json.RawMessage("{}")
}

// run is one run of the command line, in this process. What it says to people goes to the suite.
func (h mountedHost) run(args ...string) (out string, status int) {
	out, _, status = h.typed("", args...)
	return out, status
}

// typed is a run with something on standard input. A page on which someone signs in is visited,
// as by a browser.
func (h mountedHost) typed(in string, args ...string) (out, said string, status int) {
	var written bytes.Buffer
	b := &browser{}
	status = cli.Main(append([]string{"--home", h.home}, args...), strings.NewReader(in), &written, b)
	b.visits.Wait()
	fmt.Fprintf(os.Stderr, "mortise %s: %d\n%s", strings.Join(args, " "), status, &written)
	return written.String(), b.text.String(), status
}

func fail(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	return 1
}
