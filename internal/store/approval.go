package store

import (
	"context"
	"time"
)

// An ApprovalState is where a request for approval stands.
type ApprovalState string

// The states of an approval.
const (
	ApprovalOpen     ApprovalState = "open"
	ApprovalApproved ApprovalState = "approved"
	ApprovalDenied   ApprovalState = "denied"
	ApprovalExpired  ApprovalState = "expired"
	ApprovalVoid     ApprovalState = "void"     // what it was asked for is no longer what would run
	ApprovalConsumed ApprovalState = "consumed" // used, for the one thing it was given for
)

// Closed reports whether nothing more happens to such an approval.
func (s ApprovalState) Closed() bool { return s != ApprovalOpen && s != ApprovalApproved }

// What is approved.
const (
	SubjectCall = "call"
	SubjectPlan = "plan"
)

// An ApprovalRow is a question to a person, and the answer. The last group is
// what an answer changes.
type ApprovalRow struct {
	Tenant        string
	ID            string
	SubjectKind   string // call or plan
	SubjectID     string
	Binding       string // hash of everything that must not change until it is used
	PreviewHash   string // of the body that holds what the person was shown; "" for nothing
	TokenHash     string // of the token that approvers were given
	Requester     string
	Asker         string // who that is known to be, as where they asked has found out
	PackageDigest string
	PolicyVersion string
	Why           string // what policy said
	CreatedAt     time.Time
	ExpiresAt     time.Time

	State     ApprovalState
	DecidedBy string
	Reason    string // the person's
	DecidedAt time.Time
	MAC       string // once it is closed, of all of this with the host's key; the store gives it
}

// An ApprovalFilter says which approvals are wanted. Empty fields ask for
// nothing.
type ApprovalFilter struct {
	Tenant        string
	State         ApprovalState
	SubjectKind   string
	SubjectID     string
	ExpiresBefore time.Time
	Before        string // only those with smaller ids
	Limit         int
}

// An ApprovalReader reads approvals.
type ApprovalReader interface {
	// Approval returns the approval of that id.
	Approval(ctx context.Context, tenant, id string) (*ApprovalRow, error)
	// ApprovalByToken returns the approval whose token has that hash.
	ApprovalByToken(ctx context.Context, tenant, tokenHash string) (*ApprovalRow, error)
	// Approvals returns approvals, newest first.
	Approvals(ctx context.Context, filter ApprovalFilter) ([]ApprovalRow, error)
}

// An ApprovalWriter is what a transaction may do to them.
type ApprovalWriter interface {
	// InsertApproval adds an approval.
	InsertApproval(row ApprovalRow) error
	// UpdateApproval gives the approval that is in state from the changeable
	// values of next (see [ApprovalRow]) and reports whether it was in it.
	UpdateApproval(from ApprovalState, next ApprovalRow) (won bool, err error)
}
