package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/plugin"
)

// Local carries out an effect inside the store: what do changes, the answer that
// it returns, and the entry of it are one transaction. Either all of it happened
// or nothing, so there is no intent.
//
// An attempt that asks for what earlier ones did, in the order in which they did
// it, gets their answers, and nothing is done again. One that leaves that order
// read what they left behind and goes on from there, as a feed does from its
// cursor. From then on all it asks for is done: what was done before may have
// been overwritten since, and its answer would be of a state that is gone. None
// of this has left the host, so it is no reason to stop.
//
// do is run again when the transaction is; see [Store]. It keeps the
// answer of a refusal too, having written nothing: the next attempt gets it
// again.
func (j *Journal) Local(ctx context.Context, e Effect, do func(tx Tx) (answer []byte, err error)) ([]byte, error) {
	which, earlier := j.turn(e.RequestHash)
	if earlier != nil && earlier.State != effectNotDone {
		return j.kept(ctx, earlier)
	}

	row := effectRow{
		Tenant: j.lease.row.Tenant, CallID: j.lease.row.ID, Attempt: j.lease.row.Attempt, Method: e.Method, Class: e.Class, Effect: e.Name,
		RequestHash: e.RequestHash, Occurrence: which.occurrence, State: effectDone, At: time.Now().UTC(),
	}
	var answer []byte
	err := j.l.st.Write(ctx, func(tx Tx) (err error) {
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

// turn returns under what the next request of this hash is in the journal, and
// what an earlier attempt did under it, if that is the answer.
func (j *Journal) turn(hash string) (which requestOf, earlier *effectRow) {
	j.mu.Lock()
	defer j.mu.Unlock()
	which = requestOf{hash, j.times[hash]}
	earlier = j.before[which]
	switch {
	case earlier != nil && earlier.State == effectNotDone:
	case earlier != nil && !j.strayed && len(j.inside) > 0 && j.inside[0] == earlier.N:
		j.inside = j.inside[1:]
	case earlier != nil || len(j.inside) > 0:
		j.strayed, earlier = true, nil
		for j.before[which] != nil {
			which.occurrence++
		}
	}
	j.times[hash] = which.occurrence + 1
	return which, earlier
}

// insertDone puts an effect into the journal that is done with this transaction.
func (j *Journal) insertDone(tx Tx, row effectRow) error {
	inserted, prior, won, err := tx.InsertEffect(j.lease.row.Fence(), row)
	switch {
	case err != nil:
		return err
	case !won:
		return plugin.Errorf(plugin.CodeCancelled, "the call is no longer this attempt's: nothing is done")
	case prior != nil && prior.State != effectNotDone:
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
func (j *Journal) kept(ctx context.Context, row *effectRow) ([]byte, error) {
	if row.State == effectIntent {
		return nil, fmt.Errorf("effect %d of call %s is inside the store, and was begun without being done", row.N, row.CallID)
	}
	answer, err := j.l.st.Body(ctx, row.Tenant, row.ResponseHash)
	if err == nil && (answer == nil || canon.Sum(answer) != row.ResponseHash) {
		err = fmt.Errorf("the answer to effect %d of call %s is no longer kept", row.N, row.CallID)
	}
	return answer, err
}
