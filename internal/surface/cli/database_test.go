package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/internal/surface/cli"
	"github.com/mortise-dev/mortise/plugin"
)

// TestTheCommandLineOnPostgreSQL: two data directories, one database, the same
// commands as on SQLite.
func TestTheCommandLineOnPostgreSQL(t *testing.T) {
	t.Parallel()
	url, homeA, homeB := pgtest.Open(t), t.TempDir(), t.TempDir()
	file := filepath.Join(t.TempDir(), "a.log")
	if err := os.WriteFile(file, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mortise := func(want int, home string, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		args = append([]string{"--home", home, "--database", url}, args...)
		if got := cli.Main(args, strings.NewReader(""), &out, &errs); got != want {
			t.Fatalf("mortise %s: status %d, want %d\n%s%s", strings.Join(args, " "), got, want, out.String(), errs.String())
		}
		return out.String() + errs.String()
	}
	expect := func(text, pattern string) {
		t.Helper()
		if !regexp.MustCompile("(?m)" + pattern).MatchString(text) {
			t.Errorf("no %s in\n%s", pattern, text)
		}
	}

	mortise(2, homeA, "ledger", "list") // there is none yet, and reading makes none
	mortise(0, homeA, "run", "pattern_extractor", "--artifact", file)
	expect(mortise(0, homeA, "ledger", "list"), `^SEQ +TIME `)
	expect(mortise(0, homeA, "ledger", "show", "1"), `^entry 1 of chain 1, `)

	// While one node holds its chain, another takes a second one.
	node, err := postgres.Open(t.Context(), url, postgres.Options{Home: homeA})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	entry := plugin.Entry{At: time.Now().UTC().Truncate(time.Microsecond), Tenant: "local", Kind: plugin.EntryNodeUnclean, Subject: "test", Principal: "test", Body: []byte("{}")}
	if err := node.Write(t.Context(), func(tx store.Tx) error { tx.Append(entry); return nil }); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(homeA, "ledger.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(homeB, "ledger.key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	mortise(0, homeB, "run", "pattern_extractor", "--artifact", file)

	list := mortise(0, homeB, "ledger", "list")
	expect(list, `^CHAIN +SEQ +TIME `)
	expect(list, `^1 +1 .*plugin\.registered`)
	expect(list, `^2 +[0-9]+ .*succeeded`)
	expect(mortise(3, homeB, "ledger", "show", "1"), `2 chains have an entry 1; name the chain too, as in 1/1`)
	expect(mortise(0, homeB, "ledger", "show", "2/1"), `^entry 1 of chain 2, `)
	expect(mortise(4, homeB, "ledger", "show", "3/1"), `the ledger has no call and no entry 3/1`)
	expect(mortise(0, homeA, "ledger", "verify"), `^the ledger holds: [0-9]+ entries in 2 chains, `)
	expect(mortise(0, homeB, "doctor"), `^ok +database +PostgreSQL [0-9.]+.*synchronous_commit on, no synchronous standby`)
	expect(mortise(0, homeB, "config", "show"), `^database: postgres://host@/test`)
}

// TestEarlierVersionsAreFoundOnPostgreSQL: check holds a plugin against what is
// registered, wherever that is kept.
func TestEarlierVersionsAreFoundOnPostgreSQL(t *testing.T) {
	t.Parallel()
	url, home, dir := pgtest.Open(t), t.TempDir(), t.TempDir()
	mortise := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		status := cli.Main(append([]string{"--home", home, "--database", url}, args...), strings.NewReader(""), &out, &errs)
		return status, out.String() + errs.String()
	}
	plug := func(version, input string) {
		t.Helper()
		for name, text := range map[string]string{
			"manifest.yaml": "name: count\nversion: " + version + "\nowner: test\ndescription: Count.\nrunner: {kind: process, command: [./count.sh], protocol: \"1\"}\n" +
				"operations:\n  count: {kind: tool, description: Count., input: in.json, output: out.json}\n",
			"in.json":  input,
			"out.json": `{"type": "string"}`,
			"count.sh": "#!/bin/sh\nexit 1\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	plug("1.0.0", `{"type": "object"}`)
	if status, text := mortise("plugins", "register", dir); status != 0 {
		t.Fatalf("status %d\n%s", status, text)
	}
	plug("1.1.0", `{"type": "object", "required": ["by"], "properties": {"by": {"type": "integer"}}}`)
	for _, args := range [][]string{{"check", dir}, {"check", dir, "--against", "count@1.0.0"}} {
		if status, text := mortise(args...); status != 1 || !strings.Contains(text, `"by" must be given now; count@1.0.0 promised otherwise`) {
			t.Errorf("%s: status %d\n%s", args, status, text)
		}
	}
	if status, text := mortise("check", dir, "--against", "nowhere"); status != 4 || !strings.Contains(text, "not_found") {
		t.Errorf("status %d\n%s", status, text)
	}
}
