package router

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// The points of a mark.
const (
	pointsPillar   = 50
	pointsAdjacent = 25
	pointsArtifact = 30
	pointsFacet    = 10 // for each that fits
	pointsAuto     = 5
	pointsChain    = 10
)

// stabilities are the points of each stability; any other has none.
var stabilities = map[plugin.Stability]int{plugin.Core: 10, plugin.Verified: 5, plugin.Deprecated: -10}

// costs likewise; medium is how some spell moderate.
var costs = map[string]int{"moderate": -5, "medium": -5, "high": -10}

// A scored candidate has its points and what keeps it out.
type scored struct {
	Candidate
	points   int
	marks    []Mark
	named    bool   // the text has its name
	obstacle string // "" where nothing keeps it out
}

func (s *scored) mark(points int, format string, args ...any) {
	if points != 0 {
		s.points += points
		s.marks = append(s.marks, Mark{points, fmt.Sprintf(format, args...)})
	}
}

// score gives a candidate its points and finds what keeps it out.
func (r *request) score(c Candidate) *scored {
	s := &scored{Candidate: c, marks: []Mark{}, named: r.named(c)}
	op := c.Operation
	switch pillar := c.Manifest.Pillar; {
	case pillar == "":
	case pillar == r.pillar:
		s.mark(pointsPillar, "its pillar is %s", pillar)
	case adjacent(pillar, r.pillar):
		s.mark(pointsAdjacent, "its pillar, %s, is next to %s", pillar, r.pillar)
	}
	if has := r.reads(op); len(has) > 0 {
		s.mark(pointsArtifact, "it reads %s", strings.Join(has, ", "))
	}
	for _, facet := range distinct(op.Facets) {
		if _, about := slices.BinarySearch(r.facets, facet); about {
			s.mark(pointsFacet, "%s", facet)
		}
	}
	if link, ok := r.after(c); ok {
		s.mark(pointsChain, "%s", link.Reason)
	}
	fits := s.points > 0
	s.mark(stabilities[op.Stability], "it is %s", op.Stability)
	if op.AutoInvoke {
		s.mark(pointsAuto, "a model may use it without a person")
	}
	s.mark(haste(op.Timeout), "it may take %s", op.Timeout)
	s.mark(costs[op.Cost], "its cost is %s", op.Cost)
	s.obstacle = r.obstacle(op, fits)
	return s
}

// haste returns the points of a time limit: none up to 30 s, which is fast,
// -5 up to 120 s, which is medium, and -10 for more.
func haste(limit time.Duration) int {
	switch {
	case limit <= 30*time.Second:
		return 0
	case limit <= 120*time.Second:
		return -5
	default:
		return -10
	}
}

// obstacle says what keeps an operation out.
func (r *request) obstacle(op *plugin.Operation, fits bool) string {
	switch wanted := kinds(op.Consumes); {
	case !r.query.Hidden && (op.Stability == plugin.Experimental || op.Stability == plugin.Deprecated):
		return fmt.Sprintf("it is %s, which is hidden unless it is named", op.Stability)
	case !r.query.Hidden && op.Hidden:
		return "it is hidden unless it is named"
	case op.NeedsModel && !r.query.Model:
		return "it needs a model, and none is connected"
	case len(wanted) > 0 && !slices.Contains(op.Consumes, none) && len(r.reads(op)) == 0:
		return "it reads " + strings.Join(wanted, " or ") + ", and there is no such artifact"
	case !fits:
		return "nothing of the request speaks for it"
	}
	return ""
}

// reads returns the types of artifacts at hand that an operation reads, sorted.
func (r *request) reads(op *plugin.Operation) []string {
	return slices.DeleteFunc(kinds(op.Consumes), func(kind string) bool { return !slices.Contains(r.kinds, kind) })
}

// kinds returns types of artifacts in the contract's own spelling, sorted, each
// once, without the one that means none.
func kinds(types []string) []string {
	var found []string
	for _, kind := range types {
		if kind != none {
			found = append(found, artifactType(kind))
		}
	}
	return distinct(found)
}

// distinct returns the strings sorted, each once.
func distinct(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
