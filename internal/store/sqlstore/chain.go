package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// chunks is how many entries one statement inserts: of each batch as many as
// fit, largest first.
var chunks = [...]int{64, 16, 4, 1}

// insertEntries holds the statement for each of chunks.
var insertEntries = func() (texts [len(chunks)]string) {
	for i, n := range chunks {
		texts[i] = "INSERT INTO entries (" + entryColumns + ") VALUES " +
			strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, ?, ?, ?), ", n), ", ")
	}
	return texts
}()

// link gives the transaction's entries their places after the head of the
// chain, and signs the new head.
//
// The head is read here each time, because other processes append too, and it
// is authenticated before it is built upon: to sign a successor of a head that
// somebody forged would make the forgery good.
func (t *tx) link() error {
	if len(t.entries) == 0 {
		return nil
	}
	key, err := t.writer.signer()
	if err != nil {
		return err
	}
	head := store.ChainRow{ID: t.writer.engine.Chain}
	found, err := t.head(&head)
	switch {
	case err != nil:
		return err
	case !found:
		first, err := t.Entry(context.Background(), head.ID, 1)
		if err != nil {
			return err
		}
		if first != nil {
			return fmt.Errorf("%w: chain %d has entries and no head", store.ErrTampered, head.ID)
		}
	case !key.Signed(head):
		return fmt.Errorf("%w: the head of chain %d at entry %d does not bear this host's signature", store.ErrTampered, head.ID, head.Seq)
	}

	args := make([]any, 0, 10*len(t.entries))
	for i := range t.entries {
		e := &t.entries[i]
		e.Chain, e.Seq, e.Prev = head.ID, head.Seq+1, head.Head
		e.Hash = store.Hash(e)
		head.Seq, head.Head = e.Seq, e.Hash
		args = append(args, e.Chain, e.Seq, e.At.UnixMicro(), e.Tenant, string(e.Kind), e.Subject, e.Principal, string(e.Body), e.Prev, e.Hash)
	}
	for i, n := range chunks {
		for ; len(args) >= 10*n; args = args[10*n:] {
			if _, err := t.exec(insertEntries[i], args[:10*n]...); err != nil {
				return fmt.Errorf("appending entries to chain %d: %w", head.ID, err)
			}
		}
	}
	head.MAC = key.Sign(head)
	_, err = t.exec(putHead, head.ID, head.Node, head.Seq, head.Head, head.MAC)
	return err
}

func (t *tx) head(row *store.ChainRow) (found bool, err error) {
	stmt, err := t.stmt(context.Background(), selectHead)
	if err != nil {
		return false, t.fail(err)
	}
	err = stmt.QueryRowContext(context.Background(), row.ID).Scan(&row.Node, &row.Seq, &row.Head, &row.MAC)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, t.fail(err)
}

// signer returns the key, once it is known for good.
func (w *writer) signer() (*store.Key, error) {
	if w.key == nil {
		key, err := w.engine.Key()
		if err != nil {
			return nil, fmt.Errorf("the key of the ledger: %w", err)
		}
		w.key = key
	}
	return w.key, nil
}

func scanEntry(rows *sql.Rows, e *plugin.Entry) error {
	var at int64
	var kind string
	var body []byte
	if err := rows.Scan(&e.Chain, &e.Seq, &at, &e.Tenant, &kind, &e.Subject, &e.Principal, &body, &e.Prev, &e.Hash); err != nil {
		return err
	}
	e.At, e.Kind, e.Body = entryTime(at), plugin.EntryKind(kind), body
	return nil
}
