package host

import (
	"context"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/catalog/router"
	"github.com/mortise-dev/mortise/plugin"
)

// What a request for operations is, and what it finds.
type (
	RouteQuery    = router.Query
	RouteArtifact = router.Artifact
	Route         = router.Answer
	RouteChoice   = router.Choice
)

// MaxRouteText is how many bytes of a request are read.
const MaxRouteText = router.MaxText

// RoutePillars returns the fields that a request can be in.
func RoutePillars() []string { return router.Pillars() }

// AtHand adds to a query what is known of a session. It returns the artifacts of the
// session.
func (m Sessions) AtHand(ctx context.Context, q *RouteQuery, in string) ([]Artifact, error) {
	s, err := m.Get(ctx, in)
	if err != nil {
		return nil, err
	}
	list, err := m.Artifacts(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	q.Session = s.Pillar
	for _, artifact := range slices.Backward(list) { // the newest that a tool made
		if q.Last == "" {
			q.Last = artifact.SourceTool
		}
	}
	return list, nil
}

// Route chooses among the operations that they may know of: of each plugin
// those of the version that a call without one would get. A model counts as
// connected where one is configured.
func (p Plugins) Route(ctx context.Context, q router.Query) (router.Answer, error) {
	all, err := p.registry.Known(ctx) // the highest version first
	if err != nil {
		return router.Answer{}, err
	}
	var candidates []router.Candidate
	pillars := router.Pillars()
	taken := map[string]bool{}
	for _, info := range all {
		if info.State != registry.Active || info.Problem != "" || taken[info.Name] {
			continue
		}
		taken[info.Name] = true
		m := info.Plugin()
		operations, _ := p.g.Policy.Visible(m, p.g.call(p.by))
		if len(operations) > 0 && m.Pillar != "" {
			pillars = append(pillars, m.Pillar)
		}
		for _, op := range operations {
			candidates = append(candidates, router.Candidate{Manifest: m, Operation: op})
		}
	}
	if q.Pillar != "" && !slices.Contains(pillars, q.Pillar) {
		slices.Sort(pillars)
		return router.Answer{}, plugin.Errorf(plugin.CodeInvalidInput, "there is no pillar %q; the pillars are %s", q.Pillar, strings.Join(slices.Compact(pillars), ", "))
	}
	// Without a model, what asks for one runs all the same, unless it is told to refuse.
	q.Model = q.Model || p.models
	return router.Route(q, candidates), nil
}
