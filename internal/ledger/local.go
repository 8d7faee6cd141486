package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/canon"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// Local carries out an effect inside the store: what do changes, the answer that
// it returns, and the entry of it are one transaction. Either all of it happened
// or nothing, so there is no intent. An effect that an earlier attempt did is
// not done again: its answer is returned.
//
// do is run again when the transaction is; see [store.Store]. It keeps the
// answer of a refusal too, having written nothing: the next attempt gets it
// again. It fails, and nothing is written, as [Journal.Begin] does.
func (j *Journal) Local(ctx context.Context, e Effect, do func(tx store.Tx) (answer []byte, err error)) ([]byte, error) {
	j.mu.Lock()
	which := requestOf{e.RequestHash, j.times[e.RequestHash]}
	j.times[e.RequestHash]++
	earlier := j.before[which]
	if earlier == nil && j.replay > 0 {
		err := j.diverges(e.Method)
		j.mu.Unlock()
		return nil, err
	}
	if earlier != nil && earlier.State != store.EffectNotDone {
		j.replay--
		j.mu.Unlock()
		return j.kept(ctx, earlier)
	}
	j.mu.Unlock()

	row := store.EffectRow{
		Tenant: j.lease.row.Tenant, CallID: j.lease.row.ID, Attempt: j.lease.row.Attempt, Method: e.Method, Class: e.Class, Effect: e.Name,
		RequestHash: e.RequestHash, Occurrence: which.occurrence, State: store.EffectDone, At: time.Now().UTC(),
	}
	var answer []byte
	err := j.l.st.Write(ctx, func(tx store.Tx) (err error) {
		if answer, err = do(tx); err != nil {
			return err
		}
		if row.ResponseHash, err = tx.PutBody(row.Tenant, answer, time.Time{}); err != nil {
			return err
		}
		return j.insertDone(tx, row)
	})
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done++
	return answer, nil
}

// insertDone puts an effect into the journal that is done with this transaction.
func (j *Journal) insertDone(tx store.Tx, row store.EffectRow) error {
	inserted, prior, won, err := tx.InsertEffect(j.lease.row.Fence(), row)
	switch {
	case err != nil:
		return err
	case !won:
		return plugin.Errorf(plugin.CodeCancelled, "the call is no longer this attempt's: nothing is done")
	case prior != nil && prior.State != store.EffectNotDone:
		return fmt.Errorf("effect %d of call %s is in the journal, and this attempt does not know it", prior.N, row.CallID)
	case prior != nil:
		row.N = prior.N
		if _, err := tx.UpdateEffect(j.lease.row.Fence(), row); err != nil {
			return err
		}
		inserted = &row
	}
	return noteEffect(tx, plugin.EntryEffectDone, inserted, j.lease.row.Principal)
}

// kept returns the answer of an effect that an earlier attempt did.
func (j *Journal) kept(ctx context.Context, row *store.EffectRow) ([]byte, error) {
	if row.State == store.EffectIntent {
		return nil, fmt.Errorf("effect %d of call %s is inside the store, and was begun without being done", row.N, row.CallID)
	}
	answer, err := j.l.st.Body(ctx, row.Tenant, row.ResponseHash)
	if err == nil && (answer == nil || canon.Sum(answer) != row.ResponseHash) {
		err = fmt.Errorf("the answer to effect %d of call %s is no longer kept", row.N, row.CallID)
	}
	return answer, err
}
