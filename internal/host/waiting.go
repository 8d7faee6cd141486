package host

import "context"

// Bounds of what is counted.
const (
	mostWaiting = 1000 // calls of one tenant in one state
	mostTenants = 100  // with the site's own
)

// Waiting counts the calls that do not go on by themselves, by tenant and state, for the site
// as a whole: of its own tenant and of the first of those that are served, at most 1000 calls
// of each state. It says nothing of whose they are.
func (g *Guard) Waiting(ctx context.Context, served func(context.Context) ([]string, error)) (map[string]map[string]int, error) {
	names, err := served(ctx)
	if err != nil {
		return nil, err
	}
	names = append([]string{g.Tenant}, names...)
	counted := map[string]map[string]int{}
	for _, name := range names[:min(len(names), mostTenants)] {
		counted[name] = map[string]int{}
		for _, state := range []CallState{CallQueued, CallPending, CallUnknown} {
			rows, err := g.Store.Calls(everywhere(ctx), CallFilter{Tenant: name, State: state, Limit: mostWaiting})
			if err != nil {
				return counted, err
			}
			counted[name][string(state)] = len(rows)
		}
	}
	return counted, nil
}
