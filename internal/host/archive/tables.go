package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store/backup"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/plugin"
)

// tablesDir is where the tables of a PostgreSQL database are in a backup, a file for each.
const tablesDir = "database"

func tableFile(name string) string { return tablesDir + "/" + name + ".copy" }

// tables adds the tables of a PostgreSQL database as they are at one moment.
func (b *backingUp) tables(ctx context.Context, m *backup.Manifest) error {
	url := b.Database.URL()
	if t, counts := b.w.(*tally); counts {
		version, tables, bytes, err := postgres.Size(ctx, url)
		m.Schema = version
		t.count(tablesDir, tables, bytes)
		return ofServer(b.Database, err)
	}
	if err := os.Mkdir(b.temp, 0o700); err != nil {
		return err
	}
	m.MadeAt = now()
	d, err := postgres.WriteDump(ctx, url, b.temp, func(t postgres.Table, path string) error {
		b.Doing("copying the table "+t.Name, b.w.Written())
		return b.w.AddFile(ctx, tableFile(t.Name), path)
	})
	if err != nil {
		return ofServer(b.Database, err)
	}
	if d.Key != "" {
		m.Key = d.Key
	}
	m.Schema = d.Schema
	for _, h := range d.Heads {
		m.Heads = append(m.Heads, backup.Head(h))
	}
	for _, t := range d.Tables {
		m.Tables = append(m.Tables, backup.Table(t))
	}
	return nil
}

// ofServer is the error of a database, without its password.
func ofServer(d config.Database, err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return plugin.Errorf(plugin.CodeNotFound, "%s has nothing to back up: %w", d, err)
	}
	return &setup.Error{Err: fmt.Errorf("the database %s: %w", d, err)}
}

// placed refuses a backup whose database has nowhere to go to, or that has none for the place.
func (r *Restored) placed(d config.Database) error {
	switch {
	case len(r.Manifest.Tables) > 0 && d == "":
		return plugin.Errorf(plugin.CodeInvalidInput, "the backup has a PostgreSQL database: name an empty one with --database or MORTISE_DATABASE")
	case r.Manifest.Database == "sqlite" && d != "":
		return plugin.Errorf(plugin.CodeInvalidInput, "the backup has a SQLite database, which is restored into the data directory: leave --database out, and MORTISE_DATABASE")
	}
	return nil
}

// tablesApart moves the tables out of what becomes the data directory, and returns where they
// are.
func tablesApart(staged string) (string, error) {
	apart := staged + ".tables"
	err := os.Rename(filepath.Join(staged, tablesDir), apart)
	if errors.Is(err, fs.ErrNotExist) {
		return apart, nil
	}
	return apart, err
}
