package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// deleteDeadNode removes a node whose lease has expired, unless the node is in the middle of
// a transaction, or another process is removing it.
const deleteDeadNode = `DELETE FROM nodes WHERE id IN (SELECT id FROM nodes WHERE id = ? AND lease_until <= ` + now + ` FOR UPDATE SKIP LOCKED)`

// Recover implements [store.Store]. A node is dead if its lease is over.
func (s *Store) Recover(ctx context.Context, fn func(store.Tx, store.NodeRow) error) (recovered int, err error) {
	if s.write == nil {
		return 0, store.ErrReadOnly
	}
	var clock int64
	if err := s.read.QueryRowContext(ctx, "SELECT "+now).Scan(&clock); err != nil {
		return 0, err
	}
	rows, err := s.Nodes(ctx)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		if row.ID == s.Node() || row.LeaseUntil.UnixMicro() > clock {
			continue
		}
		won := false
		err := s.Write(ctx, func(tx store.Tx) (err error) {
			won, err = tx.(sqlstore.Tx).Exec(deleteDeadNode, row.ID)
			if err != nil || !won {
				return err
			}
			return fn(tx, row)
		})
		if err != nil {
			return recovered, err
		}
		if won {
			recovered++
		}
	}
	return recovered, nil
}

// lastWord locks a chain and writes to it. The lock is granted when the
// transaction that had it is over; and since the log is written in order, what
// that left is durable, on standbys too, once this commit is. A chain that is
// not there yet may be one that the transaction made.
const lastWord = `INSERT INTO chains (id, node, seq, head, mac) VALUES ($1, '', 0, '', '')
	ON CONFLICT (id) DO UPDATE SET mark = chains.mark RETURNING seq, head, mark`

// settled implements [sqlstore.Server].
func (s *Store) settled(ctx context.Context, before, after sqlstore.Place) (bool, error) {
	ctx = store.Everywhere(ctx) // a commit is of the writes of many
	tx, err := s.write.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	chain, is := after.Head.ID, sqlstore.Place{}
	if err := tx.QueryRowContext(ctx, lastWord, chain).Scan(&is.Head.Seq, &is.Head.Head, &is.Mark); err != nil {
		return false, err
	}
	appended := after.Head.Seq > before.Head.Seq
	done := false
	switch at := is.Head; {
	case appended && at.Seq >= after.Head.Seq:
		var n int
		err = tx.QueryRowContext(ctx, "SELECT count(*) FROM entries WHERE chain = $1 AND seq = $2 AND hash = $3", chain, after.Head.Seq, after.Head.Head).Scan(&n)
		done = n > 0
	case !appended && is.Mark >= after.Mark:
		done = at.Seq == after.Head.Seq && at.Head == after.Head.Head && is.Mark == after.Mark
		if !done {
			err = fmt.Errorf("another node took chain %d over, and whether a write was made before cannot be told: %w", chain, store.ErrLapsed)
		}
	}
	if err != nil {
		return false, err
	}
	return done, tx.Commit()
}
