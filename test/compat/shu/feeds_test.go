package shu

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// What a published host does with feeds: the first run is due as soon as one is
// made, reset_cursor is told until a run has succeeded and takes effect on each
// that it is told, a refusal of the host keeps its code, the schema holds at every
// run, and a feed whose plugin is gone is paused and says so.
func TestFeedsAreThoseOfPublishedHosts(t *testing.T) {
	t.Parallel()
	c := &connector{t, newHost(t), nil, "feed_cases"}
	c.configure(t, "policy:\n  allow:\n    - {operations: [\"*\"], effects: [\"*\"]}\n")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("plugins/feed-cases")); err != nil {
		t.Fatal(err)
	}
	c.must("plugins", "register", "--dev", dir)
	c.must("kb", "create", "base")

	id := c.feed("reset_cursor=true")
	due, _ := c.show("feeds", "show", id)["last"].([]any)
	if tick, _ := due[0].(map[string]any); len(due) != 1 || tick["outcome"] != "due" {
		t.Errorf("a feed that was just made has the times %v", due)
	}
	for n, want := range []string{"run 1 was told True and found None", "run 2 was told True and found first"} {
		got := c.ran(id)
		if got.Status != "failed" || !strings.Contains(got.Error.Message, want) {
			t.Errorf("run %d: %+v", n+1, got)
		}
	}
	for _, want := range []map[string]any{{"run": 3.0, "told": true, "found": nil}, {"run": 4.0, "told": false, "found": "last"}} {
		if got := c.ran(id); !reflect.DeepEqual(got.Data, want) {
			t.Errorf("%v, not %v: %+v", got.Data, want, got.Error)
		}
	}

	for _, op := range []string{"large", "huge"} {
		large := c.feed("op=" + op)
		if got := c.ran(large); got.Error.Code != "output_too_large" || got.Error.PluginCode != "" {
			t.Errorf("%s: %+v", op, got.Error)
		}
		last, _ := c.show("feeds", "show", large)["last"].([]any)
		if tick, _ := last[0].(map[string]any); tick["code"] != "output_too_large" {
			t.Errorf("%s: the time is recorded as %v", op, tick)
		}
	}

	// The plugin changes, and the feed's input does not fit any more.
	file := filepath.Join(dir, "plugin.py")
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(code), `"required": ["op"]`, `"required": ["op", "since"]`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := c.ran(id); got.Error.Code != "invalid_input" || !strings.Contains(got.Error.Message, "since") {
		t.Errorf("an input that does not fit any more: %+v", got.Error)
	}

	c.must("plugins", "delete", "feed_cases")
	got := c.ran(id)
	if got.Error.Code != "not_found" {
		t.Errorf("%+v", got)
	}
	shown, _ := c.show("feeds", "show", id)["feed"].(map[string]any)
	problem, _ := shown["problem"].(string)
	if shown["state"] != "paused" {
		t.Errorf("it is %v", shown["state"])
	}
	for _, part := range []string{"feed_cases/sync", "no plugin is called feed_cases", "feeds delete " + id} {
		if !strings.Contains(got.Error.Message, part) || !strings.Contains(problem, part) {
			t.Errorf("there is no %q in %q, or none in %q", part, got.Error.Message, problem)
		}
	}
}

// ran makes one run of a feed and returns what came of it.
func (c *connector) ran(feed string) (got outcome) {
	c.Helper()
	out, errs, _ := c.command(c.T, "feeds", "run", feed, "--wait", "--json")
	if err := json.Unmarshal(out, &got); err != nil {
		c.Fatalf("%v: %s%s", err, out, errs)
	}
	return got
}
