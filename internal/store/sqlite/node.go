package sqlite

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/internal/store"
)

func (s *Store) lockPath(node string) string { return filepath.Join(s.dir, "nodes", node+".lock") }

// Recover implements [store.Store]. A node is dead if its lock can be taken: it
// took the lock before its row could be seen, and held it until the row was gone.
func (s *Store) Recover(ctx context.Context, fn func(store.Tx, store.NodeRow) error) (recovered int, err error) {
	if s.Node() == "" {
		return 0, store.ErrReadOnly
	}
	files, err := os.ReadDir(filepath.Join(s.dir, "nodes"))
	if err != nil {
		return 0, err
	}
	rows, err := s.Nodes(ctx)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		// No live node has an id of another form, and a row must not choose a path.
		if row.ID == s.Node() || uuid.Validate(row.ID) != nil {
			continue
		}
		won, err := s.recover(ctx, row, fn)
		if err != nil {
			return recovered, err
		}
		if won {
			recovered++
		}
	}
	return recovered, s.sweep(ctx, files)
}

// recover runs fn for one node, if the node is dead and no other process recovered it
// first.
func (s *Store) recover(ctx context.Context, row store.NodeRow, fn func(store.Tx, store.NodeRow) error) (won bool, err error) {
	lock, err := filelock.Try(s.lockPath(row.ID))
	if lock == nil || err != nil {
		return false, err
	}
	err = s.Write(ctx, func(tx store.Tx) error {
		won, err = tx.DeleteNode(row.ID)
		if err != nil || !won {
			return err
		}
		return fn(tx, row)
	})
	if err != nil {
		lock.Release()
		return false, err
	}
	lock.Remove()
	return won, nil
}

// sweep removes the locks of nodes that died before they had a row. files were
// listed before the rows that were recovered.
func (s *Store) sweep(ctx context.Context, files []fs.DirEntry) error {
	if len(files) == 0 {
		return nil
	}
	rows, err := s.Nodes(ctx)
	if err != nil {
		return err
	}
	booked := make(map[string]bool)
	for _, row := range rows {
		booked[row.ID] = true
	}
	for _, file := range files {
		id, ok := strings.CutSuffix(file.Name(), ".lock")
		if !ok || booked[id] || id == s.Node() || uuid.Validate(id) != nil {
			continue
		}
		lock, err := filelock.Try(s.lockPath(id))
		if err != nil {
			return err
		}
		if lock != nil {
			lock.Remove()
		}
	}
	return nil
}
