package ledger

import (
	"context"

	"github.com/mortise-dev/mortise/plugin"
)

// InPlan returns what to do when a step is claimed, also included: a step is claimed only of a plan that is running: one that was cancelled
// in the meantime begins no other step.
func InPlan(call *plugin.Call, also func(Tx) error) func(Tx) error {
	return func(tx Tx) error {
		row, err := tx.Plan(context.Background(), call.Tenant, call.Plan)
		if err != nil {
			return err
		}
		won := false
		if row != nil && row.State == planRunning {
			// The update changes nothing. It makes a concurrent cancellation on
			// another node wait for this transaction, and then find this call.
			if won, err = tx.UpdatePlan(row.Fence(), *row); err != nil {
				return err
			}
		}
		if !won {
			return plugin.Errorf(plugin.CodeCancelled, "plan %s is not running any more", call.Plan)
		}
		if also == nil {
			return nil
		}
		return also(tx)
	}
}
