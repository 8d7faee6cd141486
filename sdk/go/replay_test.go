package mortise_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testinput"
	"github.com/mortise-dev/mortise/protocol/protocoltest"
)

// TestTranscripts plays the host's part of
// every recorded conversation to it.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	bin := testinput.Reference(t)
	transcripts, err := protocoltest.Load("../../protocol/testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range transcripts {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(bin)
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			stuck := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
			defer stuck.Stop()
			lines := bufio.NewReader(out)
			for i, line := range c.Lines {
				if line.FromHost {
					if _, err := io.WriteString(in, line.Text+"\n"); err != nil {
						t.Fatal(err)
					}
					continue
				}
				got, err := lines.ReadString('\n')
				if err != nil {
					t.Fatalf("line %d: %v", i, err)
				}
				if c.Version == "1" && i == 1 { // it may expose more tools than the transcript names
					got = exposing(t, got, line.Text)
				}
				if differs := protocoltest.Match(line.Text, got); differs != "" {
					t.Errorf("line %d: %s\nwant %s\ngot  %s", i, differs, line.Text, got)
				}
			}
			if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
				t.Errorf("afterwards: %q, %v", rest, err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("the plugin ended with %v", err)
			}
		})
	}
}

// exposing returns the handshake got with the exposed_tools of want, where it
// names them all.
func exposing(t *testing.T, got, want string) string {
	var g, w struct {
		Type     string         `json:"type"`
		Manifest map[string]any `json:"manifest"`
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	named := map[any]bool{}
	tools, _ := g.Manifest["exposed_tools"].([]any)
	for _, tool := range tools {
		named[tool] = true
	}
	for _, tool := range w.Manifest["exposed_tools"].([]any) {
		if !named[tool] {
			t.Errorf("%v is not exposed", tool)
		}
	}
	g.Manifest["exposed_tools"] = w.Manifest["exposed_tools"]
	raw, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
