package host

import (
	"context"

	"github.com/mortise-dev/mortise/internal/service/timeline"
)

// What happened when, by what a session holds.
type (
	TimelineEvent  = timeline.Event
	TimelineFilter = timeline.Filter
)

// Timeline returns the events that artifacts of one session tell of, in the order of their
// times, with notes about what was left out. Each artifact is opened with open.
func Timeline(ctx context.Context, artifacts []Artifact, open timeline.Open, f TimelineFilter) (events []TimelineEvent, notes []string, err error) {
	return timeline.Of(ctx, artifacts, open, f)
}
