package mcp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/surface/mcp"
)

// program is the command line, in a process of its own.
func program(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append([]string{"program"}, args...)...)
	cmd.Env = append(append(os.Environ(), "MORTISE_HOME="+t.TempDir(), "MORTISE_CONFIG=", "MORTISE_SERVER=", "MORTISE_AS=", "MORTISE_TOKEN="), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// The official client starts the program: with the host in it, or with one at a URL, which is
// asked as the principal of a token. Both answer as /mcp does, on each revision.
func TestTheProgramOnItsStandardStreams(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	token := b.token("ann", "run read", "desk/*")
	home := t.TempDir()
	b.write(filepath.Join(home, "mortise.yaml"), "sandbox: \"off\" # it runs the test binary\n")
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.Mkdir(plain, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b.write(filepath.Join(plain, "manifest.yaml"), fmt.Sprintf("name: many\nversion: 1.0.0\nowner: test\ndescription: A test.\nrunner: {kind: process, command: [%q, many, \"2\"]}\n", self))
	if err := program(t, []string{"MORTISE_HOME=" + home}, "plugins", "register", plain).Run(); err != nil {
		t.Fatal(err)
	}
	for _, revision := range revisions {
		for _, c := range []struct {
			name, tool, arguments, want string
			env                         []string
		}{
			{"embedded", "many.t0001", `{}`, `{"n":1}`, []string{"MORTISE_HOME=" + home}},
			{"url", "desk.upper", `{"text":"a"}`, `{"text":"A"}`, []string{"MORTISE_SERVER=" + b.url, "MORTISE_TOKEN=" + token}},
		} {
			t.Run(revision+" "+c.name, func(t *testing.T) {
				s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
					&sdk.CommandTransport{Command: program(t, c.env, "mcp", "--list", "all")}, &sdk.ClientSessionOptions{ProtocolVersion: revision})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if got := names(t, s); !slices.Contains(got, c.tool) || !slices.Contains(got, "mortise.call_result") {
					t.Errorf("the tools are %q", got)
				}
				res, said, _ := call(t, s, c.tool, c.arguments)
				if res.IsError || said != c.want {
					t.Errorf("%s answers %q", c.tool, said)
				}
				if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "desk.absent"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
					t.Errorf("a tool that there is not: %v", err)
				}
			})
		}
	}
}

// Standard output has the protocol and nothing else, whatever comes in, and what was asked is
// answered before the program ends with its input.
func TestStandardOutputIsTheProtocol(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	token := b.token("ann", "run")
	begins := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for name, c := range map[string]struct {
		in  string
		env []string
		ids []string // of the answers
	}{
		"at a URL":                    {begins + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"desk.upper","arguments":{"text":"a"}}}` + "\n", []string{"MORTISE_SERVER=" + b.url, "MORTISE_TOKEN=" + token}, []string{"1", "2"}},
		"embedded":                    {begins + `{"jsonrpc":"2.0","id":"two","method":"tools/list"}` + "\n", nil, []string{"1", `"two"`}},
		"what is no JSON":             {"hello\n\n[1\n" + begins, nil, []string{"null", "null", "1"}},
		"a token that is none for it": {begins, []string{"MORTISE_SERVER=" + b.url, "MORTISE_TOKEN=" + b.token("ann", "read")}, []string{"1"}},
		"nothing":                     {"", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := program(t, c.env, "mcp")
			cmd.Stdin = strings.NewReader(c.in)
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Run(); err != nil {
				t.Errorf("it ends with %v", err)
			}
			var ids []string
			lines := bufio.NewScanner(&out)
			for lines.Scan() {
				var m struct {
					JSONRPC string          `json:"jsonrpc"`
					ID      json.RawMessage `json:"id"`
				}
				if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m.JSONRPC != "2.0" {
					t.Fatalf("it writes %q", lines.Text())
				}
				ids = append(ids, string(m.ID))
			}
			if !slices.Equal(ids, c.ids) {
				t.Errorf("it answers %q, want %q", ids, c.ids)
			}
		})
	}
}
