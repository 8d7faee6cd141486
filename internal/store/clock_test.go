package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ownClock says of each file of the packages below that asks this machine for its time how often it
// does, and why no other node compares that. All other times are of the clock that nodes share; see [store.Clock].
var ownClock = map[string]struct {
	uses int
	why  string
}{
	"agent/adapter/adapter.go":   {1, "the time of an entry of the ledger, which is shown"},
	"agent/halted.go":            {1, "when a plugin was halted, which is shown"},
	"agent/toolset/webhooks.go":  {1, "it is signed for the receiver of a webhook, which is no node"},
	"agent/worker/sweep.go":      {1, "how long a sweep of this process takes"},
	"agent/worker/worker.go":     {1, "when this process tries an item again"},
	"core/kernel/reserve.go":     {2, "how long a call waited in this process"},
	"core/ledger/journal.go":     {3, "when an effect began and ended, which is shown"},
	"core/ledger/local.go":       {1, "when an effect happened, which is shown"},
	"core/policy/source.go":      {1, "when this process read its policies"},
	"core/quota/quota.go":        {1, "the default of tests; setup.OpenQuotas gives the clock of the store"},
	"host/archive/backup.go":     {1, "when a backup was made, which is shown"},
	"host/archive/scheduled.go":  {6, "the directory of backups is the schedule, by the names of its files"},
	"host/decisions.go":          {3, "how long this process waits for one answer"},
	"host/doctor/backups.go":     {1, "the age of a backup, as scheduled.go tells it"},
	"host/doctor/doctor.go":      {1, "it is compared with the clock of the store"},
	"host/doctor/certificate.go": {1, "whether a certificate is in force here"},
	"host/doctor/server.go":      {7, "how long a server takes to answer, and whether its certificate is in force here"},
	"host/events.go":             {1, "when a head was read, which is shown"},
	"host/models.go":             {2, "how long a model took to answer"},
	"host/recovery/recovery.go":  {1, "when a recovery was noticed, which is shown"},
	"host/retention.go":          {2, "how often this process looks"},
	"host/setup/store.go":        {1, "of a row that is deleted at once"},
	"host/tenants/tenants.go":    {4, "how often this process looks"},
	"host/users.go":              {1, "whether an open invitation is shown; that it is used, the clock of the store decides"},
	"host/wait.go":               {3, "how often this process looks whether the node of a call died"},
}

// clocked are the packages whose times get into the database and are compared there.
var clocked = []string{"core", "agent", "host", "app"}

// TestTimesThatNodesCompareAreOfTheStore finds every use of time.Now, time.Since and time.Until.
func TestTimesThatNodesCompareAreOfTheStore(t *testing.T) {
	t.Parallel()
	used := map[string]int{}
	for _, dir := range clocked {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if is, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := is.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, is.Sel.Name) {
						used[strings.TrimPrefix(filepath.ToSlash(path), "../")]++
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(used)) {
		if n := ownClock[file].uses; used[file] != n {
			t.Errorf("internal/%s asks this machine for its time %d times, and the table has %d; use the clock of the store, or say in the table why no other node compares it", file, used[file], n)
		}
	}
	for file := range ownClock {
		if used[file] == 0 {
			t.Errorf("internal/%s does not ask this machine for its time any more", file)
		}
	}
}
