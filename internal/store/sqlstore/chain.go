package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/mortise-dev/mortise/internal/store/chain"
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

// seal is the last of a transaction before its commit: it appends the entries.
func (t *tx) seal() error {
	t.after = t.before
	if len(t.entries) > 0 || len(t.touched) > 0 || len(t.delta) > 0 || t.signing {
		if err := t.link(); err != nil || len(t.entries) > 0 {
			return err
		}
	}
	if s := t.writer.engine.Server; s != nil {
		t.after.Mark++
		t.last, t.args = s.Mark, []any{t.chain}
	}
	return nil
}

// link gives the transaction's entries their places after the head of the
// chain, and signs the new head.
//
// The head is read here each time, because other processes append too, and it is
// authenticated before it is built upon: signing a successor of a forged head would
// make the forgery valid.
func (t *tx) link() error {
	key, err := t.signer()
	if err != nil {
		return err
	}
	head, found := t.before.Head, t.before.Head.Seq > 0
	if t.writer.engine.Server == nil {
		head = chain.Head{ID: t.chain}
		if found, err = t.Row([]any{&head.Node, &head.Seq, &head.Head, &head.MAC, &head.Authority}, selectHead, head.ID); err != nil {
			return err
		}
	}
	if t.writer.engine.Server == nil && t.before.Head.Seq > 0 {
		if err := t.reaches(head, found); err != nil {
			return err
		}
	}
	if found && !key.Signed(head) {
		return fmt.Errorf("%w: the head of chain %d at entry %d does not bear this host's signature", chain.ErrTampered, head.ID, head.Seq)
	}
	if !found {
		first, err := t.Entry(context.Background(), head.ID, 1)
		if err != nil {
			return err
		}
		if first != nil {
			return fmt.Errorf("%w: chain %d has entries and no head", chain.ErrTampered, head.ID)
		}
	}

	authority, err := t.authority(head.Authority)
	if err != nil || len(t.entries) == 0 {
		return err
	}
	head.Authority = authority
	for i := range t.entries {
		e := &t.entries[i]
		e.Chain, e.Seq, e.Prev = head.ID, head.Seq+1, head.Head
		e.Hash = chain.Hash(e)
		head.Seq, head.Head = e.Seq, e.Hash
	}
	head.MAC = key.Sign(head)
	t.after.Head = head
	if err := t.insertEntries(head); err != nil {
		return fmt.Errorf("appending entries to chain %d: %w", head.ID, err)
	}
	return nil
}

// reaches refuses a head that does not come after the one that this process wrote
// last: the file is an older copy, or another database, that was put in its place.
func (t *tx) reaches(head chain.Head, found bool) error {
	last := t.before.Head
	switch {
	case !found || head.Seq < last.Seq:
		return fmt.Errorf("%w: this process wrote entry %d of chain %d, and now the chain ends at entry %d: the database is an older copy that was put in its place",
			chain.ErrTampered, last.Seq, last.ID, head.Seq)
	case head.Seq == last.Seq && head.Head == last.Head:
		return nil
	}
	e, err := t.Entry(context.Background(), last.ID, last.Seq)
	if err == nil && (e == nil || e.Hash != last.Head) {
		err = fmt.Errorf("%w: entry %d of chain %d is not the one that this process wrote: another database was put in its place", chain.ErrTampered, last.Seq, last.ID)
	}
	return err
}

func (t *tx) insertEntries(head chain.Head) error {
	if s := t.writer.engine.Server; s != nil {
		t.last, t.args = s.Append, append(columns(t.entries), head.Seq, head.Head, head.MAC, head.Authority, head.ID)
		return nil
	}
	for rest := t.entries; len(rest) > 0; {
		i := slices.IndexFunc(chunks[:], func(n int) bool { return n <= len(rest) })
		if err := t.insert(insertEntries[i], t.writer.arguments(rest[:chunks[i]])); err != nil {
			return err
		}
		rest = rest[chunks[i]:]
	}
	_, err := t.Exec(putHead, head.ID, head.Node, head.Seq, head.Head, head.MAC, head.Authority)
	return err
}

// arguments returns the columns of entries, one after the other. They hold until the next
// call. What entry after entry has in common becomes an argument once.
func (w *writer) arguments(entries []plugin.Entry) []any {
	args := w.args[:0]
	defer func() { w.args = args }()
	var same [5]any // chain, tenant, kind, principal, and the hash of the entry before
	common := func(i int, text string) any {
		if had, _ := same[i].(string); same[i] == nil || had != text {
			same[i] = text
		}
		return same[i]
	}
	for i := range entries {
		e := &entries[i]
		if had, _ := same[0].(int64); had != e.Chain {
			same[0] = e.Chain
		}
		args = append(args, same[0], e.Seq, e.At.UnixMicro(), common(1, e.Tenant), common(2, string(e.Kind)), e.Subject, common(3, e.Principal),
			textOf(e.Body), common(4, e.Prev), common(4, e.Hash))
	}
	return args
}

// textOf returns the body of an entry as text, without a copy of it: nothing changes a body.
func textOf(body []byte) string { return unsafe.String(unsafe.SliceData(body), len(body)) }

// columns returns entries as one array for each of entryColumns.
func columns(entries []plugin.Entry) []any {
	var numbers [3][]int64
	var texts [7][]string
	for i := range entries {
		e := &entries[i]
		for c, n := range [...]int64{e.Chain, e.Seq, e.At.UnixMicro()} {
			numbers[c] = append(numbers[c], n)
		}
		for c, text := range [...]string{e.Tenant, string(e.Kind), e.Subject, e.Principal, textOf(e.Body), e.Prev, e.Hash} {
			texts[c] = append(texts[c], text)
		}
	}
	args := make([]any, 0, len(numbers)+len(texts)+4)
	for _, n := range numbers {
		args = append(args, n)
	}
	for _, text := range texts {
		args = append(args, text)
	}
	return args
}

// signer returns the key. Once a transaction with it was committed it is known
// for good.
func (t *tx) signer() (_ *chain.Key, err error) {
	if t.key = t.writer.key; t.key == nil {
		if t.key, err = t.writer.engine.Key(t); err != nil {
			return nil, fmt.Errorf("the key of the ledger: %w", err)
		}
	}
	return t.key, nil
}

func scanEntry(rows *record, e *plugin.Entry) error {
	var at int64
	var kind, body string
	if err := rows.Scan(&e.Chain, &e.Seq, &at, &e.Tenant, &kind, &e.Subject, &e.Principal, &body, &e.Prev, &e.Hash); err != nil {
		return err
	}
	e.At, e.Kind, e.Body = entryTime(at), plugin.EntryKind(kind), []byte(body)
	return nil
}
