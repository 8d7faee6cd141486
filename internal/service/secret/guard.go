package secret

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/base/words"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/plugin"
)

// Guard returns a store in which no writer can leave a secret that the scrubber knows.
// What people read is written without them: entries, documents, what is said about
// artifacts. What must stay what it is, because a call is run again with it or a plugin
// gets it back, is encrypted with the ledger's key, which is in dir; a host that reads
// it there has its secrets removed from its output from then on. A name under which
// something is found again can be neither, so one with a secret in it is refused.
func (s *Scrubber) Guard(st store.Store, dir string) store.Store {
	if s == nil {
		return st
	}
	return &guarded{Store: st, s: s, dir: dir}
}

type guarded struct {
	store.Store
	s   *Scrubber
	dir string

	mu    sync.Mutex // guards found
	found *store.Key
}

// Held says what a store with a lease says of it.
func (g *guarded) Held() error {
	if st, leased := g.Store.(interface{ Held() error }); leased {
		return st.Held()
	}
	return nil
}

// key returns the ledger's key, which may be made only after this was opened.
func (g *guarded) key() (*store.Key, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.found == nil {
		key, err := store.ReadKey(g.dir)
		if err != nil {
			return nil, fmt.Errorf("what has secrets in it is encrypted where it is kept: %w", err)
		}
		g.found = key
	}
	return g.found, nil
}

var _ store.Store = (*guarded)(nil)

// Write implements [store.Store].
func (g *guarded) Write(ctx context.Context, fn func(store.Tx) error) error {
	return g.Store.Write(ctx, g.wrap(fn))
}

// WriteLast implements [store.Store].
func (g *guarded) WriteLast(ctx context.Context, fn func(store.Tx) error) error {
	return g.Store.WriteLast(ctx, g.wrap(fn))
}

// Recover implements [store.Store].
func (g *guarded) Recover(ctx context.Context, fn func(store.Tx, store.NodeRow) error) (int, error) {
	return g.Store.Recover(ctx, func(tx store.Tx, n store.NodeRow) error { return fn(&guardedTx{tx, g}, n) })
}

// Snapshot implements [store.Store].
func (g *guarded) Snapshot(ctx context.Context, fn func(store.Reader) error) error {
	return g.Store.Snapshot(ctx, func(r store.Reader) error { return fn(&guardedReader{r, g}) })
}

// Body implements [store.Reader].
func (g *guarded) Body(ctx context.Context, tenant, hash string) ([]byte, error) {
	return g.body(ctx, g.Store, tenant, hash)
}

// KV implements [store.Reader].
func (g *guarded) KV(ctx context.Context, key store.KVKey) (*store.KVRow, error) {
	return g.kv(ctx, g.Store, key)
}

// ArtifactData implements [store.Reader].
func (g *guarded) ArtifactData(ctx context.Context, tenant, session, id string) ([]byte, error) {
	return g.artifact(ctx, g.Store, tenant, session, id)
}

func (g *guarded) wrap(fn func(store.Tx) error) func(store.Tx) error {
	if fn == nil {
		return nil
	}
	return func(tx store.Tx) error { return fn(&guardedTx{tx, g}) }
}

func (g *guarded) body(ctx context.Context, r store.Reader, tenant, hash string) ([]byte, error) {
	data, err := r.Body(ctx, tenant, hash)
	if err != nil || !chain.Sealed(data) {
		return data, err
	}
	return g.unseal(data, store.BodyPlace(tenant, hash))
}

func (g *guarded) kv(ctx context.Context, r store.Reader, key store.KVKey) (*store.KVRow, error) {
	row, err := r.KV(ctx, key)
	if err != nil || row == nil || !chain.Sealed(row.Value) {
		return row, err
	}
	row.Value, err = g.unseal(row.Value, store.KVPlace(key))
	return row, err
}

func (g *guarded) artifact(ctx context.Context, r store.Reader, tenant, session, id string) ([]byte, error) {
	data, err := r.ArtifactData(ctx, tenant, session, id)
	if err != nil || !chain.Sealed(data) {
		return data, err
	}
	return g.unseal(data, store.ArtifactPlace(tenant, session, id))
}

func (g *guarded) unseal(data []byte, place []string) ([]byte, error) {
	key, err := g.key()
	if err != nil {
		return nil, err
	}
	plain, secrets, err := key.Unseal(data, place...)
	for _, value := range secrets {
		if err := g.s.Know(value); err != nil {
			return nil, err
		}
	}
	return plain, err
}

// sealed returns what is kept in the place of data, which is data itself where no
// secret is in it.
func (g *guarded) sealed(data []byte, place []string) (kept []byte, is bool, err error) {
	secrets := g.s.within(data)
	if len(secrets) == 0 && !chain.Sealed(data) { // what looks sealed would be taken for it
		return data, false, nil
	}
	key, err := g.key()
	if err != nil {
		return nil, false, err
	}
	kept, err = key.Seal(data, secrets, place...)
	return kept, true, err
}

type guardedReader struct {
	store.Reader
	g *guarded
}

// Body implements [store.Reader].
func (r *guardedReader) Body(ctx context.Context, tenant, hash string) ([]byte, error) {
	return r.g.body(ctx, r.Reader, tenant, hash)
}

// KV implements [store.Reader].
func (r *guardedReader) KV(ctx context.Context, key store.KVKey) (*store.KVRow, error) {
	return r.g.kv(ctx, r.Reader, key)
}

// ArtifactData implements [store.Reader].
func (r *guardedReader) ArtifactData(ctx context.Context, tenant, session, id string) ([]byte, error) {
	return r.g.artifact(ctx, r.Reader, tenant, session, id)
}

type guardedTx struct {
	store.Tx
	g *guarded
}

// Append implements [store.Tx].
func (t *guardedTx) Append(e plugin.Entry) {
	if s := t.g.s; !s.idle() {
		e.Subject, e.Principal = s.Text(e.Subject), s.Text(e.Principal)
		if len(e.Body) > 0 {
			e.Body = s.JSON(e.Body)
		}
	}
	t.Tx.Append(e)
}

// Body implements [store.Reader].
func (t *guardedTx) Body(ctx context.Context, tenant, hash string) ([]byte, error) {
	return t.g.body(ctx, t.Tx, tenant, hash)
}

// KV implements [store.Reader].
func (t *guardedTx) KV(ctx context.Context, key store.KVKey) (*store.KVRow, error) {
	return t.g.kv(ctx, t.Tx, key)
}

// ArtifactData implements [store.Reader].
func (t *guardedTx) ArtifactData(ctx context.Context, tenant, session, id string) ([]byte, error) {
	return t.g.artifact(ctx, t.Tx, tenant, session, id)
}

// PutBody implements [store.Tx].
func (t *guardedTx) PutBody(tenant string, data []byte, expires time.Time) (string, error) {
	hash := canon.Sum(data)
	kept, is, err := t.g.sealed(data, store.BodyPlace(tenant, hash))
	if err != nil {
		return "", err
	}
	if !is {
		return t.Tx.PutBody(tenant, data, expires)
	}
	return hash, t.Tx.PutSealedBody(tenant, hash, kept, expires)
}

// name refuses a name that has a secret in it.
func (t *guardedTx) name(what, name string) error {
	if t.g.s.Text(name) == name {
		return nil
	}
	return plugin.Errorf(plugin.CodeInvalidInput, "%s has a secret in it, and names are kept as they are; derive it from something else", what)
}

// InsertCall implements [store.Tx].
func (t *guardedTx) InsertCall(row store.CallRow) (*store.CallRow, error) {
	if err := t.name("the key of the call", row.Key); err != nil {
		return nil, err
	}
	return t.Tx.InsertCall(row)
}

// InsertApproval implements [store.Tx].
func (t *guardedTx) InsertApproval(row store.ApprovalRow) error {
	row.Why = t.g.s.Text(row.Why)
	return t.Tx.InsertApproval(row)
}

// UpdateApproval implements [store.Tx].
func (t *guardedTx) UpdateApproval(from store.ApprovalState, next store.ApprovalRow) (bool, error) {
	next.Reason = t.g.s.Text(next.Reason)
	return t.Tx.UpdateApproval(from, next)
}

// InsertSchedule implements [store.Tx]. Its input is run again and again as it is,
// and shown to people.
func (t *guardedTx) InsertSchedule(row store.ScheduleRow) error {
	if err := t.shown(row); err != nil {
		return err
	}
	return t.Tx.InsertSchedule(row)
}

// shown refuses the input of a feed that has a secret in it.
func (t *guardedTx) shown(row store.ScheduleRow) error {
	if string(t.g.s.JSON([]byte(row.Input))) != row.Input {
		return plugin.Errorf(plugin.CodeInvalidInput, "the input of the feed has a secret in it, and inputs of feeds are shown; a plugin that needs a secret says so in its manifest, and is given it at each run")
	}
	return nil
}

// UpdateSchedule implements [store.Tx]. An input that is as it was runs on, whatever became a
// secret since.
func (t *guardedTx) UpdateSchedule(row store.ScheduleRow) (bool, error) {
	if refused := t.shown(row); refused != nil {
		was, err := t.Schedule(context.Background(), row.Tenant, row.ID)
		if err != nil {
			return false, err
		}
		if was == nil || was.Input != row.Input {
			return false, refused
		}
	}
	return t.Tx.UpdateSchedule(row)
}

// UpdatePlan implements [store.Tx].
func (t *guardedTx) UpdatePlan(fence store.PlanFence, next store.PlanRow) (bool, error) {
	next.Message = t.g.s.Text(next.Message)
	return t.Tx.UpdatePlan(fence, next)
}

// InsertMessage implements [store.Tx].
func (t *guardedTx) InsertMessage(row store.MessageRow) (int64, error) {
	row.Body = t.g.s.JSON(row.Body)
	return t.Tx.InsertMessage(row)
}

// PutMemory implements [store.Tx].
func (t *guardedTx) PutMemory(row store.MemoryRow) error {
	if err := t.name("the key of the memory", row.Key); err != nil {
		return err
	}
	if masked := t.g.s.Text(row.Content); masked != row.Content {
		row.Content, row.Terms = masked, strings.Join(words.Of(row.Key+" "+masked), " ") // the index has its words too
	}
	return t.Tx.PutMemory(row)
}

// InsertOutbox implements [store.Tx].
func (t *guardedTx) InsertOutbox(row store.OutboxRow, most int) (int, error) {
	row.Body, row.Problem = t.g.s.JSON(row.Body), t.g.s.Text(row.Problem)
	return t.Tx.InsertOutbox(row, most)
}

// UpdateOutbox implements [store.Tx].
func (t *guardedTx) UpdateOutbox(attempt int64, row store.OutboxRow) (bool, error) {
	row.Problem = t.g.s.Text(row.Problem)
	return t.Tx.UpdateOutbox(attempt, row)
}

// PutKV implements [store.Tx].
func (t *guardedTx) PutKV(row store.KVRow) (err error) {
	if err := t.name("the namespace of what is kept", row.Namespace); err != nil {
		return err
	}
	if err := t.name("the key of what is kept", row.Key); err != nil {
		return err
	}
	if row.Value, _, err = t.g.sealed(row.Value, store.KVPlace(row.KVKey)); err != nil {
		return err
	}
	return t.Tx.PutKV(row)
}

// PutDocument implements [store.Tx]. Its text was cleaned before it was cut.
func (t *guardedTx) PutDocument(row store.DocumentRow, chunks []store.ChunkRow) (bool, error) {
	if err := t.name("the id of the source", row.SourceID); err != nil {
		return false, err
	}
	return t.Tx.PutDocument(t.document(row), chunks)
}

// UpdateDocument implements [store.Tx].
func (t *guardedTx) UpdateDocument(row store.DocumentRow) (bool, error) {
	return t.Tx.UpdateDocument(t.document(row))
}

func (t *guardedTx) document(row store.DocumentRow) store.DocumentRow {
	s := t.g.s
	row.Title, row.Filename, row.URL, row.MIME = s.Text(row.Title), s.Text(row.Filename), s.Text(row.URL), s.Text(row.MIME)
	row.Extraction, row.Attributes = string(s.JSON([]byte(row.Extraction))), string(s.JSON([]byte(row.Attributes)))
	return row
}

// InsertArtifact implements [store.Tx].
func (t *guardedTx) InsertArtifact(row store.ArtifactRow, data []byte) (inserted, prior *store.ArtifactRow, open bool, err error) {
	s := t.g.s
	if data, _, err = t.g.sealed(data, store.ArtifactPlace(row.Tenant, row.SessionID, row.ID)); err != nil {
		return nil, nil, false, err
	}
	row.Name, row.SourceTool, row.Metadata = s.Text(row.Name), s.Text(row.SourceTool), string(s.JSON([]byte(row.Metadata)))
	return t.Tx.InsertArtifact(row, data)
}
