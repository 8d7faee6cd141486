package rest

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// Entries are a page of entries of one chain.
type Entries struct {
	Entries []plugin.Entry `json:"entries" nullable:"false"`
	Next    string         `json:"next_page_token" doc:"Empty on the last page."`
	Chains  int            `json:"chains,omitzero" doc:"How many chains there are, of the newest."`
}

// Heads are the newest entries of all chains.
type Heads struct {
	Chains []Head `json:"chains" nullable:"false"`
}

// A Head is the newest entry of a chain.
type Head struct {
	Chain int64  `json:"chain"`
	Seq   int64  `json:"seq"`
	Hash  string `json:"hash"`
}

func (r *registry) ledger() {
	add(r, route{method: "GET", path: "ledger/entries", id: "list-entries", scope: host.ScopeRead, about: "The entries of a chain of the ledger, the oldest first"}, r.listEntries)
	add(r, route{method: "GET", path: "ledger/entries/{chain}/{seq}", id: "get-entry", scope: host.ScopeRead, about: "An entry of the ledger"}, r.getEntry)
	add(r, route{method: "GET", path: "ledger/head", id: "get-ledger-head", scope: host.ScopeRead, about: "The newest entry of each chain of the ledger"}, r.getHead)
	add(r, route{method: "POST", path: "ledger:verify", id: "verify-ledger", scope: host.ScopeConfigure, stays: true, about: "Prove that no entry of the ledger was changed, removed, moved or added, and record what was found; one request at a time"}, r.verifyLedger)
}

// verifyTime bounds how long a request looks through the ledger.
const verifyTime = 15 * time.Minute

// A Verification is what looking through the whole ledger found.
type Verification struct {
	OK      bool      `json:"ok" doc:"Nothing was changed, as far as the key and the anchors of the host prove it."`
	At      time.Time `json:"at"`
	Entries int64     `json:"entries" doc:"How many were walked."`
	Bodies  int64     `json:"bodies" doc:"How many contents were hashed."`
	Chains  int       `json:"chains"`
	Notes   []string  `json:"notes" nullable:"false" doc:"What could not be checked, or looks odd."`
	Fault   *Fault    `json:"fault,omitzero" doc:"The first place where the ledger does not hold."`
}

// A Fault is a place where the ledger was changed.
type Fault struct {
	Chain int64  `json:"chain" doc:"0 for what is no entry."`
	Seq   int64  `json:"seq"`
	What  string `json:"what"`
}

func (r *registry) verifyLedger(ctx context.Context, q *request, _ *struct{}) (*struct{ Body Verification }, error) {
	q.stays(verifyTime + r.WorkTime)
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	report, at, err := q.api.Ledger().Verify(ctx)
	if err != nil {
		return nil, err
	}
	v := Verification{OK: report.Fault == nil, At: at, Entries: report.Entries, Bodies: report.Bodies, Chains: report.Chains, Notes: append([]string{}, report.Notes...)}
	if f := report.Fault; f != nil {
		v.Fault = &Fault{f.Chain, f.Seq, f.What}
	}
	return &struct{ Body Verification }{v}, nil
}

func (r *registry) listEntries(ctx context.Context, q *request, in *struct {
	Page
	Chain     int64  `query:"chain" minimum:"1" default:"1" doc:"A host has one chain, and each node of a shared database has its own."`
	After     int64  `query:"after" minimum:"0" doc:"Only entries with a larger seq."`
	Kind      string `query:"kind" maxLength:"64" doc:"A kind such as call.failed, or the beginning of some that ends in a dot."`
	Subject   string `query:"subject" maxLength:"256" doc:"The id of a call, or the name@version of a plugin."`
	Operation string `query:"operation" maxLength:"256" doc:"plugin/operation, of entries about calls."`
	Code      string `query:"code" maxLength:"64" doc:"The code that calls failed with."`
	Newest    int    `query:"newest" minimum:"0" maximum:"10000" doc:"So many of the newest of all chains, the newest last, on one page; with after those that come then."`
	Until     int64  `query:"until" minimum:"0" doc:"With newest: only entries of the chain, with a seq of at most this."`
	ID        string `query:"id" maxLength:"128" doc:"All that the id of a call means, which may be cut short, or SEQ, or CHAIN/SEQ; on one page."`
}) (*struct{ Body Entries }, error) {
	filters := []string{"entries", strconv.FormatInt(in.Chain, 10), strconv.FormatInt(in.After, 10), in.Kind, in.Subject, in.Operation, in.Code}
	last, err := in.after(filters...)
	if err != nil {
		return nil, err
	}
	if in.Newest > 0 || in.ID != "" {
		f := host.EntryQuery{After: in.After, Kind: in.Kind, Subject: in.Subject, Operation: in.Operation, Code: plugin.Code(in.Code), Limit: in.Newest}
		if in.Until > 0 {
			f.Chain, f.Until = in.Chain, in.Until
		}
		return r.newest(ctx, q, f, in.ID)
	}
	f := host.EntryQuery{
		Chain: in.Chain, After: in.After, Kind: in.Kind, Subject: in.Subject, Operation: in.Operation, Code: plugin.Code(in.Code), Limit: in.size() + 1,
	}
	if last != "" {
		if f.After, err = strconv.ParseInt(last, 10, 64); err != nil {
			return nil, refused(0, plugin.CodeInvalidInput, "the token of the page is not one of this list")
		}
	}
	if f.After == 0 {
		f.After = -1 // from the first, and not the newest
	}
	entries, _, err := q.api.Ledger().List(ctx, f)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Entries }{Entries{Entries: append([]plugin.Entry{}, entries...)}}
	out.Body.Entries, out.Body.Next = cut(out.Body.Entries, in.size(), "", func(e *plugin.Entry) string { return strconv.FormatInt(e.Seq, 10) }, filters...)
	return out, nil
}

// newest are the newest entries, or what an id means.
func (r *registry) newest(ctx context.Context, q *request, f host.EntryQuery, id string) (*struct{ Body Entries }, error) {
	out := &struct{ Body Entries }{Entries{Entries: []plugin.Entry{}}}
	entries, err := []plugin.Entry(nil), error(nil)
	if id != "" {
		entries, err = q.api.Ledger().Find(ctx, id)
	} else {
		entries, out.Body.Chains, err = q.api.Ledger().List(ctx, f)
	}
	out.Body.Entries = append(out.Body.Entries, entries...)
	return out, err
}

func (r *registry) getEntry(ctx context.Context, q *request, in *struct {
	Chain int64 `path:"chain" minimum:"1"`
	Seq   int64 `path:"seq" minimum:"0"`
}) (*struct{ Body plugin.Entry }, error) {
	id := fmt.Sprintf("%d/%d", in.Chain, in.Seq)
	found, err := q.api.Ledger().Find(ctx, id)
	if err != nil || len(found) == 0 {
		return nil, unlessMissing(cmp.Or(err, error(missing("entry", id))), "entry", id)
	}
	return &struct{ Body plugin.Entry }{found[0]}, nil
}

func (r *registry) getHead(ctx context.Context, q *request, _ *struct{}) (*struct{ Body Heads }, error) {
	heads, err := q.api.Ledger().Heads(ctx)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Heads }{Heads{[]Head{}}}
	for _, h := range heads {
		out.Body.Chains = append(out.Body.Chains, Head(h))
	}
	return out, nil
}
