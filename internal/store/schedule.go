package store

import "time"

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
	Spec      string
	Zone      string // of the time zone database
	Misfire   string
	CatchUp   int64 // how many missed times are run, where Misfire says so
	Overlap   string
	Overlay   string // JSON: what the host alone decides about its runs
	Asker     string // who is known to have made it, as the surface has authenticated them
	CreatedAt time.Time

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
