package telemetry

import "sync"

// maxNamed is how many operations metrics tell apart. All others are counted as "other".
const maxNamed = 500

// named are the names that a label may have: the first that come, up to a number of them.
type named struct {
	mu    sync.RWMutex
	names map[string]bool
	most  int
}

func newNamed(most int) *named { return &named{names: map[string]bool{}, most: most} }

// label returns a name as a metric has it.
func (n *named) label(name string) string {
	n.mu.RLock()
	known, full := n.names[name], len(n.names) >= n.most
	n.mu.RUnlock()
	if known {
		return name
	}
	if full {
		return "other"
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.names) >= n.most && !n.names[name] {
		return "other"
	}
	n.names[name] = true
	return name
}
