package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// The database remembers which key its chains are signed with, and nothing of
// the key's value.
const (
	selectKey = `SELECT value FROM site WHERE name = 'ledger.key'`
	insertKey = `INSERT INTO site (name, value) VALUES ('ledger.key', ?) ON CONFLICT (name) DO NOTHING`
)

// known reads the key, if there is one, and refuses it if the chains are signed
// with another.
func (s *Store) known(ctx context.Context) error {
	var want string
	if err := s.write.QueryRowContext(ctx, selectKey).Scan(&want); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	key, err := chain.ReadKey(s.home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.key = key
	return s.same(want)
}

// same refuses a key that is not the one the database remembers.
func (s *Store) same(want string) error {
	path := filepath.Join(s.home, chain.KeyFile)
	switch {
	case want == "":
		return nil
	case s.key == nil:
		return fmt.Errorf("%s is missing and the ledger was signed with it: copy ledger.key from another node, or restore it from a backup", path)
	case s.key.ID() != want:
		return fmt.Errorf("%s is not the key that the ledger was signed with: copy ledger.key from another node, or restore it from a backup", path)
	}
	return nil
}

// signer returns the key for the first entry of this process, and makes one for
// the first there ever is. Of nodes that make one at the same time the second
// is told so.
func (s *Store) signer(tx sqlstore.Tx) (*chain.Key, error) {
	var want string
	if _, err := tx.Row([]any{&want}, selectKey); err != nil {
		return nil, err
	}
	if s.key == nil {
		key, err := chain.ReadKey(s.home) // another process may have made it
		if errors.Is(err, fs.ErrNotExist) && want == "" {
			key, err = chain.CreateKey(s.home)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		s.key = key
	}
	if want == "" {
		if _, err := tx.Exec(insertKey, s.key.ID()); err != nil {
			return nil, err
		}
		if _, err := tx.Row([]any{&want}, selectKey); err != nil {
			return nil, err
		}
	}
	if err := s.same(want); err != nil {
		return nil, err
	}
	return s.key, nil
}
