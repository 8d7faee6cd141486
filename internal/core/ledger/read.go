package ledger

import (
	"context"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/plugin"
)

// A Filter says which entries are wanted. Empty fields ask for nothing.
type Filter struct {
	Chain     int64 // 0 for all
	Tenant    string
	Kind      string // a kind, or the beginning of one that ends in a dot: "call."
	Subject   string // a call's id, a plugin's name@version
	Operation string // plugin/operation, of entries about calls
	Code      plugin.Code
	After     int64 // only later ones, oldest first; without it the newest come first
	Until     int64 // only those of Chain with a seq of at most this; 0 for no limit
	Limit     int   // 0 for no limit
}

// List returns the entries that fit.
func List(ctx context.Context, r Reader, f Filter) ([]plugin.Entry, error) {
	within := entryFilter{Chain: f.Chain, Tenant: f.Tenant, Kind: f.Kind, Subject: f.Subject, After: f.After, Until: f.Until, Newest: f.After == 0}
	narrow := f.Operation != "" || f.Code != ""
	if !narrow {
		within.Limit = f.Limit
	}
	var got []plugin.Entry
	for e, err := range r.Entries(ctx, within) {
		if err != nil {
			return nil, err
		}
		if narrow && !f.fits(&e) {
			continue
		}
		got = append(got, e)
		if len(got) == f.Limit {
			break
		}
	}
	return got, nil
}

// fits judges by what only an entry's body tells.
func (f *Filter) fits(e *plugin.Entry) bool {
	var body struct {
		Operation string              `json:"operation"`
		Error     *plugin.ErrorRecord `json:"error"`
	}
	if json.Unmarshal(e.Body, &body) != nil {
		return false
	}
	if f.Operation != "" && body.Operation != f.Operation {
		return false
	}
	return f.Code == "" || body.Error != nil && body.Error.Code == f.Code
}

// Show returns the entries that id means: all those about a call, or the one
// at a place in the chain, in the order in which they were written. An empty
// tenant stands for all. If there is none the error's code is not_found.
func Show(ctx context.Context, r Reader, tenant, id string) ([]plugin.Entry, error) {
	var got []plugin.Entry
	if seq, err := strconv.ParseInt(id, 10, 64); err == nil {
		chains, err := r.Chains(ctx)
		if err != nil {
			return nil, err
		}
		for _, chain := range chains {
			e, err := r.Entry(ctx, chain.ID, seq)
			if err != nil {
				return nil, err
			}
			if e != nil && (tenant == "" || e.Tenant == tenant) {
				got = append(got, *e)
			}
		}
	} else {
		for e, err := range r.Entries(ctx, entryFilter{Tenant: tenant, Subject: id}) {
			if err != nil {
				return nil, err
			}
			got = append(got, e)
		}
		// A node that recovers a call writes about it in its own chain.
		if len(got) > 0 && got[0].Chain != got[len(got)-1].Chain {
			slices.SortStableFunc(got, func(a, b plugin.Entry) int { return a.At.Compare(b.At) })
		}
	}
	if len(got) == 0 {
		return nil, plugin.Errorf(plugin.CodeNotFound, "the ledger has nothing about %s", id)
	}
	return got, nil
}

// List is [List], of everything recorded so far.
func (l *Ledger) List(ctx context.Context, f Filter) ([]plugin.Entry, error) {
	if err := l.Flush(ctx); err != nil {
		return nil, err
	}
	return List(ctx, l.st, f)
}

// Show is [Show], of everything recorded so far.
func (l *Ledger) Show(ctx context.Context, tenant, id string) ([]plugin.Entry, error) {
	if err := l.Flush(ctx); err != nil {
		return nil, err
	}
	return Show(ctx, l.st, tenant, id)
}
