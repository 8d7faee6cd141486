package schedule

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

// A Store is what an [Engine] needs of the one that keeps schedules.
type Store interface {
	store.ScheduleReader
	store.Clock
	Call(ctx context.Context, tenant, id string) (*store.CallRow, error)
	Write(ctx context.Context, fn func(store.Tx) error) error
}

// A Row is a schedule as it is kept, and a Filter says which are wanted.
type (
	Row    = store.ScheduleRow
	Filter = store.ScheduleFilter
)

// A State is whether a schedule makes runs.
type State = store.ScheduleState

// The states of a schedule.
const (
	Active = store.ScheduleActive
	Paused = store.SchedulePaused
)

// A TickRow is one time of a schedule, and a TickFilter says which are wanted.
type (
	TickRow     = store.TickRow
	TickFilter  = store.TickFilter
	TickOutcome = store.TickOutcome
)

// What became of a time.
const (
	TickDue        = store.TickDue
	TickCalled     = store.TickCalled
	TickMissed     = store.TickMissed
	TickOverlapped = store.TickOverlapped
	TickRefused    = store.TickRefused
)

const ownedFeeds = store.OwnedFeeds
