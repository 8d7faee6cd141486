package host

import "github.com/mortise-dev/mortise/internal/store"

// What the nouns answer with, and how lists are narrowed. Surfaces name these types by
// this package alone.
type (
	CallRow     = store.CallRow
	ApprovalRow = store.ApprovalRow
	EffectRow   = store.EffectRow
	ScheduleRow = store.ScheduleRow

	CallFilter         = store.CallFilter
	ApprovalFilter     = store.ApprovalFilter
	PlanFilter         = store.PlanFilter
	ScheduleFilter     = store.ScheduleFilter
	ConversationFilter = store.ConversationFilter
	EntryFilter        = store.EntryFilter

	CallState   = store.CallState
	PlanState   = store.PlanState
	EffectState = store.EffectState
)

// The states of a call.
const (
	CallPending    = store.CallPending
	CallQueued     = store.CallQueued
	CallRunning    = store.CallRunning
	CallInProgress = store.CallInProgress
	CallSucceeded  = store.CallSucceeded
	CallFailed     = store.CallFailed
	CallUnknown    = store.CallUnknown
)

// The states of a plan.
const (
	PlanPending   = store.PlanPending
	PlanQueued    = store.PlanQueued
	PlanRunning   = store.PlanRunning
	PlanSucceeded = store.PlanSucceeded
	PlanFailed    = store.PlanFailed
	PlanUnknown   = store.PlanUnknown
	PlanCancelled = store.PlanCancelled
)

// The states of an approval, and what one is of.
const (
	ApprovalOpen     = store.ApprovalOpen
	ApprovalApproved = store.ApprovalApproved
	ApprovalDenied   = store.ApprovalDenied
	ApprovalConsumed = store.ApprovalConsumed

	SubjectCall = store.SubjectCall
	SubjectPlan = store.SubjectPlan
)

// EveryAgent is the agent of a filter that asks for all of them.
const EveryAgent = store.EveryAgent
