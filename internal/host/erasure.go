package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/plugin"
)

// ErasurePlugin is what stands for the erasure of a person's data, where policy is asked who
// may do that.
const ErasurePlugin = "mortise.erasure"

// maxPrincipal bounds the name of a person.
const maxPrincipal = 512

// An Erasure is the removal of what is kept of a person. It goes on by itself until it is done.
type Erasure struct {
	ID        string           `json:"id"`
	Principal string           `json:"principal"` // as the ledger names it
	By        string           `json:"by"`
	AskedAt   time.Time        `json:"asked_at"`
	DoneAt    time.Time        `json:"done_at,omitzero"`
	Counts    map[string]int64 `json:"counts"`           // what was removed so far, by kind
	Waiting   int64            `json:"waiting,omitzero"` // calls and plans of theirs that have not ended: until they do, or are settled, it is not done
	DryRun    bool             `json:"dry_run,omitzero"`
}

// progress is what an erasure keeps while it goes on. The bytes of artifacts are deleted after
// the transaction that deletes their rows, so it has what is still to be deleted.
type progress struct {
	Counts   map[string]int64 `json:"counts"`
	Sessions []string         `json:"sessions,omitempty"`
	Hashes   []string         `json:"hashes,omitempty"`
}

func (p *progress) add(kind string, n int64) {
	if p.Counts == nil {
		p.Counts = map[string]int64{}
	}
	if n != 0 {
		p.Counts[kind] += n
	}
}

func (p *progress) text() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // it is text and numbers
	}
	return string(text)
}

func erasureOf(row *erasureRow) (Erasure, progress) {
	var p progress
	if json.Unmarshal([]byte(row.Counts), &p) != nil || p.Counts == nil {
		p.Counts = map[string]int64{}
	}
	return Erasure{ID: row.ID, Principal: row.Principal, By: row.By, AskedAt: row.AskedAt, DoneAt: row.DoneAt, Counts: p.Counts}, p
}

// Erasures returns the erasures of the tenant, the oldest first.
func (a Admin) Erasures(ctx context.Context) ([]Erasure, error) {
	if err := a.allow(ctx, ErasurePlugin, use{plugin.EntryErasureRefused, "erasures", "list", "see erasures"}); err != nil {
		return nil, err
	}
	rows, err := a.g.Store.Erasures(ctx, a.g.Tenant, false)
	all := make([]Erasure, len(rows))
	for i := range rows {
		all[i], _ = erasureOf(&rows[i])
		if rows[i].DoneAt.IsZero() && err == nil {
			all[i].Waiting, err = a.g.Store.Unsettled(ctx, aliasesOf(&rows[i]))
		}
	}
	return all, err
}

// Erase removes what is kept of a principal: tokens, sign-ins and links first, so that they
// make no more calls; then calls of theirs that wait are cancelled, and the rest is removed.
// What cannot be removed yet, because a call has not ended, is removed once it has. With dry
// it returns what would be removed, up to a bound, and removes nothing.
//
// It takes the right to configure mortise.erasure and a recent sign-in. Errors: policy_denied,
// sign_in_required, invalid_input.
func (a Admin) Erase(ctx context.Context, name string, dry bool) (Erasure, error) {
	u := use{plugin.EntryErasureRefused, name, "erase", "erase what is kept of a person"}
	if err := a.allow(ctx, ErasurePlugin, u); err != nil {
		return Erasure{}, err
	}
	if a.by.Type == "agent" {
		return Erasure{}, a.g.refuse(ctx, a.by, u, plugin.Errorf(plugin.CodeApprovalSelf, "%s cannot erase; a person has to", a.by.Member()), plugin.Decision{})
	}
	if err := a.g.recent(ctx, a.caller, u); err != nil {
		return Erasure{}, err
	}
	who := principal.Parse(strings.TrimSpace(name))
	switch {
	case who.ID == "" || len(name) > maxPrincipal || !printableName(name):
		return Erasure{}, plugin.Errorf(plugin.CodeInvalidInput, "%.100q is no principal; write a name such as ada, or service::NAME", name)
	case who.Type == "agent":
		return Erasure{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is an agent; 'mortise agents delete' deletes one with what it remembers", name)
	case a.g.administers(who):
		return Erasure{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is the owner of this host; name another in mortise.yaml first", name)
	}
	row := erasureRow{Tenant: a.g.Tenant, ID: uuid.Must(uuid.NewV7()).String(), Principal: principal.Name(who), By: principal.Name(a.by), AskedAt: a.g.moment()}
	var err error
	if row.Peers, err = a.peersOf(ctx, who); err != nil {
		return Erasure{}, err
	}
	if dry {
		return a.api.host.rehearse(ctx, &row)
	}
	if row, err = a.beginErasure(ctx, row); err != nil {
		return Erasure{}, err
	}
	if err := a.cancelAll(ctx, &row); err != nil {
		return Erasure{}, err
	}
	return a.api.host.erase(ctx, &row)
}

func printableName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '�' })
}

// peersOf returns the names by which channels know a principal.
func (a Admin) peersOf(ctx context.Context, who plugin.Principal) (peers []string, err error) {
	kind := cmp.Or(who.Type, "user")
	rows, err := a.g.Store.IdentitiesOf(ctx, a.g.Tenant, kind, who.ID)
	for i := range rows {
		peers = append(peers, peerOn(rows[i].Provider, rows[i].ExternalID))
	}
	slices.Sort(peers)
	return slices.Compact(peers), err
}

// beginErasure puts an erasure on record and takes away what lets the person in. One that
// is under way for the same principal goes on instead.
func (a Admin) beginErasure(ctx context.Context, row erasureRow) (erasureRow, error) {
	asked := row
	err := a.g.Store.Write(ctx, func(tx Tx) error {
		row = asked
		open, err := tx.Erasures(ctx, a.g.Tenant, true)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(open, func(o erasureRow) bool { return o.Principal == row.Principal }); i >= 0 {
			row = open[i]
			return nil
		}
		row, err = a.g.openErasure(tx, a.by, asked)
		return err
	})
	return row, err
}

// openErasure puts an erasure on record, in a transaction.
func (g *Guard) openErasure(tx Tx, by plugin.Principal, row erasureRow) (erasureRow, error) {
	counts, err := tx.EraseAccess(aliasesOf(&row))
	if err != nil {
		return row, err
	}
	row.Counts = (&progress{Counts: counts}).text()
	if err := tx.PutErasure(row); err != nil {
		return row, err
	}
	return row, g.Note(tx, by, plugin.EntryErasureBegun, row.Principal, map[string]any{"erasure": row.ID})
}

// cancelAll asks the calls and plans of a person to stop.
func (a Admin) cancelAll(ctx context.Context, row *erasureRow) error {
	who := aliasesOf(row)
	for _, state := range []CallState{CallPending, CallQueued, CallRunning, CallInProgress} {
		calls, err := a.g.Store.Calls(ctx, CallFilter{Tenant: a.g.Tenant, State: state})
		if err != nil {
			return err
		}
		for i := range calls {
			if c := &calls[i]; who.Is(c.Principal) || who.Is(c.Actor) {
				if _, err := a.api.Calls().Cancel(ctx, c.ID, "what is kept of "+row.Principal+" is erased"); err != nil && plugin.CodeOf(err) == plugin.CodeInternal {
					return err
				}
			}
		}
	}
	plans, err := a.g.Store.Plans(ctx, PlanFilter{Tenant: a.g.Tenant, Live: true})
	for i := range plans {
		if who.Is(plans[i].Principal) {
			if _, failed := a.api.Plans().Cancel(ctx, plans[i].ID, "what is kept of "+row.Principal+" is erased"); plugin.CodeOf(failed) == plugin.CodeInternal {
				err = errors.Join(err, failed)
			}
		}
	}
	return err
}

func aliasesOf(row *erasureRow) aliases {
	who := principal.Parse(row.Principal)
	kind, name := cmp.Or(who.Type, "user"), principal.Name(who)
	peers := append([]string{peerOn(agent.Terminal, name)}, row.Peers...)
	return aliases{Tenant: row.Tenant, Name: name, Typed: kind + "::" + who.ID, Type: kind, ID: who.ID, Peers: peers}
}

// errRehearsed takes back what a dry run has done.
var errRehearsed = errors.New("it was a dry run")

// maxRehearsed bounds the rows of each kind that a dry run looks at: it holds up all writers.
const maxRehearsed = 1000

// rehearse returns what an erasure would remove first, and takes it back.
func (h *Host) rehearse(ctx context.Context, row *erasureRow) (e Erasure, err error) {
	who := aliasesOf(row)
	e = Erasure{Principal: row.Principal, By: row.By, DryRun: true}
	err = h.parts.Guard.Store.Write(ctx, func(tx Tx) error {
		var p progress
		access, err := tx.EraseAccess(who)
		if err != nil {
			return err
		}
		rows, err := tx.EraseRows(who, maxRehearsed)
		if err != nil {
			return err
		}
		shared, err := tx.EraseShared(who.Tenant)
		if err != nil {
			return err
		}
		sessions, err := tx.EraseSessions(who, maxRehearsed)
		if err != nil {
			return err
		}
		calls, err := tx.EraseCalls(who, row.AskedAt, maxRehearsed)
		if err != nil {
			return err
		}
		plans, err := tx.ErasePlans(who, row.AskedAt, maxRehearsed)
		if err != nil {
			return err
		}
		models, err := tx.EraseModels(who, maxRehearsed)
		if err != nil {
			return err
		}
		for _, counts := range []map[string]int64{access, rows, shared, {
			"sessions": sessions.Count, "calls": calls.Count, "plans": plans.Count, "model_bodies": models.Count,
			"bytes": sessions.Bytes + calls.Bytes + plans.Bytes + models.Bytes,
		}} {
			p.countAll(counts)
		}
		p.add("", 0) // so that there is a map
		e.Counts = p.Counts
		return errRehearsed
	})
	if !errors.Is(err, errRehearsed) {
		return e, err
	}
	e.Waiting, err = h.parts.Guard.Store.Unsettled(ctx, who)
	return e, err
}

// erasingSteps are the steps of an erasure, in their order. Each removes a page in a transaction
// and reports whether it found anything: it is run until it finds nothing. A step looks for what is
// still there, so that it needs no memory of how far it came.
var erasingSteps = []func(tx Tx, who aliases, p *progress, at time.Time) (found bool, err error){
	func(tx Tx, who aliases, p *progress, at time.Time) (bool, error) { // again: nothing lets them in before it is done
		counts, err := tx.EraseAccess(who)
		return p.countAll(counts), err
	},
	func(tx Tx, who aliases, p *progress, at time.Time) (bool, error) {
		got, err := tx.EraseSessions(who, removeBatch)
		p.Sessions, p.Hashes = append(p.Sessions, got.Sessions...), append(p.Hashes, got.Hashes...)
		return p.countRemoved("sessions", got), err
	},
	func(tx Tx, who aliases, p *progress, at time.Time) (bool, error) {
		counts, err := tx.EraseRows(who, removeBatch)
		return p.countAll(counts), err
	},
	func(tx Tx, who aliases, p *progress, at time.Time) (bool, error) {
		counts, err := tx.EraseShared(who.Tenant)
		p.countAll(counts)
		return false, err // others make new ones all the time
	},
	func(tx Tx, who aliases, p *progress, at time.Time) (bool, error) {
		got, err := tx.EraseCalls(who, at, removeBatch)
		return p.countRemoved("calls", got), err
	},
	func(tx Tx, who aliases, p *progress, at time.Time) (bool, error) {
		got, err := tx.ErasePlans(who, at, removeBatch)
		return p.countRemoved("plans", got), err
	},
	func(tx Tx, who aliases, p *progress, at time.Time) (bool, error) {
		got, err := tx.EraseModels(who, removeBatch)
		return p.countRemoved("model_bodies", got), err
	},
}

// countRemoved counts what a step removed, and reports whether that is anything.
func (p *progress) countRemoved(kind string, got removed) bool {
	p.add(kind, got.Count)
	p.add("bytes", got.Bytes)
	return got.Count > 0
}

// countAll counts what a step removed of several kinds, and reports whether that is anything.
func (p *progress) countAll(counts map[string]int64) bool {
	for kind, n := range counts {
		p.add(kind, n)
	}
	return len(counts) > 0
}

// erase goes on with an erasure, and returns how far it came. Each page is whole after a crash.
// The next run of erase finds what was left, and done is what counts nothing that is left.
func (h *Host) erase(ctx context.Context, row *erasureRow) (Erasure, error) {
	who := aliasesOf(row)
	for _, step := range erasingSteps {
		for found := true; found; {
			var err error
			if found, err = h.erasePage(ctx, row, who, step); err != nil {
				e, _ := erasureOf(row)
				return e, err
			}
		}
	}
	err := h.finish(ctx, row, who)
	e, _ := erasureOf(row)
	if err == nil && row.DoneAt.IsZero() {
		e.Waiting, err = h.parts.Guard.Store.Unsettled(ctx, who)
	}
	return e, err
}

// erasePage removes a page of one step, and then the bytes that are in no database. What of these
// is still to be deleted is kept with the erasure, so that a host that ends in between deletes it.
func (h *Host) erasePage(ctx context.Context, row *erasureRow, who aliases, step func(Tx, aliases, *progress, time.Time) (bool, error)) (found bool, err error) {
	var next erasureRow
	var todo progress
	err = h.parts.Guard.Store.Write(ctx, func(tx Tx) (err error) {
		next = *row
		_, todo = erasureOf(row)
		if found, err = step(tx, who, &todo, h.parts.Guard.Store.Now()); err != nil {
			return err
		}
		next.Counts = todo.text()
		return tx.PutErasure(next)
	})
	if err != nil {
		return false, err
	}
	*row = next
	if len(todo.Sessions)+len(todo.Hashes) == 0 {
		return found, nil
	}
	if err := h.dispose(ctx, todo.Sessions, todo.Hashes); err != nil {
		return false, err
	}
	todo.Sessions, todo.Hashes = nil, nil
	row.Counts = todo.text() // the next page puts it on record
	return found, nil
}

// finish says that an erasure is done, once the store counts nothing that is left, and nothing of
// what was deleted is left in the files of the database.
func (h *Host) finish(ctx context.Context, row *erasureRow, who aliases) error {
	g := h.parts.Guard
	left, err := g.Store.Unerased(ctx, who)
	if err != nil || anyLeft(left) {
		return err
	}
	if err := g.Store.Write(ctx, func(tx Tx) error { return tx.PutErasure(withoutPeers(row)) }); err != nil {
		return err
	}
	if h.parts.Scrub != nil {
		if err := h.parts.Scrub(ctx); err != nil {
			return err
		}
	}
	if err := h.listErased(row); err != nil {
		return err
	}
	done := withoutPeers(row)
	done.DoneAt = g.moment()
	e, _ := erasureOf(row)
	finished := false
	err = g.Store.Write(ctx, func(tx Tx) error {
		finished = false
		left, err := tx.Unerased(ctx, who)
		if err != nil {
			return err
		}
		if finished = !anyLeft(left); !finished { // something came back while the files were overwritten
			return tx.PutErasure(*row)
		}
		if err := tx.PutErasure(done); err != nil {
			return err
		}
		return g.Note(tx, principal.Parse(row.By), plugin.EntryErasureDone, row.Principal, map[string]any{"erasure": row.ID, "counts": e.Counts})
	})
	if err == nil && finished {
		*row = done
	}
	return err
}

func withoutPeers(row *erasureRow) erasureRow {
	done := *row
	done.Peers = nil
	return done
}

// Remove does what [Host.Removals] returned.
func (h *Host) Remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	g := h.parts.Guard
	if erasure, is := strings.CutPrefix(id, erasurePrefix); is {
		open, err := g.Store.Erasures(ctx, g.Tenant, true)
		if i := slices.IndexFunc(open, func(row erasureRow) bool { return row.ID == erasure }); i >= 0 {
			_, err = h.erase(ctx, &open[i])
		}
		return err
	}
	if id == expiredBodies {
		return h.expired(ctx)
	}
	period := h.periods()[id]
	if period == 0 {
		return nil
	}
	_, err := h.remove(ctx, principal.Parse(g.Owner), retained(id), period, g.Store.Now().UTC())
	return err
}
