package archive

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/store/backup"
)

// A Part is what a backup has under one name of the data directory.
type Part struct {
	Name  string `json:"name"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

// A Plan says what would be in a backup, and how large it would be before it is compressed.
// The size of a database is what it takes on the disk.
type Plan struct {
	Database string   `json:"database"`
	Schema   int64    `json:"schema,omitzero"` // of PostgreSQL
	Parts    []Part   `json:"parts"`
	Bytes    int64    `json:"bytes"`
	Notes    []string `json:"notes"`
}

// PlanBackup returns what a backup would have. It writes nothing.
func PlanBackup(ctx context.Context, o BackupOptions) (p Plan, err error) {
	b, err := begun(o)
	if err != nil {
		return p, err
	}
	t := &tally{seen: map[string]bool{}}
	b.w = t
	m := backup.Manifest{Database: "sqlite", Notes: []string{}}
	if err := b.all(ctx, &m); err != nil {
		return p, err
	}
	slices.SortFunc(t.parts, func(a, b Part) int { return strings.Compare(a.Name, b.Name) })
	return Plan{Database: m.Database, Schema: m.Schema, Parts: t.parts, Bytes: t.bytes, Notes: m.Notes}, nil
}

// A tally counts members instead of writing them.
type tally struct {
	seen  map[string]bool
	parts []Part
	bytes int64
}

// Has implements [sink].
func (t *tally) Has(name string) bool { return t.seen[name] }

// Written implements [sink].
func (t *tally) Written() int64 { return t.bytes }

// Add implements [sink].
func (t *tally) Add(ctx context.Context, name string, _ fs.FileMode, size int64, r io.Reader) error {
	t.seen[name] = true
	if r != nil {
		top, _, _ := strings.Cut(name, "/")
		t.count(top, 1, size)
	}
	return context.Cause(ctx)
}

// AddFile implements [sink].
func (t *tally) AddFile(ctx context.Context, name, path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	return t.Add(ctx, name, info.Mode(), info.Size(), strings.NewReader(""))
}

func (t *tally) count(part string, files int, bytes int64) {
	t.bytes += bytes
	at := slices.IndexFunc(t.parts, func(p Part) bool { return p.Name == part })
	if at < 0 {
		at, t.parts = len(t.parts), append(t.parts, Part{Name: part})
	}
	t.parts[at].Files += files
	t.parts[at].Bytes += bytes
}
