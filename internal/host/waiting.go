package host

import "context"

// mostWaiting is how many calls in one state are counted.
const mostWaiting = 1000

// Waiting counts the calls of the tenant that do not go on by themselves, by state; at
// most 1000 of each. It says nothing of whose they are.
func (g *Guard) Waiting(ctx context.Context) (map[string]int, error) {
	counted := map[string]int{}
	for _, state := range []CallState{CallQueued, CallPending, CallUnknown} {
		rows, err := g.Store.Calls(ctx, CallFilter{Tenant: g.Tenant, State: state, Limit: mostWaiting})
		if err != nil {
			return counted, err
		}
		counted[string(state)] = len(rows)
	}
	return counted, nil
}
