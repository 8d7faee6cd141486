package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/plugin"
)

// An Effect is something outside that a call is about to do.
type Effect struct {
	Method      string // of the service
	Class       string // external or local
	Name        string // such as http_write
	RequestHash string // of the method and its arguments
	Repeatable  bool   // the other side takes a key by which it tells a repetition
}

// Begun is an effect that may be sent, or one whose answer is there already.
type Begun struct {
	N           int64
	ProviderKey string // to be sent along, where the effect is repeatable
	Answered    bool   // an earlier attempt did it; Answer is what came back
	Answer      []byte

	which requestOf
}

// A Journal is the effects of one attempt of one call. What an earlier attempt
// did is not done again: its answers are given in its place. It is safe for
// concurrent use.
type Journal struct {
	l     *Ledger
	lease Lease

	mu       sync.Mutex
	times    map[string]int64 // how many equal requests this attempt has made
	before   map[requestOf]*effectRow
	again    map[string][]int64 // occurrences of those before that were asked for in vain, by request: the next equal request is one of them
	nested   map[string]bool    // calls with effects that earlier attempts made and this one has not, by their stored key
	replay   int                // of those before that left the host, how many that may have happened were not asked for again
	inside   []int64            // those before that did not, by when they were done, as far as they were not asked for again
	strayed  bool               // this attempt asked for one of those out of turn, or for a new one before them
	open     map[int64]effectRow
	done     int
	diverged bool
	starved  bool // an effect was refused because it could not be put into the journal
}

type requestOf struct {
	hash       string
	occurrence int64
}

// Journal returns the journal of the attempt that lease is for.
func (l *Ledger) Journal(ctx context.Context, lease Lease) (*Journal, error) {
	j := &Journal{l: l, lease: lease, times: map[string]int64{}, before: map[requestOf]*effectRow{}, again: map[string][]int64{}, nested: map[string]bool{}, open: map[int64]effectRow{}}
	if lease.row.Attempt <= 1 {
		return j, nil
	}
	rows, err := l.st.Effects(ctx, lease.row.Tenant, lease.row.ID)
	if err != nil {
		return nil, err
	}
	made, err := l.st.Calls(ctx, CallFilter{Tenant: lease.row.Tenant, Parent: lease.row.ID})
	if err != nil {
		return nil, err
	}
	for _, row := range made {
		if row.Effectful && row.State != Failed {
			j.nested[row.Key] = true
		}
	}
	j.replay += len(j.nested)
	for i := range rows {
		row := &rows[i]
		j.before[requestOf{row.RequestHash, row.Occurrence}] = row
		switch row.State {
		case effectIntent:
			j.replay++
			j.open[row.N] = *row
		case effectNotDone:
		default:
			if stayed(row) {
				j.inside = append(j.inside, row.N)
			} else {
				j.replay++
			}
			j.done++
		}
	}
	return j, nil
}

// stayed reports whether an effect was confined to the store: it committed in one
// transaction with its row, so only a reader of the store can have observed it.
func stayed(row *effectRow) bool { return row.Class == "local" && row.ProviderKey == "" }

// Begin puts an effect into the journal, durably, before it is sent. It fails,
// and nothing may be sent, if the call is no longer this attempt's, or if the
// attempt does something else than the one before it while not all of what that
// one sent was asked for again. What that one did inside the store does not
// count: see [Journal.Local].
func (j *Journal) Begin(ctx context.Context, e Effect) (Begun, error) {
	j.mu.Lock()
	which := j.next(e.RequestHash)
	earlier := j.before[which]
	if fault.Lifted("replay") { // the attempt knows of none before it
		earlier, which.occurrence = nil, which.occurrence+1000*j.lease.row.Attempt
	}
	if earlier == nil && j.replay > 0 && !fault.Lifted("replay") {
		err := j.diverges(e.Method)
		j.mu.Unlock()
		return Begun{}, err
	}
	if earlier != nil && (earlier.State == effectDone || earlier.State == effectLate) {
		j.replay--
		j.mu.Unlock()
		answer, err := j.l.st.Body(ctx, j.lease.row.Tenant, earlier.ResponseHash)
		if err == nil && answer == nil {
			err = fmt.Errorf("the answer to effect %d of call %s is no longer kept", earlier.N, j.lease.row.ID)
		}
		if err == nil && canon.Sum(answer) != earlier.ResponseHash {
			err = changed(fmt.Sprintf("the stored answer to effect %d of call %s", earlier.N, j.lease.row.ID))
		}
		if err != nil {
			j.askAgain(which)
			return Begun{}, err
		}
		return Begun{N: earlier.N, Answered: true, Answer: answer, which: which}, nil
	}
	if earlier != nil && earlier.State == effectIntent {
		j.replay--
	}
	j.mu.Unlock()

	row := effectRow{
		Tenant: j.lease.row.Tenant, CallID: j.lease.row.ID, Attempt: j.lease.row.Attempt, Method: e.Method, Class: e.Class, Effect: e.Name,
		RequestHash: e.RequestHash, Occurrence: which.occurrence, State: effectIntent, At: time.Now().UTC(),
	}
	if e.Repeatable {
		row.ProviderKey = providerKey(&row)
	}
	if earlier != nil && earlier.State == effectIntent && earlier.ProviderKey == "" && !fault.Lifted("unknown") {
		j.mu.Lock()
		j.diverged = true
		j.mu.Unlock()
		return Begun{}, plugin.Errorf(plugin.CodeOutcomeUnknown, "%s: an earlier attempt sent this, and its outcome is unknown", e.Method)
	}
	inserted, err := j.write(ctx, row, earlier)
	if err != nil && earlier != nil {
		j.askAgain(which)
	}
	if err != nil {
		j.mu.Lock()
		j.starved = j.starved || errors.Is(err, ErrFull) || errors.Is(err, ErrFailed)
		j.mu.Unlock()
		return Begun{}, err
	}
	j.mu.Lock()
	j.open[inserted.N] = *inserted
	j.mu.Unlock()
	fault.At("intent")
	if err := j.l.Held(); err != nil { // the process was paused since: another node may have taken the call up
		return Begun{}, err
	}
	return Begun{N: inserted.N, ProviderKey: inserted.ProviderKey}, nil
}

// next returns under what the next request of this hash is in the journal. j.mu is
// held.
func (j *Journal) next(hash string) requestOf {
	if again := j.again[hash]; len(again) > 0 {
		j.again[hash] = again[1:]
		return requestOf{hash, again[0]}
	}
	which := requestOf{hash, j.times[hash]}
	j.times[hash]++
	return which
}

// NotGiven says of an effect that was answered before that its answer could not be
// given to the plugin: it counts as not asked for, and the next equal request gets it.
func (j *Journal) NotGiven(b Begun) { j.askAgain(b.which) }

// askAgain has the next equal request stand for this one, which an earlier attempt
// made: it is not a new effect.
func (j *Journal) askAgain(which requestOf) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.again[which.hash] = append(j.again[which.hash], which.occurrence)
	if j.before[which].State != effectNotDone { // it may have happened
		j.replay++
	}
}

// diverges notes that this attempt does something else than the one before it.
// j.mu is held.
func (j *Journal) diverges(method string) error {
	j.diverged = true
	return plugin.Errorf(plugin.CodeOutcomeUnknown,
		"%s: this attempt does something else than the one before it, of whose effects %d were not asked for again; nothing more is sent", method, j.replay)
}

// Nest holds a call that the call is about to make against those that earlier
// attempts made: a new one that may have effects is not made before all of them
// were asked for again. What the nested call does is in its own row and journal.
func (j *Journal) Nest(method string, call *plugin.Call, effects bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, key := range []string{StoredKey(call), OldKey(call)} {
		if j.nested[key] {
			delete(j.nested, key)
			j.replay--
			return nil
		}
	}
	if effects && j.replay > 0 && !fault.Lifted("replay") {
		return j.diverges(method)
	}
	return nil
}

// write puts the intent on the disk: a new one, or the same again.
func (j *Journal) write(ctx context.Context, row effectRow, earlier *effectRow) (inserted *effectRow, err error) {
	var won bool
	var prior *effectRow
	err = j.l.st.Write(ctx, func(tx Tx) (err error) {
		inserted, prior, won = nil, nil, false
		row := row
		if earlier != nil {
			row.N, row.ProviderKey = earlier.N, earlier.ProviderKey
			inserted = &row
			won, err = tx.UpdateEffect(j.lease.row.Fence(), row)
		} else {
			inserted, prior, won, err = tx.InsertEffect(j.lease.row.Fence(), row)
		}
		if err != nil || !won || prior != nil {
			return err
		}
		return noteEffect(tx, plugin.EntryEffectIntent, inserted, j.lease.row.Principal)
	})
	switch {
	case err != nil:
		return nil, err
	case !won:
		return nil, plugin.Errorf(plugin.CodeCancelled, "the call is no longer this attempt's: nothing is sent")
	case prior != nil:
		return nil, fmt.Errorf("effect %d of call %s is in the journal, and this attempt does not know it", prior.N, j.lease.row.ID)
	}
	return inserted, nil
}

// End puts the answer to an effect into the journal, durably, before the plugin
// hears it. If the call has ended meanwhile the answer is kept as evidence, and
// the error says so.
func (j *Journal) End(ctx context.Context, n int64, answer []byte) error {
	ctx = settling(context.WithoutCancel(ctx)) // what happened has happened
	j.mu.Lock()
	row, known := j.open[n]
	j.mu.Unlock()
	if !known {
		return fmt.Errorf("effect %d of call %s was not begun", n, j.lease.row.ID)
	}
	row.State, row.ResponseHash, row.At = effectDone, canon.Sum(answer), time.Now().UTC()
	var won bool
	err := lapsing(func() error {
		return j.l.st.Write(ctx, func(tx Tx) (err error) {
			if _, err = tx.PutBody(row.Tenant, answer, time.Time{}); err != nil {
				return err
			}
			if won, err = tx.UpdateEffect(j.lease.row.Fence(), row); err != nil {
				return err
			}
			if won {
				return noteEffect(tx, plugin.EntryEffectDone, &row, j.lease.row.Principal)
			}
			late := row
			late.State = effectLate
			found, err := tx.LateEffect(late)
			if err != nil || !found {
				return err
			}
			return noteEffect(tx, plugin.EntryEffectLate, &late, j.lease.row.Principal)
		})
	})
	if err != nil {
		return err
	}
	fault.At("journalled")
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.open, n)
	j.done++
	if !won {
		return plugin.Errorf(plugin.CodeCancelled, "the call had ended when the answer came")
	}
	return nil
}

// NotSent notes of an effect that was begun that it was not sent: the call was over
// before. Another attempt may send it.
func (j *Journal) NotSent(ctx context.Context, n int64) error {
	j.mu.Lock()
	row, known := j.open[n]
	j.mu.Unlock()
	if !known {
		return fmt.Errorf("effect %d of call %s was not begun", n, j.lease.row.ID)
	}
	row.State, row.At = effectNotDone, time.Now().UTC()
	err := lapsing(func() error {
		return j.l.st.Write(settling(context.WithoutCancel(ctx)), func(tx Tx) error {
			_, err := tx.UpdateEffect(j.lease.row.Fence(), row)
			return err
		})
	})
	if err == nil {
		j.mu.Lock()
		delete(j.open, n)
		j.mu.Unlock()
	}
	return err
}

// Unanswered reports how many effects of the call were begun and not answered,
// and how many of those the other side can be asked to do again without doing
// them twice.
func (j *Journal) Unanswered() (open, repeatable int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, row := range j.open {
		if row.ProviderKey != "" {
			repeatable++
		}
	}
	return len(j.open), repeatable
}

// Done reports how many effects of the call were answered, of all attempts.
func (j *Journal) Done() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.done
}

// Asked reports whether this attempt asked for an effect.
func (j *Journal) Asked() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.times) > 0
}

// Whole reports whether this attempt may say that it succeeded: it did nothing
// else than the one before it, and asked again for all that one sent without
// hearing what became of it.
func (j *Journal) Whole() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, row := range j.open {
		j.diverged = j.diverged || row.Attempt < j.lease.row.Attempt
	}
	return !j.diverged
}

// Starved reports whether this attempt was kept from an effect because the host
// could not write: how it failed says nothing of what it would have done.
func (j *Journal) Starved() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.starved
}

// Diverged reports whether this attempt did something else than the one before.
func (j *Journal) Diverged() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.diverged
}

// providerKey is the same for the same effect of the same call, and for no
// other.
func providerKey(row *effectRow) string {
	sum := canon.Sum([]byte(fmt.Sprintf("mortise effect 1\n%s\n%s\n%s\n%d", row.Tenant, row.CallID, row.RequestHash, row.Occurrence)))
	return "mortise-" + sum[len("sha256:"):][:40]
}

// noteEffect appends the entry of an effect: that it was, and not what was said.
func noteEffect(tx Tx, kind plugin.EntryKind, row *effectRow, principal string) error {
	body, err := json.Marshal(struct {
		CallID       string `json:"call_id"`
		N            int64  `json:"n"`
		Attempt      int64  `json:"attempt"`
		Method       string `json:"method"`
		Class        string `json:"class"`
		Effect       string `json:"effect"`
		RequestHash  string `json:"request_hash"`
		Occurrence   int64  `json:"occurrence"`
		ProviderKey  string `json:"provider_key"`
		ResponseHash string `json:"response_hash"`
	}{row.CallID, row.N, row.Attempt, row.Method, row.Class, row.Effect, row.RequestHash, row.Occurrence, row.ProviderKey, row.ResponseHash}, json.Deterministic(true))
	if err != nil {
		return err
	}
	tx.Append(plugin.Entry{At: row.At.Truncate(time.Microsecond), Tenant: row.Tenant, Kind: kind, Subject: row.CallID, Principal: clean(principal), Body: body})
	return nil
}
