package store

import (
	"context"
	"time"
)

// A ScheduleState is whether a schedule makes runs.
type ScheduleState string

// The states of a schedule.
const (
	ScheduleActive ScheduleState = "active"
	SchedulePaused ScheduleState = "paused"
)

// A ScheduleRow is when an operation is to be run, and in whose name. The last
// group is what changes.
type ScheduleRow struct {
	Tenant    string
	ID        string
	OwnerType string // whose rights its runs have, as far as they still have them
	OwnerID   string
	Scopes    []string
	Operation string // plugin/operation
	CreatedAt time.Time

	Spec      string
	Zone      string // of the time zone database
	Misfire   string
	CatchUp   int64 // how many missed times are run, where Misfire says so
	Overlap   string
	Overlay   string // JSON: what the host alone decides about its runs
	Asker     string // who is known to have made it what it is, as the surface has authenticated them
	Input     string // JSON
	State     ScheduleState
	NextAt    time.Time // the next time that has no tick
	WakeAt    time.Time // when it is to be looked at
	LastCall  string    // the call of the last tick that has one
	Revision  int64     // counts the changes; UpdateSchedule does
	UpdatedAt time.Time
}

// A ScheduleFilter says which schedules are wanted. Empty fields ask for nothing.
type ScheduleFilter struct {
	Tenant    string
	Before    string    // only ids that are smaller: older schedules
	DueBefore time.Time // only active ones whose wake_at is not after it; the longest waiting come first
	Limit     int
}

// A TickOutcome is what became of one time of a schedule.
type TickOutcome string

// The outcomes.
const (
	TickDue        TickOutcome = "due"        // it is to be run
	TickCalled     TickOutcome = "called"     // it is a call
	TickMissed     TickOutcome = "missed"     // no node was running at the time
	TickOverlapped TickOutcome = "overlapped" // an earlier run was not over
	TickRefused    TickOutcome = "refused"    // the call was refused
)

// A TickRow is one time of a schedule. There is one for each time, whatever
// node comes to it first. The last group is what changes.
type TickRow struct {
	Tenant     string
	ScheduleID string
	At         time.Time // the intended time
	Since      time.Time // the first of the times that it stands for

	Outcome   TickOutcome
	CallID    string
	Code      string // why it was refused
	UpdatedAt time.Time
}

// A TickFilter says which ticks of a schedule are wanted, newest first. Empty
// fields ask for nothing.
type TickFilter struct {
	Tenant     string
	ScheduleID string
	Outcome    TickOutcome
	Oldest     bool // first
	Limit      int
}

// A ScheduleReader reads schedules and their times.
type ScheduleReader interface {
	// Schedule returns the schedule of that id.
	Schedule(ctx context.Context, tenant, id string) (*ScheduleRow, error)
	// Schedules returns schedules, newest first; those that are due by when.
	Schedules(ctx context.Context, filter ScheduleFilter) ([]ScheduleRow, error)
	// Ticks returns the times of a schedule that have come.
	Ticks(ctx context.Context, filter TickFilter) ([]TickRow, error)
}

// A ScheduleWriter is what a transaction may do to them.
type ScheduleWriter interface {
	// InsertSchedule adds a schedule.
	InsertSchedule(row ScheduleRow) error
	// UpdateSchedule gives the schedule that has row's revision the changeable
	// values of row (see [ScheduleRow]) and the next revision, and reports
	// whether it had it; if not, nothing is written.
	UpdateSchedule(row ScheduleRow) (won bool, err error)
	// DeleteSchedule deletes a schedule with its ticks and reports whether there
	// was one.
	DeleteSchedule(tenant, id string) (found bool, err error)
	// InsertTick adds a time of a schedule and reports whether it was not there.
	InsertTick(row TickRow) (inserted bool, err error)
	// UpdateTick gives the tick whose outcome is from the changeable values of
	// row (see [TickRow]) and reports whether it was.
	UpdateTick(from TickOutcome, row TickRow) (won bool, err error)
	// DeleteTicks forgets the times of a schedule before a time that are not due.
	DeleteTicks(tenant, schedule string, before time.Time) error
}
