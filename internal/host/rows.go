package host

import (
	"github.com/mortise-dev/mortise/internal/agent/adapter"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

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

	ApprovalState = store.ApprovalState
)

// What is asked of engines behind the nouns.
type (
	Delivery       = adapter.Delivery  // an event for an adapter
	Decision       = approval.Answer   // approves or denies an approval
	Settlement     = kernel.Settlement // the outcome that a person records for an unknown call
	PolicyEngine   = policy.Engine
	PolicyProblems = policy.Problems
	PolicyDocument = policy.Document

	PolicyExplanation = policy.Explanation
)

// SamePerson reports whether an approval counts as given by the user who asked for it.
func SamePerson(row *ApprovalRow, d Decision) bool { return approval.Same(row, d) }

// PrincipalName returns a principal as the configuration and the ledger name it.
func PrincipalName(p plugin.Principal) string { return principal.Name(p) }

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
