package filelock_test

import (
	"fmt"
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

// local says of each function that takes the lock of a file why that is between processes of one
// machine alone. Nodes that share a PostgreSQL database share no directory: what they must not do
// at the same time is under a lease of the database (store.Lease), or is a compare-and-set.
var local = map[string]string{
	"internal/host/archive.(Series).lock":     "it is in the directory that the backups are written to, which is the schedule of all who write there",
	"internal/host/archive.Backup":            "what one that died left in one data directory is cleared away",
	"internal/host/archive.alone":             "a restore replaces the files of one data directory",
	"internal/host/setup.AwaitUnserved":       "it waits for the process that serves one data directory",
	"internal/host/setup.Exclusive":           "one process at a time serves a data directory",
	"internal/host/setup.OnlyHost":            "it asks for other processes of one data directory, where the database is a file in it",
	"internal/host/setup.OpenScratch":         "scratch directories are of one data directory",
	"internal/host/setup.Served":              "it asks for the process that serves one data directory",
	"internal/host/setup.sweepScratch":        "scratch directories are of one data directory",
	"internal/service/secret.(*Vault).Rotate": "it writes the key file of one data directory; the rows of keys are changed by compare-and-set",
	"internal/store.MoveAnchors":              "anchors are of one data directory",
	"internal/store.ReplaceAnchors":           "anchors are of one data directory",
	"internal/store/job.openSQLite":           "jobs.db is of one data directory; PostgreSQL has an advisory lock",
	"internal/store/sqlite.(*Store).alone":    "an SQLite database is a file of one machine, and its nodes are processes there",
	"internal/store/sqlite.(*Store).migrate":  "as alone",
	"internal/store/sqlite.(*Store).recover":  "as alone",
	"internal/store/sqlite.(*Store).sweep":    "as alone",
	"internal/store/sqlite.Open":              "as alone",
	"internal/surface/client.(*starter).turn": "it starts the host of one data directory",
	"internal/surface/client.ChangeContexts":  "the contexts are of one person on one machine",
}

// TestEveryFileLockIsLocal finds the uses of this package in the tree: one that the table does not
// have fails, and so does a row without a use.
func TestEveryFileLockIsLocal(t *testing.T) {
	t.Parallel()
	root, used := "../../..", map[string]bool{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "node_modules" || e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") && path != root):
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		at, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				call, is := n.(*ast.SelectorExpr)
				if !is {
					return true
				}
				if x, is := call.X.(*ast.Ident); is && x.Name == "filelock" && (call.Sel.Name == "Acquire" || call.Sel.Name == "Try") {
					used[filepath.ToSlash(at)+"."+nameOf(d)] = true
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range slices.Sorted(maps.Keys(used)) {
		if local[place] == "" {
			t.Errorf("%s takes the lock of a file, and the table does not say why that is of one machine; between nodes use store.Lease", place)
		}
	}
	for place := range local {
		if !used[place] {
			t.Errorf("%s takes no lock of a file any more", place)
		}
	}
}

// nameOf names a declaration, a method with its receiver.
func nameOf(d ast.Decl) string {
	f, is := d.(*ast.FuncDecl)
	if !is {
		return "a variable"
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if star, is := receiver.(*ast.StarExpr); is {
		return fmt.Sprintf("(*%s).%s", star.X, f.Name.Name)
	}
	return fmt.Sprintf("(%s).%s", receiver, f.Name.Name)
}
