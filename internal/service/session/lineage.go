package session

import "slices"

// Lineage returns, of all artifacts of a session, those that one was made from,
// directly or not, and those that were made from it, both oldest first.
func Lineage(all []Artifact, id string) (ancestors, descendants []Artifact) {
	// Parents were there before their children: one pass each way is enough.
	above, below := map[string]bool{id: true}, map[string]bool{id: true}
	for _, a := range slices.Backward(all) {
		if above[a.ID] {
			for _, parent := range a.Parents {
				above[parent] = true
			}
		}
	}
	for _, a := range all {
		if slices.ContainsFunc(a.Parents, func(parent string) bool { return below[parent] }) {
			below[a.ID] = true
		}
		switch {
		case a.ID == id:
		case above[a.ID]:
			ancestors = append(ancestors, a)
		case below[a.ID]:
			descendants = append(descendants, a)
		}
	}
	return ancestors, descendants
}
