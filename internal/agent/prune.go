package agent

import (
	"context"
	"time"
)

const (
	pruneStep   = 500 // deliveries that are forgotten in one transaction
	pruneRounds = 200 // of these until others have their turn
)

// ForgetDeliveries forgets what came in before then: sent once more, it is taken again.
func (a *Agents) ForgetDeliveries(ctx context.Context, tenant string, before time.Time) error {
	for range pruneRounds {
		found := false
		err := a.Store.Write(ctx, func(tx Tx) (err error) {
			found, err = tx.DeleteDeliveries(tenant, before, pruneStep)
			return err
		})
		if err != nil || !found {
			return err
		}
	}
	return nil
}

// IdleInstances returns the agents of which this process has an instance that was not
// used since then. That of an agent that was started stays: its plugins were told that
// it is there.
func (a *Agents) IdleInstances(since time.Time, limit int) (keys []Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, i := range a.instances {
		if len(keys) < limit && i.idleSince(since) {
			keys = append(keys, key)
		}
	}
	return keys
}

// StopIdle stops such an instance, unless it was used meanwhile.
func (a *Agents) StopIdle(tenant, id string, since time.Time) error {
	if i := a.Local(tenant, id); i == nil || !i.idleSince(since) {
		return nil
	}
	return a.Stop(tenant, id, "idle")
}

func (i *Instance) idleSince(since time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.ran.Load() && i.turns == 0 && i.used.Before(since)
}
