package host

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/plugin"
)

// ErasurePlugin is what stands for the erasure of a person's data, where policy is asked who
// may do that.
const ErasurePlugin = "mortise.erasure"

// ErasedFile is a list, in the data directory, of whose data was erased: a database that was
// restored from a backup made before that has it again, and it is erased again.
const ErasedFile = "erased.jsonl"

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
	row := erasureRow{Tenant: a.g.Tenant, ID: uuid.Must(uuid.NewV7()).String(), Principal: principal.Name(who), By: principal.Name(a.by), AskedAt: time.Now().UTC().Truncate(time.Microsecond)}
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

// peersOf returns the ids under which channels know a principal.
func (a Admin) peersOf(ctx context.Context, who plugin.Principal) (peers []string, err error) {
	kind := cmp.Or(who.Type, "user")
	rows, err := a.g.Store.IdentitiesOf(ctx, a.g.Tenant, kind, who.ID)
	for i := range rows {
		peers = append(peers, rows[i].ExternalID)
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
		return a.g.openErasure(tx, a.by, &row)
	})
	return row, err
}

// openErasure puts an erasure on record, in a transaction.
func (g *Guard) openErasure(tx Tx, by plugin.Principal, row *erasureRow) error {
	counts, err := tx.EraseAccess(aliasesOf(row))
	if err != nil {
		return err
	}
	row.Counts = (&progress{Counts: counts}).text()
	if err := tx.PutErasure(*row); err != nil {
		return err
	}
	return g.Note(tx, by, plugin.EntryErasureBegun, row.Principal, map[string]any{"erasure": row.ID})
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
	kind := cmp.Or(who.Type, "user")
	return aliases{Tenant: row.Tenant, Name: principal.Name(who), Typed: kind + "::" + who.ID, Type: kind, ID: who.ID, Peers: row.Peers}
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
		sessions, err := tx.EraseSessions(who, maxRehearsed)
		if err != nil {
			return err
		}
		calls, _, err := tx.EraseCalls(who, "", row.AskedAt, maxRehearsed)
		if err != nil {
			return err
		}
		for _, counts := range []map[string]int64{access, rows, {"sessions": sessions.Count, "calls": calls.Count, "bytes": sessions.Bytes + calls.Bytes}} {
			for kind, n := range counts {
				p.add(kind, n)
			}
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

// erase goes on with an erasure, and returns how far it came. Each step is whole after a crash,
// and finds what is left of the one before.
func (h *Host) erase(ctx context.Context, row *erasureRow) (Erasure, error) {
	g, who := h.parts.Guard, aliasesOf(row)
	_, p := erasureOf(row)
	step := func(do func(tx Tx, p *progress) (more bool, err error)) error {
		for more := true; more; {
			var next progress
			err := g.Store.Write(ctx, func(tx Tx) (err error) {
				next = progress{maps.Clone(p.Counts), slices.Clone(p.Sessions), slices.Clone(p.Hashes)}
				if more, err = do(tx, &next); err != nil {
					return err
				}
				row.Counts = next.text()
				return tx.PutErasure(*row)
			})
			if err != nil {
				return err
			}
			p = next
			if len(p.Sessions)+len(p.Hashes) > 0 {
				if err := h.dispose(ctx, p.Sessions, p.Hashes); err != nil {
					return err
				}
				p.Sessions, p.Hashes = nil, nil
			}
		}
		return nil
	}
	err := step(func(tx Tx, p *progress) (bool, error) {
		got, err := tx.EraseSessions(who, removeBatch)
		p.add("sessions", got.Count)
		p.add("bytes", got.Bytes)
		p.Sessions, p.Hashes = append(p.Sessions, got.Sessions...), append(p.Hashes, got.Hashes...)
		return got.Count > 0, err
	})
	if err == nil {
		err = step(func(tx Tx, p *progress) (bool, error) {
			counts, err := tx.EraseRows(who, removeBatch)
			for table, n := range counts {
				p.add(table, n)
			}
			return len(counts) > 0, err
		})
	}
	cursor := ""
	if err == nil {
		err = step(func(tx Tx, p *progress) (bool, error) {
			got, next, err := tx.EraseCalls(who, cursor, time.Now(), removeBatch)
			p.add("calls", got.Count)
			p.add("bytes", got.Bytes)
			cursor = next
			return next != "", err
		})
	}
	if err == nil {
		err = h.eraseAsked(ctx, who, step)
	}
	if err == nil {
		err = h.finish(ctx, row, who)
	}
	e, _ := erasureOf(row)
	if err == nil && row.DoneAt.IsZero() {
		e.Waiting, err = g.Store.Unsettled(ctx, who)
	}
	return e, err
}

// eraseAsked removes what models were asked and answered for a person, which entries of the
// ledger name.
func (h *Host) eraseAsked(ctx context.Context, who aliases, step func(func(tx Tx, p *progress) (bool, error)) error) error {
	g := h.parts.Guard
	var hashes []string
	flush := func() error {
		some := hashes
		hashes = nil
		return step(func(tx Tx, p *progress) (bool, error) {
			got, err := tx.RemoveBodies(g.Tenant, some)
			p.add("model_bodies", got.Count)
			p.add("bytes", got.Bytes)
			return false, err
		})
	}
	for e, err := range g.Store.Entries(ctx, EntryFilter{Tenant: g.Tenant, Kind: string(plugin.EntryModelCalled)}) {
		if err != nil {
			return err
		}
		if !who.Is(e.Principal) {
			continue
		}
		var of plugin.ModelRecord
		if json.Unmarshal(e.Body, &of) != nil {
			continue // for verification to find
		}
		if hashes = append(hashes, of.PromptHash, of.AnswerHash); len(hashes) >= 2*removeBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// finish says that an erasure is done, once no call of the person is left that has not ended,
// and nothing of what was deleted is left in the files of the database.
func (h *Host) finish(ctx context.Context, row *erasureRow, who aliases) error {
	g := h.parts.Guard
	left, err := g.Store.Unsettled(ctx, who)
	if err != nil || left > 0 {
		return err
	}
	row.Peers = nil
	if err := g.Store.Write(ctx, func(tx Tx) error { return tx.PutErasure(*row) }); err != nil {
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
	done := *row
	done.DoneAt = time.Now().UTC().Truncate(time.Microsecond)
	e, _ := erasureOf(row)
	err = g.Store.Write(ctx, func(tx Tx) error {
		if err := tx.PutErasure(done); err != nil {
			return err
		}
		return g.Note(tx, principal.Parse(row.By), plugin.EntryErasureDone, row.Principal, map[string]any{"erasure": row.ID, "counts": e.Counts})
	})
	if err == nil {
		*row = done
	}
	return err
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
	_, err := h.remove(ctx, principal.Parse(g.Owner), retained(id), period, time.Now().UTC())
	return err
}

// An erasedLine is one line of [ErasedFile].
type erasedLine struct {
	ID        string    `json:"id"`
	Tenant    string    `json:"tenant"`
	Principal string    `json:"principal"`
	By        string    `json:"by"`
	At        time.Time `json:"at"`
}

// listErased adds an erasure to the list, unless it is there.
func (h *Host) listErased(row *erasureRow) error {
	if lines, err := h.erased(); err != nil || slices.ContainsFunc(lines, func(l erasedLine) bool { return l.ID == row.ID }) {
		return err
	}
	line, err := json.Marshal(erasedLine{row.ID, row.Tenant, row.Principal, row.By, row.AskedAt})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(h.parts.Home, ErasedFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// erased reads the list. A last line that a crash cut short is none.
func (h *Host) erased() (lines []erasedLine, err error) {
	text, err := os.ReadFile(filepath.Join(h.parts.Home, ErasedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for scan := bufio.NewScanner(bytes.NewReader(text)); scan.Scan(); {
		var line erasedLine
		if json.Unmarshal(scan.Bytes(), &line) == nil && line.ID != "" {
			lines = append(lines, line)
		}
	}
	return lines, err
}

// reapply begins again the erasures that the list has and the database does not know: it was
// restored from a backup that was made before them.
func (h *Host) reapply(ctx context.Context) error {
	lines, err := h.erased()
	g := h.parts.Guard
	lines = slices.DeleteFunc(lines, func(l erasedLine) bool { return l.Tenant != g.Tenant })
	if err != nil || len(lines) == 0 {
		return err
	}
	known, err := g.Store.Erasures(ctx, g.Tenant, false)
	for _, l := range lines {
		if err != nil || slices.ContainsFunc(known, func(row erasureRow) bool { return row.ID == l.ID }) {
			continue
		}
		row := erasureRow{Tenant: l.Tenant, ID: l.ID, Principal: l.Principal, By: l.By, AskedAt: l.At}
		who := principal.Parse(l.Principal)
		if row.Peers, err = (Admin{kept: kept{g: g}}).peersOf(ctx, who); err == nil {
			err = g.Store.Write(ctx, func(tx Tx) error { return g.openErasure(tx, principal.Parse(l.By), &row) })
		}
	}
	return err
}
