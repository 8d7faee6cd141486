package sqlstore

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

var _ Tx = (*tx)(nil)

// A tx is one transaction, of one batch of closures.
type tx struct {
	store.Verified // reads through reader
	reader         reader
	writer         *writer
	chain          int64                   // to append to
	before         Place                   // where it found the chain, if that is held
	after          Place                   // where it leaves it, once it is sealed
	entries        []plugin.Entry          // to be linked at the commit
	key            *store.Key              // if it was needed
	begun          bool                    // of a server's
	touched        map[string]bool         // tables of authority that it changes
	delta          map[string]store.Weight // what it adds to the live rows of a table
	ordered        bool                    // it holds the lock for that
	signing        bool                    // it signs what is not signed yet
	last           string                  // statement of a server's, which goes with the commit
	args           []any                   // for last
	err            error                   // the first statement that failed, or entry that was refused
}

// Append implements [store.Tx].
func (t *tx) Append(e plugin.Entry) {
	if len(e.Body) == 0 {
		e.Body = []byte("null")
	}
	if e.Kind == "" || !storable(e.Tenant, string(e.Kind), e.Subject, e.Principal, textOf(e.Body)) {
		t.fail(fmt.Errorf("entry %q about %q cannot be kept: it has no kind, or text that is not UTF-8 without NUL", e.Kind, e.Subject))
		return
	}
	t.entries = append(t.entries, e)
}

// storable reports whether every engine gives texts back as they are.
func storable(texts ...string) bool {
	for _, text := range texts {
		if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
			return false
		}
	}
	return true
}

// PutBody implements [store.Tx].
func (t *tx) PutBody(tenant string, data []byte, expires time.Time) (string, error) {
	if data == nil {
		data = []byte{} // NULL is a body that was erased
	}
	hash := canon.Sum(data)
	_, err := t.Exec(putBody, tenant, hash, data, micros(expires))
	return hash, err
}

// PutSealedBody implements [store.Tx].
func (t *tx) PutSealedBody(tenant, hash string, sealed []byte, expires time.Time) error {
	_, err := t.Exec(putSealedBody, tenant, hash, sealed, micros(expires))
	return err
}

// NameBody implements [store.Tx].
func (t *tx) NameBody(r store.EntryBodyRow) error {
	_, err := t.Exec(nameBody, r.Tenant, r.Hash, r.Subject, r.Principal, micros(r.ExpiresAt))
	return err
}

// PutPackage implements [store.Tx].
func (t *tx) PutPackage(r store.PackageRow) error {
	_, err := t.Exec(putPackage, r.Digest, r.Source, r.Signer)
	return err
}

// PutPlugin implements [store.Tx].
func (t *tx) PutPlugin(r store.PluginRow) error {
	_, err := t.Exec(putPlugin, r.Name, r.Version, r.PackageDigest, r.Path, string(r.Manifest), string(r.State), r.ApprovedBy,
		flag(r.Dev), micros(r.RegisteredAt))
	return err
}

// SetPluginState implements [store.Tx].
func (t *tx) SetPluginState(name, version string, state store.PluginState) (bool, error) {
	return t.Exec(`UPDATE plugins SET state = ? WHERE name = ? AND version = ?`, string(state), name, version)
}

// DeletePlugin implements [store.Tx].
func (t *tx) DeletePlugin(name, version string) (bool, error) {
	return t.Exec(`DELETE FROM plugins WHERE name = ? AND version = ?`, name, version)
}

// InsertNode implements [store.Tx].
func (t *tx) InsertNode(r store.NodeRow) error {
	_, err := t.Exec(`INSERT INTO nodes (id, addr, epoch, started_at, lease_until) VALUES (?, ?, ?, ?, ?)`,
		r.ID, r.Addr, r.Epoch, micros(r.StartedAt), micros(r.LeaseUntil))
	return err
}

// DeleteNode implements [store.Tx].
func (t *tx) DeleteNode(id string) (bool, error) {
	return t.Exec(`DELETE FROM nodes WHERE id = ?`, id)
}

// leave removes this process's row, unless calls or plans of it are running: then the
// row stays, and the process that recovers it settles them.
func (t *tx) leave(id string) (bool, error) {
	return t.Exec(`DELETE FROM nodes WHERE id = ?
		AND NOT EXISTS (SELECT 1 FROM calls WHERE node = ? AND state = 'running')
		AND NOT EXISTS (SELECT 1 FROM plans WHERE node = ? AND state = 'running')`, id, id, id)
}

// Exec implements [Tx].
func (t *tx) Exec(query string, args ...any) (bool, error) {
	if err := keepable(query, args); err != nil {
		return false, t.fail(err)
	}
	if table := written(query); table != "" {
		if err := t.touch(table); err != nil {
			return false, t.fail(err)
		}
	}
	result, err := t.writer.exec(query, args...)
	if err != nil {
		return false, t.fail(err)
	}
	n, err := result.RowsAffected()
	return n > 0, t.fail(err)
}

// insert executes a statement on a table whose rows are not signed: entries are chained.
func (t *tx) insert(query string, args []any) error {
	if err := keepable(query, args); err != nil {
		return t.fail(err)
	}
	return t.fail(t.writer.insert(query, args))
}

// Row implements [Tx].
func (t *tx) Row(dest []any, query string, args ...any) (found bool, err error) {
	if err := keepable(query, args); err != nil {
		return false, t.fail(err)
	}
	w := t.writer
	if s := w.engine.Server; s != nil && !t.begun {
		t.begun = true
		found, err = s.Begin(w.within(w.ctx), w.conn, dest, w.engine.rebind(query), args...)
		return found, t.fail(err)
	}
	rows, err := w.query(w.ctx, query, args...)
	if err != nil {
		return false, t.fail(err)
	}
	defer rows.Close()
	if found = rows.Next(); found {
		record := newRecord(rows, query, t.reader.typed)
		defer record.free()
		err = record.Scan(dest...)
	}
	return found && err == nil, t.fail(errors.Join(err, rows.Err()))
}

func (t *tx) fail(err error) error {
	if t.err == nil {
		t.err = err
	}
	return err
}

// keepable refuses a statement with a text that an engine would not give back,
// or would keep otherwise than another does.
func keepable(query string, args []any) error {
	for i, arg := range args {
		if text, ok := arg.(string); ok && !storable(text) {
			return fmt.Errorf("argument %d of %q cannot be kept: it is text that is not UTF-8 without NUL", i+1, query)
		}
	}
	return nil
}

// array returns texts as a table keeps them: as a JSON array.
func (t *tx) array(texts []string) (string, error) {
	if !storable(texts...) {
		return "", t.fail(fmt.Errorf("%q cannot be kept: one of them is not UTF-8 without NUL", texts))
	}
	data, err := json.Marshal(texts)
	return string(data), t.fail(err)
}

// grow adds labels to those that a row had, which its statement returned: labels
// of what is kept only grow, whatever writes over it. The statement signed the row
// with those that it put. update sets both; its other arguments name the row, which
// the statement before has locked, and sign is called once labels are what they grow to.
func (t *tx) grow(labels *[]string, put, had string, sign func() string, update string, row ...any) error {
	before, err := fromArray(had)
	if err != nil {
		return t.fail(fmt.Errorf("labels of what is kept: %w", err))
	}
	*labels = plugin.Labels(*labels, before)
	grown, err := t.array(*labels)
	if err != nil || grown == had && had == put {
		return err
	}
	_, err = t.Exec(update, append([]any{grown, sign()}, row...)...)
	return err
}

func fromArray(text string) (texts []string, err error) {
	err = json.Unmarshal([]byte(text), &texts)
	return texts, err
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// micros is how the store keeps a time: microseconds UTC, 0 for none.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}
