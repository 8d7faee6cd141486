package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/host/datadir"
)

// TestTheDataDirectoryIsDocumented holds the table of what is on the disk against the list that backup and
// restore go by, and the page on backups against what a backup copies.
func TestTheDataDirectoryIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| in the data directory | is | in a [backup](backup.md) |\n|---|---|---|\n")
	if !found {
		t.Fatal("architecture.md has no table of the data directory")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var got, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .* \\| ([^|]+) \\|$").FindAllStringSubmatch(table, -1) {
		got = append(got, row[1]+": "+row[2])
	}
	for _, e := range datadir.Entries {
		want = append(want, e.Name+": "+e.Care.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("the table of the data directory has\n%s\nand the list\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	text, err = os.ReadFile("backup.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range datadir.With(datadir.Copied, datadir.Database, datadir.Key, datadir.Kept) {
		if name := strings.ReplaceAll(e.Name, "*", ""); !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("backup.md does not mention `%s`", name)
		}
	}
}
