package authors

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestEventMill runs the tools of Event Mill, all in one tree.
func TestEventMill(t *testing.T) {
	for dir, f := range cases(t, "eventmill") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			h := newHost(t, "policy:\n  allow:\n    - {operations: [\"*\"], effects: [\"*\"], untrusted: allow}\n")
			h.must(t, "plugins", "register", "--dev", filepath.Join("eventmill", "plugins"))
			for _, c := range f.Cases {
				t.Run(c.Title, func(t *testing.T) { runEventMill(t, h, f.Plugin, c) })
			}
		})
	}
}

func runEventMill(t *testing.T, h *host, name string, c item) {
	if len(c.HTTP) > 0 {
		t.Skip("it opens sockets of its own, which a tool of Event Mill has not: a full cage has no network")
	}
	p := provide(t)
	p.set(c.HTTP)
	var session struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(h.must(t, "sessions", "create", "--json"), &session); err != nil {
		t.Fatal(err)
	}
	defer h.must(t, "sessions", "close", session.ID)
	dir := t.TempDir()
	ids := map[string]string{} // of the files that are loaded, as artifacts
	for file, content := range c.Files {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		var added struct {
			Artifacts []struct {
				ID string `json:"id"`
			} `json:"artifacts"`
		}
		if err := json.Unmarshal(h.must(t, "artifacts", "add", path, "--session", session.ID, "--json"), &added); err != nil {
			t.Fatal(err)
		}
		ids[file] = added.Artifacts[0].ID
	}
	ask := func(one item) []byte {
		input := p.place(one.Input)
		for file, id := range ids {
			input = bytes.ReplaceAll(input, []byte(`"artifact_id": "@file:`+file+`"`), []byte(`"artifact_id": "`+id+`"`))
		}
		for file := range c.Files {
			input = bytes.ReplaceAll(input, []byte("@file:"+file), []byte(filepath.Join(dir, file)))
		}
		tool := one.Operation
		if tool == "" {
			tool = name
		}
		out, errs, _ := h.command(t, "run", tool, "--session", session.ID, "--json", "--input", string(input))
		if len(out) == 0 {
			t.Fatalf("nothing is printed: %s", errs)
		}
		return out
	}
	for _, before := range append(c.Before, c.Setup...) {
		ask(before)
	}
	printed := ask(c)
	var got struct {
		OK        bool   `json:"ok"`
		Result    any    `json:"result"`
		ErrorCode string `json:"error_code"`
	}
	if err := json.Unmarshal(printed, &got); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	if got.OK != c.Expect.OK || got.ErrorCode != c.Expect.Code {
		t.Fatalf("ok is %v with %q; wanted is %v with %q\n%.1500s", got.OK, got.ErrorCode, c.Expect.OK, c.Expect.Code, printed)
	}
	if want := decode(t, c.Expect.Contains); want != nil {
		if why := contains("", got.Result, want); why != "" {
			t.Errorf("%s\n%.1500s", why, printed)
		}
	}
}
