package sqlite

import (
	"io/fs"
	"regexp"
	"testing"

	"github.com/mortise-dev/mortise/internal/store/storetest"
)

// TestEveryTableWithLabelsIsTested: a table that gets labels gets a case in
// storetest too.
func TestEveryTableWithLabelsIsTested(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	table := regexp.MustCompile(`(?m)^CREATE TABLE (\w+) \([^;]*?\n\s+labels\s`)
	added := regexp.MustCompile(`(?m)^ALTER TABLE (\w+) ADD COLUMN labels\s`)
	found := map[string]bool{}
	for _, file := range files {
		text, err := fs.ReadFile(migrations, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range append(table.FindAllSubmatch(text, -1), added.FindAllSubmatch(text, -1)...) {
			found[string(m[1])] = true
			if storetest.Labelled[string(m[1])] == "" {
				t.Errorf("%s has labels, and storetest does not say that they only grow", m[1])
			}
		}
	}
	if len(found) != len(storetest.Labelled) {
		t.Errorf("tables with labels: %v; storetest has %v", found, storetest.Labelled)
	}
}
