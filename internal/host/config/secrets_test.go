package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheMasterKeyIsInOnePlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"secrets: {}":                            "",
		"secrets: {key_env: KEY}":                "",
		"secrets: {key_file: keys/master}":       "",
		"secrets: {key_command: [./key, print]}": "",
		"secrets: {key_command: []}":             "",
		"secrets: {key_env: KEY, key_file: f}":   "in one place",
		"secrets: {key_env: 'A KEY'}":            "no name of a variable",
		"secrets: {key_command: [' ']}":          "no name",
		"secrets: {key: hunter2}":                "unknown field",
	} {
		_, err := Parse([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	for text, want := range map[string]string{
		"secrets: {key_file: keys/master}":        filepath.Join(dir, "keys/master"),
		"secrets: {key_file: /etc/master}":        "/etc/master",
		"secrets: {key_command: [./key, print]}":  filepath.Join(dir, "key"),
		"secrets: {key_command: [pass, mortise]}": "pass",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		got := c.Secrets.KeyFile
		if len(c.Secrets.KeyCommand) > 0 {
			got = c.Secrets.KeyCommand[0]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
