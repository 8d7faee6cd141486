package host

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// Which entries are wanted, and what a look at all of them found.
type (
	EntryQuery   = ledger.Filter
	LedgerReport = ledger.Report
)

// Ledger is the record of all calls, for who may read it. What is refused is on the
// record.
type Ledger struct{ admin Admin }

// Ledger returns the record of all calls.
func (a API) Ledger() Ledger { return Ledger{a.Admin()} }

// List returns the entries that fit, the newest last, and how many chains there are.
func (l Ledger) List(ctx context.Context, q EntryQuery) (entries []plugin.Entry, chains int, err error) {
	if err := l.admin.mayReadLedger(ctx); err != nil {
		return nil, 0, err
	}
	st := l.admin.g.Store
	ctx, q.Tenant = l.within(ctx, q.Tenant)
	if entries, err = ledger.List(ctx, st, q); err != nil {
		return nil, 0, err
	}
	if q.After == 0 { // they come newest first
		slices.Reverse(entries)
	}
	if l.admin.g.Divided {
		return entries, 1, nil // how the site keeps them is not a tenant's to know
	}
	all, err := st.Chains(ctx)
	return entries, len(all), err
}

// within returns which entries there are to read: those of the tenant alone, or of all for
// the site, which has one record.
func (l Ledger) within(ctx context.Context, asked string) (context.Context, string) {
	if l.admin.g.Divided {
		return ctx, l.admin.g.Tenant
	}
	return everywhere(ctx), asked
}

// A Head is the newest entry of a chain.
type Head struct {
	Chain int64
	Seq   int64
	Hash  string
}

// Heads returns the newest entry of each chain.
func (l Ledger) Heads(ctx context.Context) ([]Head, error) {
	if err := l.admin.mayReadHeads(ctx); err != nil {
		return nil, err
	}
	rows, err := l.admin.g.Store.Chains(ctx)
	heads := make([]Head, len(rows))
	for i, row := range rows {
		heads[i] = Head{row.ID, row.Seq, row.Head}
	}
	return heads, err
}

// Find returns the entries that the id of a call, a number or CHAIN/NUMBER means. The id
// may be cut short.
func (l Ledger) Find(ctx context.Context, given string) ([]plugin.Entry, error) {
	if err := l.admin.mayReadLedger(ctx); err != nil {
		return nil, err
	}
	st := l.admin.g.Store
	ctx, tenant := l.within(ctx, "")
	return byID("entry", given, func(id string) ([]plugin.Entry, error) { return entriesAt(ctx, st, tenant, id) }, among(func() ([]string, error) {
		entries, err := ledger.List(ctx, st, ledger.Filter{Tenant: tenant, Limit: lookBack})
		calls := slices.DeleteFunc(entries, func(e plugin.Entry) bool { return !strings.HasPrefix(string(e.Kind), "call.") })
		return idsOf(calls, func(e plugin.Entry) string { return e.Subject }), err
	}))
}

// entriesAt returns the entries that an id, a number or CHAIN/NUMBER means.
func entriesAt(ctx context.Context, st Reader, tenant, id string) ([]plugin.Entry, error) {
	chain, seq, placed := strings.Cut(id, "/")
	number := id
	if placed {
		number = seq
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return ledger.Show(ctx, st, tenant, id)
	}
	found, err := ledger.Show(ctx, st, tenant, strconv.FormatInt(n, 10))
	if err != nil {
		return nil, err
	}
	if placed {
		found = slices.DeleteFunc(found, func(e plugin.Entry) bool { return strconv.FormatInt(e.Chain, 10) != chain })
		if len(found) == 0 {
			return nil, plugin.Errorf(plugin.CodeNotFound, "there is no entry %s", id)
		}
	}
	if len(found) > 1 {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%d chains have an entry %d; name the chain too, as in %d/%d", len(found), n, found[0].Chain, n)
	}
	return found, nil
}

// VerifyLedger looks through the whole record in a store, by the key and the anchors that
// are in the data directory.
func VerifyLedger(ctx context.Context, st Store, home string) (LedgerReport, error) {
	return ledger.VerifyHome(ctx, st, home)
}

// Verify looks through the whole record of the site, and puts what was found on record.
// One look at a time is under way.
func (l Ledger) Verify(ctx context.Context) (LedgerReport, time.Time, error) {
	a := l.admin
	if err := a.mayReadHeads(ctx); err != nil {
		return LedgerReport{}, time.Time{}, err
	}
	verifying := &a.api.host.verifying
	if !verifying.TryLock() {
		return LedgerReport{}, time.Time{}, &plugin.Error{Code: plugin.CodeRateLimited, Message: "the ledger is being verified; the entry ledger.verified will say what was found", RetryAfter: 5 * time.Second}
	}
	defer verifying.Unlock()
	report, err := VerifyLedger(everywhere(ctx), a.g.Store, a.home)
	if errors.Is(err, errTampered) { // a row was read that the key did not sign
		report.Fault, err = &ledger.Fault{What: err.Error()}, nil
	}
	if err != nil {
		return LedgerReport{}, time.Time{}, err
	}
	found := map[string]any{"ok": report.Fault == nil, "entries": report.Entries, "bodies": report.Bodies, "chains": report.Chains, "head": report.Head, "notes": len(report.Notes)}
	if f := report.Fault; f != nil {
		found["fault"] = map[string]any{"chain": f.Chain, "seq": f.Seq, "what": f.What}
	}
	at := a.g.Store.Now().UTC()
	return report, at, a.g.Store.Write(ctx, func(tx Tx) error {
		return a.g.Note(tx, a.by, plugin.EntryLedgerVerified, "ledger", found)
	})
}
