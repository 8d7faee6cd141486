package all_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
)

// TestVersionsOfShuAreShownAsTheyAreGiven: any text is a version, and none is "0".
func TestVersionsOfShuAreShownAsTheyAreGiven(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][2]string{
		`"version": "1.2.3",`:     {"1.2.3", ""},
		`"version": "1.2",`:       {"1.2.0", "1.2"},
		`"version": "0",`:         {"0.0.0", "0"},
		``:                        {"0.0.0", "0"},
		`"version": "v2",`:        {"2.0.0", "v2"},
		`"version": "1.0.0.4",`:   {"0.0.0-v1-0-0-4", "1.0.0.4"},
		`"version": "2024-06 b",`: {"0.0.0-v2024-06-b", "2024-06 b"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"plugin.py":   "class P: ...\n",
			"manifest.py": `PLUGIN_MANIFEST = {"name": "p", ` + line + ` "module": "plugins.p.plugin:P", "chat_callable_ops": ["z", "a"], "allowed_feed_ops": ["y", "b"], "op_auth": {"c": {"secrets": {"k": {}}}}}`,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := contract.Inspect(dir)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := [2]string{r.Manifest.Version, r.Manifest.VersionText}; got != want {
			t.Errorf("%s: got %q", line, got)
		}
		order := ""
		for _, op := range r.Manifest.Operations {
			order += op.Name
		}
		if order != "zaybc" {
			t.Errorf("the operations are in the order %s: chats and feeds come first, as they are declared", order)
		}
	}
}
