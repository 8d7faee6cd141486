package plan

import "slices"

// A node is a step and what it waits for.
type node struct {
	id    string
	needs []string
}

// sorted returns the positions of steps in an order in which each comes after
// those it needs, and otherwise as they stand. stuck are those that wait for
// each other, or for such, or for what there is not.
func sorted(nodes []node) (order []int, stuck []string) {
	done := map[string]bool{}
	left := make([]int, len(nodes))
	for i := range nodes {
		left[i] = i
	}
	for len(left) > 0 {
		next := slices.IndexFunc(left, func(i int) bool {
			return !slices.ContainsFunc(nodes[i].needs, func(need string) bool { return !done[need] })
		})
		if next < 0 {
			for _, i := range left {
				stuck = append(stuck, nodes[i].id)
			}
			return order, stuck
		}
		i := left[next]
		done[nodes[i].id] = true
		order = append(order, i)
		left = slices.Delete(left, next, next+1)
	}
	return order, nil
}
