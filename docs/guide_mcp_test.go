package docs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/base/testwait"
)

// TestTheGuideOfMCPWithAClient follows guides/mcp.md with the official client: it starts what the
// guide's command wrote into the configuration of Claude Code, calls the tool, and gets the
// operation's own result once the guide's command has approved the call.
func TestTheGuideOfMCPWithAClient(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	page, err := os.ReadFile("guides/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	env := append(os.Environ(), "HOME="+dir, "PATH="+binary+string(os.PathListSeparator)+os.Getenv("PATH"), "MORTISE_CONFIG="+filepath.Join(dir, "mortise.yaml"))
	env = append(env, goCaches...)
	run := func(command string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", command)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}
	var id string
	for _, block := range regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		words := strings.Fields(block[1])
		switch {
		case words[0] == "python" || words[0] == "yaml":
			if err := os.WriteFile(filepath.Join(dir, words[1]), []byte(block[2]), 0o600); err != nil {
				t.Fatal(err)
			}
		case words[0] == "sh" && words[1] != "make":
			out := run(block[2])
			if strings.Contains(block[2], "approvals list") {
				id = regexp.MustCompile(`(?m)^([0-9a-f-]{8,})\s+open`).FindStringSubmatch(out)[1]
			}
		case words[0] == "text" && strings.Contains(block[2], "approve ID"):
			s := clientOf(t, dir, env)
			call, said := asksClient(t, s, "mail.send", map[string]any{"to": "ann", "text": "hello"}) // joins the call that waits
			if !strings.Contains(said, `"pending_approval"`) || id == "" {
				t.Fatalf("before it is approved: %s", said)
			}
			run(strings.ReplaceAll(block[2], "ID", id))
			if _, said := asksClient(t, s, "mortise.call_result", map[string]any{"call_id": call, "wait_seconds": 30}); !strings.Contains(said, "sent to ann") {
				t.Errorf("after it is approved: %s", said)
			}
		}
		if strings.Contains(block[2], "connect claude-code\n") {
			if _, said := asksClient(t, clientOf(t, dir, env), "mail.send", map[string]any{"to": "ann", "text": "hello"}); !strings.Contains(said, `"pending_approval"`) {
				t.Fatalf("the tool answers %s", said)
			}
		}
	}
	if text, _ := os.ReadFile(filepath.Join(dir, ".claude.json")); id == "" || strings.Contains(string(text), "mortise") {
		t.Errorf("the guide ends with approval %q and %s", id, text)
	}
}

// clientOf starts the official client on what Claude Code would start.
func clientOf(t *testing.T, home string, env []string) *mcp.ClientSession {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(home, ".claude.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Servers map[string]struct {
			Command string            `json:"command"`
			Args    []string          `json:"args"`
			Env     map[string]string `json:"env"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	entry := file.Servers["mortise"]
	cmd := exec.Command(entry.Command, entry.Args...)
	cmd.Env = env
	for name, value := range entry.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
	defer cancel()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// asksClient calls a tool, and returns the id of the call and all that is said.
func asksClient(t *testing.T, s *mcp.ClientSession, tool string, arguments map[string]any) (call, said string) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	for _, c := range res.Content {
		if text, is := c.(*mcp.TextContent); is {
			said += text.Text + "\n"
		}
	}
	return fmt.Sprint(res.Meta["dev.mortise/call-id"]), said
}
