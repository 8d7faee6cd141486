// Package eventmill runs packages of the Event Mill contract as an analyst
// does, by the command line: one package at least for each thing that published
// plugins rely on beyond the contract's text, and some that do real work. The
// packages in plugins/ are written as published ones are, imports of each other
// and all; what must come of them is in cases/.
package eventmill

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testinput"
)

// A scenario is one session: its evidence, and calls one after the other.
type scenario struct {
	Row       string            `json:"row"`       // what published plugins rely on
	Evidence  []string          `json:"evidence"`  // files of evidence/ that are in the session
	Reference map[string]string `json:"reference"` // reference data by key: files of evidence/
	Model     bool              `json:"model"`     // models are connected
	Quota     string            `json:"quota"`     // the model whose quota is used up
	Calls     []step            `json:"calls"`
}

// A step is one call and what must come of it.
type step struct {
	Tool      string         `json:"tool"`
	Payload   map[string]any `json:"payload"`   // "$0" is the id of the first artifact
	Arguments []string       `json:"arguments"` // in place of the payload
	Timeout   string         `json:"timeout"`
	Want      want           `json:"want"`
}

// A want is what must come of a call; what is not there may be anything.
type want struct {
	OK        bool           `json:"ok"`
	Result    map[string]any `json:"result"`
	ErrorCode string         `json:"error_code"`
	Message   string         `json:"message"` // is contained
	Details   map[string]any `json:"details"`
	Summary   string         `json:"summary"`
	Artifacts []string       `json:"artifacts"` // types of those registered
	Saved     string         `json:"saved"`     // what the last of them holds
}

// An outcome is what `mortise run --json` prints of such a plugin.
type outcome struct {
	OK        bool           `json:"ok"`
	Result    map[string]any `json:"result"`
	ErrorCode *string        `json:"error_code"`
	Message   *string        `json:"message"`
	Details   map[string]any `json:"details"`
	Summary   string         `json:"summary"`
	Artifacts []struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	} `json:"artifacts"`
}

func TestPublishedPlugins(t *testing.T) {
	binary := testinput.Host(t)
	cases, err := filepath.Glob("cases/*.json")
	if err != nil || len(cases) < 20 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, file := range cases {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s scenario
			read(t, file, &s)
			s.run(t, newHost(t, binary))
		})
	}
}

// run plays a scenario.
func (s *scenario) run(t *testing.T, h *host) {
	if s.Model {
		h.models(t, s.Quota)
	}
	for key, file := range s.Reference {
		h.must(t, nil, "reference", "add", key, filepath.Join("evidence", file))
	}
	h.must(t, nil, "plugins", "register", "--dev", "plugins")
	var session struct {
		ID string `json:"id"`
	}
	h.must(t, &session, "sessions", "create", "--json")
	defer h.must(t, nil, "sessions", "close", session.ID)
	var ids []string
	for _, file := range s.Evidence {
		var added struct {
			Artifacts []struct {
				ID string `json:"id"`
			} `json:"artifacts"`
		}
		h.must(t, &added, "artifacts", "add", filepath.Join("evidence", file), "--session", session.ID, "--json")
		ids = append(ids, added.Artifacts[0].ID)
	}
	for i, c := range s.Calls {
		args := []string{"run", c.Tool, "--session", session.ID, "--json"}
		if c.Timeout != "" {
			args = append(args, "--timeout", c.Timeout)
		}
		if c.Arguments != nil {
			args = append(append(args, "--"), c.Arguments...)
		} else {
			args = append(args, "--input", c.input(t, ids))
		}
		got, printed := outcome{}, h.run(t, args...)
		if err := json.Unmarshal(printed, &got); err != nil {
			t.Fatalf("call %d of %s: %v: %s", i+1, c.Tool, err, printed)
		}
		c.judge(t, i+1, got, printed)
		if c.Want.Saved != "" && len(got.Artifacts) > 0 {
			last := got.Artifacts[len(got.Artifacts)-1]
			if saved := h.run(t, "artifacts", "get", last.ID, "--session", session.ID); strings.TrimSpace(string(saved)) != c.Want.Saved {
				t.Errorf("call %d of %s: saved is %q", i+1, c.Tool, saved)
			}
		}
	}
}

func (c *step) input(t *testing.T, ids []string) string {
	data, err := json.Marshal(c.Payload)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if len(ids) > 0 {
		text = strings.ReplaceAll(text, `"$0"`, `"`+ids[0]+`"`)
	}
	return text
}

// judge holds what came against what was wanted.
func (c *step) judge(t *testing.T, n int, got outcome, printed []byte) {
	wrong := func(what string, got, want any) {
		t.Errorf("call %d of %s: %s is %v; wanted is %v\n%s", n, c.Tool, what, got, want, printed)
	}
	text := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	w := c.Want
	if got.OK != w.OK {
		wrong("ok", got.OK, w.OK)
	}
	for key, value := range w.Result {
		if value == nil && key == "size" {
			continue // whatever it is
		}
		if !reflect.DeepEqual(got.Result[key], value) {
			wrong("result."+key, got.Result[key], value)
		}
	}
	if w.Result != nil && len(got.Result) != len(w.Result) {
		wrong("result", got.Result, w.Result)
	}
	if text(got.ErrorCode) != w.ErrorCode {
		wrong("error_code", text(got.ErrorCode), w.ErrorCode)
	}
	if !strings.Contains(text(got.Message), w.Message) {
		wrong("message", text(got.Message), w.Message)
	}
	if w.Details != nil && !reflect.DeepEqual(got.Details, w.Details) {
		wrong("details", got.Details, w.Details)
	}
	if w.Summary != "" && got.Summary != w.Summary {
		wrong("summary", got.Summary, w.Summary)
	}
	var types []string
	for _, a := range got.Artifacts {
		types = append(types, a.Type)
	}
	if w.Artifacts != nil && !slices.Equal(types, w.Artifacts) {
		wrong("artifacts", types, w.Artifacts)
	}
}

// A host is a data directory and the program.
type host struct{ binary, home string }

func newHost(t *testing.T, binary string) *host {
	t.Helper()
	home, err := os.MkdirTemp("", "mill-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	h := &host{binary, home}
	h.configure(t, "")
	return h
}

// patient is in every configuration: a machine that is busy starts Python slowly,
// and how fast it starts is no subject here.
const patient = "processes: {handshake: 60s}\n"

// configure writes the configuration.
func (h *host) configure(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.home, "mortise.yaml"), []byte(patient+text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run returns what a command printed, however it ended.
func (h *host) run(t *testing.T, args ...string) []byte {
	t.Helper()
	out, _, _ := h.command(t, args...)
	return out
}

// must runs a command that has to succeed and reads what it printed.
func (h *host) must(t *testing.T, into any, args ...string) {
	t.Helper()
	out, errs, err := h.command(t, args...)
	if err != nil {
		t.Fatalf("mortise %s: %v\n%s%s", strings.Join(args, " "), err, out, errs)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("mortise %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (h *host) command(t *testing.T, args ...string) (out, errs []byte, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, h.binary, args...)
	cmd.Env = append(os.Environ(), "MORTISE_HOME="+h.home, "MODEL_KEY=none-of-your-business")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("mortise %s: %v\n%s%s", strings.Join(args, " "), ctx.Err(), stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes(), stderr.Bytes(), err
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
