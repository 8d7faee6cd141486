package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/plugin"
)

// A Report is what verifying found.
type Report struct {
	Entries int64    // that were walked
	Bodies  int64    // that were hashed
	Chains  int      // that have a head
	Head    string   // hash of the last entry of the last chain
	Notes   []string // what could not be checked, or looks odd, in sentences
	Fault   *Fault   // the first place where the ledger does not hold; nil if it does
}

// A Fault is a place where the ledger was changed.
type Fault struct {
	Chain int64 // 0 for a body
	Seq   int64
	What  string // a sentence
}

// Verify walks every chain, in one snapshot and without holding more than an
// entry at a time, and stops at the first fault. It proves that no entry was
// changed, removed, moved or added by anyone without the key; and, with an
// anchor, that the database is not emptied or an older copy. Beyond the anchor,
// which clean closes move forward, an older copy with the key it was signed
// with is a ledger that was never written further.
//
// key is nil where its file is missing, and so may anchors be, of which there is
// one for each chain. Read them before opening the snapshot, as
// [store.ReadAnchors] says.
func Verify(ctx context.Context, st store.Store, key *store.Key, anchors ...*store.Anchor) (report Report, err error) {
	anchors = slices.DeleteFunc(slices.Clone(anchors), func(a *store.Anchor) bool { return a == nil })
	err = st.Snapshot(ctx, func(r store.Reader) error {
		v := &verifier{ctx: ctx, r: r, key: key, anchors: anchors, report: &report}
		return v.run()
	})
	return report, err
}

// VerifyHome is Verify with the key and the anchors of a data directory.
func VerifyHome(ctx context.Context, st store.Store, home string) (Report, error) {
	key, err := store.ReadKey(home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Report{}, err
	}
	anchors, err := store.ReadAnchors(home)
	if err != nil {
		return Report{}, err
	}
	return Verify(ctx, st, key, anchors...)
}

// VerifyCopy is Verify for a copy that is not in its place yet. Without a key it cannot
// check the signed heads of the chains, and relies on the caller to have compared them
// with those noted when the copy was made.
func VerifyCopy(ctx context.Context, st store.Store, key *store.Key) (report Report, err error) {
	err = st.Snapshot(ctx, func(r store.Reader) error {
		v := &verifier{ctx: ctx, r: r, key: key, trusting: key == nil, report: &report}
		return v.run()
	})
	return report, err
}

// A verifier is one walk.
type verifier struct {
	trusting bool // heads need no signature

	ctx     context.Context
	r       store.Reader
	key     *store.Key
	anchors []*store.Anchor
	report  *Report

	heads  map[int64]store.ChainRow // of chains that were not closed yet
	walked map[int64]bool           // chains that have entries
}

func (v *verifier) run() error {
	for _, a := range v.anchors {
		if v.key != nil && !v.key.Anchored(a) {
			return v.fault(a.Chain, a.Seq, "the anchor does not bear the key's signature: it, or the key, is not this ledger's")
		}
	}
	if err := v.classes(); err != nil || v.report.Fault != nil {
		return err
	}
	chains, err := v.r.Chains(v.ctx)
	if err != nil {
		return err
	}
	v.walked = make(map[int64]bool, len(chains))
	v.heads = make(map[int64]store.ChainRow, len(chains))
	for _, head := range chains {
		v.heads[head.ID] = head
	}
	v.report.Chains = len(chains)
	if err := v.walk(); err != nil || v.report.Fault != nil {
		return err
	}
	// Chains of which not a single entry was met.
	for _, head := range chains {
		if _, missed := v.heads[head.ID]; missed {
			v.end(plugin.Entry{Chain: head.ID})
			if v.report.Fault != nil {
				return nil
			}
		}
	}
	v.note()
	if err := v.authority(chains); err != nil {
		return err
	}
	return v.bodies()
}

// classes checks that each value of each table is one of its column's, before anything is
// looked for by value: what is not is passed over.
func (v *verifier) classes() error {
	err := v.r.CheckClasses(v.ctx)
	var class *store.ClassError
	if errors.As(err, &class) {
		return v.fault(0, 0, "%v", class)
	}
	return err
}

// walk follows the links of all chains, one after the other.
func (v *verifier) walk() error {
	var last plugin.Entry // zero before the first
	for e, err := range v.r.Entries(v.ctx, store.EntryFilter{}) {
		if err != nil {
			return err
		}
		if e.Chain != last.Chain {
			if last.Seq > 0 {
				v.end(last)
			}
			last = plugin.Entry{Chain: e.Chain}
			v.walked[e.Chain] = true
		}
		if v.report.Fault == nil {
			v.entry(&last, &e)
		}
		if v.report.Fault != nil {
			return nil
		}
		v.report.Entries++
		v.report.Head = e.Hash
		last = e
	}
	if last.Seq > 0 {
		v.end(last)
	}
	return nil
}

// entry checks e as the successor of last.
func (v *verifier) entry(last, e *plugin.Entry) {
	switch {
	case e.Seq <= last.Seq:
		v.fault(e.Chain, e.Seq, "entry %d was not written by this ledger: a chain begins with entry 1", e.Seq)
	case e.Seq != last.Seq+1:
		v.fault(e.Chain, last.Seq+1, "%s missing: after entry %d comes entry %d", span(last.Seq+1, e.Seq-1), last.Seq, e.Seq)
	case chain.Hash(e) != e.Hash:
		v.fault(e.Chain, e.Seq, "entry %d was changed: its contents do not give its hash", e.Seq)
	case e.Prev != last.Hash:
		v.fault(e.Chain, e.Seq, "entry %d does not follow entry %d: the hash it names is not that entry's, so one of the two was replaced", e.Seq, last.Seq)
	case v.rewritten(e):
		v.fault(e.Chain, e.Seq, "entry %d is not the one the anchor remembers: the ledger was rewritten at or before it", e.Seq)
	}
}

// end checks that the chain ends with last, as the key says it does.
func (v *verifier) end(last plugin.Entry) {
	chain := last.Chain
	head, ok := v.heads[chain]
	delete(v.heads, chain)
	anchor := v.anchor(chain)
	switch {
	case !ok:
		v.fault(chain, last.Seq, "the head of the chain is missing: nothing says that entry %d is the last", last.Seq)
	case v.key == nil && !v.trusting:
		v.fault(chain, head.Seq, "%s is missing: nothing says who signed the head at entry %d", store.KeyFile, head.Seq)
	case !v.trusting && !v.key.Signed(head):
		v.fault(chain, head.Seq, "the head at entry %d does not bear the key's signature: it was not written by this ledger", head.Seq)
	case last.Seq < head.Seq:
		v.fault(chain, last.Seq+1, "the tail is cut off: %s missing, the head is at entry %d", span(last.Seq+1, head.Seq), head.Seq)
	case last.Seq > head.Seq:
		v.fault(chain, head.Seq+1, "%s not written by this ledger: the signed head is at entry %d", added(head.Seq+1, last.Seq), head.Seq)
	case last.Hash != head.Head:
		v.fault(chain, head.Seq, "entry %d is not the one that was signed: it, or entries before it, were rewritten with new hashes", head.Seq)
	case anchor != nil && last.Seq < anchor.Seq:
		v.fault(chain, last.Seq+1, "the database is an older copy: it ends at entry %d and the anchor remembers entry %d", last.Seq, anchor.Seq)
	}
}

func (v *verifier) rewritten(e *plugin.Entry) bool {
	a := v.anchor(e.Chain)
	return a != nil && a.Seq == e.Seq && a.Head != e.Hash
}

// anchor returns the anchor of a chain, nil if there is none.
func (v *verifier) anchor(chain int64) *store.Anchor {
	for _, a := range v.anchors {
		if a.Chain == chain {
			return a
		}
	}
	return nil
}

// note says what the walk could not tell.
func (v *verifier) note() {
	for _, a := range v.anchors {
		if v.report.Entries == 0 {
			v.fault(a.Chain, 1, "the ledger is empty and the anchor remembers entry %d: it was deleted, or the database replaced", a.Seq)
		} else if !v.walked[a.Chain] {
			v.fault(a.Chain, 1, "the chain is missing and its anchor remembers entry %d: it was deleted, or the database replaced", a.Seq)
		}
	}
	switch {
	case len(v.anchors) > 0:
		for _, chain := range slices.Sorted(maps.Keys(v.walked)) {
			if v.anchor(chain) == nil {
				v.notef("There is no anchor of chain %d here, so an older copy of it would not be noticed; the next clean close after a write makes one.", chain)
			}
		}
	case v.report.Entries > 0:
		v.notef("There is no anchor, so an older copy of the database would not be noticed; the next clean close after a write makes one.")
	case v.key != nil:
		v.notef("The ledger is empty, there is no anchor, and yet there is a key, which is made for the first entry: look for what became of the entries.")
	}
	if v.key == nil && len(v.anchors) > 0 {
		v.notef("The anchor's signature was not checked, for want of %s.", store.KeyFile)
	}
}

// authority checks that the rows that decide authority are those that were signed.
func (v *verifier) authority(heads []store.ChainRow) error {
	if v.report.Fault != nil || v.key == nil && !v.trusting && len(heads) > 0 {
		return nil
	}
	err := store.CheckAuthority(v.ctx, v.r, v.key)
	if err == nil {
		err = store.CheckLive(v.ctx, v.r, v.key)
	}
	if err == nil && v.key != nil {
		err = v.kept()
	}
	if errors.Is(err, store.ErrTampered) {
		var rows *store.AuthorityError
		if errors.As(err, &rows) {
			return v.fault(0, 0, "%v", rows)
		}
		return v.fault(0, 0, "%v", err)
	}
	if err == nil && len(heads) > 0 {
		if none, _ := store.Unsigned(v.ctx, v.r, v.key); none {
			v.notef("An earlier release wrote this ledger, and not all rows that decide authority are signed yet; the next host that is opened here signs them.")
		}
	}
	return err
}

// kept checks the rows that bear a signature each: approvals that are closed, page by
// page, sessions and artifacts, and what is kept of conversations and for plugins.
func (v *verifier) kept() error {
	if none, err := store.UnsignedLife(v.ctx, v.r, v.key); none || err != nil {
		return err
	}
	const page = 500
	for f := (store.ApprovalFilter{Limit: page}); ; {
		rows, err := v.r.Approvals(v.ctx, f)
		if err == nil {
			err = store.CheckClosed(v.key, rows...)
		}
		if err != nil {
			return err
		}
		if len(rows) < page {
			break
		}
		f.Before = rows[len(rows)-1].ID
	}
	sessions, err := v.r.Sessions(v.ctx, store.SessionFilter{})
	if err == nil {
		err = store.CheckKept(v.key, store.ProofsOf(sessions...)...)
	}
	if err != nil {
		return err
	}
	for _, s := range sessions {
		artifacts, err := v.r.Artifacts(v.ctx, s.Tenant, s.ID)
		if err == nil {
			err = store.CheckKept(v.key, store.ProofsOf(artifacts...)...)
		}
		if err != nil {
			return err
		}
	}
	if none, err := store.Unsigned(v.ctx, v.r, v.key); none || err != nil {
		return err
	}
	return v.r.CheckKept(v.ctx, v.key)
}

// bodies checks that what is kept under a hash has that hash.
func (v *verifier) bodies() error {
	if v.report.Fault != nil {
		return nil
	}
	sealed := 0
	for b, err := range v.r.Bodies(v.ctx) {
		if err != nil {
			return err
		}
		if chain.Sealed(b.Data) {
			if v.key == nil {
				sealed++
				continue
			}
			if b.Data, _, err = v.key.Unseal(b.Data, store.BodyPlace(b.Tenant, b.Hash)...); err != nil {
				return v.fault(0, 0, "body %s of tenant %q was changed: %v", b.Hash, b.Tenant, err)
			}
		}
		if canon.Sum(b.Data) != b.Hash {
			return v.fault(0, 0, "body %s of tenant %q was changed: it no longer has that hash", b.Hash, b.Tenant)
		}
		v.report.Bodies++
	}
	if sealed > 0 {
		v.notef("%d bodies are encrypted and were not checked, for want of %s.", sealed, store.KeyFile)
	}
	return nil
}

// fault records the first fault. It returns nil: a fault is a finding.
func (v *verifier) fault(chain, seq int64, format string, args ...any) error {
	if v.report.Fault == nil {
		v.report.Fault = &Fault{Chain: chain, Seq: seq, What: fmt.Sprintf(format, args...)}
	}
	return nil
}

func (v *verifier) notef(format string, args ...any) {
	v.report.Notes = append(v.report.Notes, fmt.Sprintf(format, args...))
}

func span(from, to int64) string {
	if from == to {
		return fmt.Sprintf("entry %d is", from)
	}
	return fmt.Sprintf("entries %d to %d are", from, to)
}

func added(from, to int64) string {
	if from == to {
		return fmt.Sprintf("entry %d was", from)
	}
	return fmt.Sprintf("entries %d to %d were", from, to)
}
