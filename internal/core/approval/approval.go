// Package approval asks a person before something happens, and takes the answer
// once.
//
// An approval is a capability for one exact thing: its binding is the hash of
// everything that must not change until it is used. The caller that puts a call
// or a plan on hold stores the approval in the same transaction ([New],
// [Asked.Put]); a [Service] takes the answer and in the same transaction releases
// or fails what waited. Any node then runs what was released; see package
// kernel.
package approval

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// A Question is what a person is to be asked.
type Question struct {
	Tenant        string
	SubjectKind   string // SubjectCall or SubjectPlan
	SubjectID     string
	Requester     string
	Asker         string // see [plugin.Call]
	Binding       string // hash of everything that must not change; sha256:<hex>
	PackageDigest string // "" for a plan, whose steps name theirs
	PolicyVersion string
	Why           string          // what policy said
	Preview       json.RawMessage // what the person is shown; may be nil
	At, Expires   time.Time
}

// Asked is a question with its token, ready to be put.
type Asked struct {
	Row     Row
	Token   string // 32 random bytes, for approvers alone: only its hash is kept
	Preview json.RawMessage
}

// New makes a question ready. Nothing is written yet.
func New(q Question) *Asked {
	token := newToken()
	row := Row{
		Tenant: q.Tenant, ID: uuid.Must(uuid.NewV7()).String(), SubjectKind: q.SubjectKind, SubjectID: q.SubjectID,
		Binding: q.Binding, TokenHash: HashToken(token), Requester: q.Requester, Asker: q.Asker, PackageDigest: q.PackageDigest,
		PolicyVersion: q.PolicyVersion, Why: q.Why, CreatedAt: q.At, ExpiresAt: q.Expires, State: Open,
	}
	if len(q.Preview) > 0 {
		row.PreviewHash = canon.Sum(q.Preview)
	}
	return &Asked{Row: row, Token: token, Preview: q.Preview}
}

// newToken draws a random token. One that begins with "-" would be taken for an
// option on a command line, so another is drawn.
func newToken() string {
	secret := make([]byte, 32)
	for {
		rand.Read(secret) // never fails: crypto/rand ends the process rather
		if token := base64.RawURLEncoding.EncodeToString(secret); token[0] != '-' {
			return token
		}
	}
}

// HashToken returns the form in which a token is kept.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte("mortise approval token 1\n" + token))
	return hex.EncodeToString(sum[:])
}

// Put writes the question, what is shown with it and its entry.
func (a *Asked) Put(tx ledger.Tx) error {
	if len(a.Preview) > 0 {
		if _, err := tx.PutBody(a.Row.Tenant, a.Preview, time.Time{}); err != nil {
			return err
		}
	}
	if err := tx.InsertApproval(a.Row); err != nil {
		return err
	}
	return note(tx, plugin.EntryApprovalRequested, &a.Row, a.Row.Requester, "", a.Row.CreatedAt)
}

// Consume uses up the approval of row, in the transaction in which the approved
// action begins. It reports false if another transaction was faster.
func Consume(tx ledger.Tx, row Row, at time.Time) (won bool, err error) {
	next := row
	next.State = Consumed
	if won, err = tx.UpdateApproval(Approved, next); err != nil || !won {
		return won, err
	}
	return true, note(tx, plugin.EntryApprovalConsumed, &next, row.Requester, "", at)
}

// Void makes an approval worth nothing, because what it was given for has
// changed.
func Void(tx ledger.Tx, row Row, why string, at time.Time) error {
	next := row
	next.State, next.Reason, next.DecidedAt = Voided, why, at
	won, err := tx.UpdateApproval(row.State, next)
	if err != nil || !won {
		return err
	}
	return note(tx, plugin.EntryApprovalVoid, &next, row.Requester, why, at)
}

// Withdraw voids the approvals of a call or plan that were not used, in the transaction
// in which it ends.
func Withdraw(ctx context.Context, tx ledger.Tx, tenant, kind, id, why string, at time.Time) error {
	asked, err := tx.Approvals(ctx, Filter{Tenant: tenant, SubjectKind: kind, SubjectID: id})
	for _, a := range asked {
		if a.State == Open || a.State == Approved {
			err = errors.Join(err, Void(tx, a, why, at))
		}
	}
	return err
}

// An evidence is the body of an approval's entries (Shu contract: subject,
// action, parameter hash, decision, approver, times).
type evidence struct {
	Approval      string    `json:"approval"`
	SubjectKind   string    `json:"subject_kind"`
	Subject       string    `json:"subject"`
	Operation     string    `json:"operation,omitempty"`  // of a call
	InputHash     string    `json:"input_hash,omitempty"` // of a call
	Binding       string    `json:"binding"`
	PreviewHash   string    `json:"preview_hash"`
	PackageDigest string    `json:"package_digest"`
	PolicyVersion string    `json:"policy_version"`
	Requester     string    `json:"requester"`
	Asker         string    `json:"asker,omitempty"` // who the requester is known to be
	Why           string    `json:"why"`
	State         string    `json:"state"`
	DecidedBy     string    `json:"decided_by"`
	Decider       string    `json:"decider,omitempty"`  // who decided_by is known to be
	Trusted       bool      `json:"trust_as,omitempty"` // the same one as the asker: the configuration takes their word for who they are
	Reason        string    `json:"reason"`
	CreatedAt     time.Time `json:"created_at"`
	ExpiresAt     time.Time `json:"expires_at"`
}

// note appends an entry about an approval.
func note(tx ledger.Tx, kind plugin.EntryKind, row *Row, by, reason string, at time.Time) error {
	return noteOf(tx, kind, row, by, reason, Answer{}, at)
}

// noteOf is note about an answer.
func noteOf(tx ledger.Tx, kind plugin.EntryKind, row *Row, by, reason string, a Answer, at time.Time) error {
	e := evidence{
		Approval: row.ID, SubjectKind: row.SubjectKind, Subject: row.SubjectID, Binding: row.Binding, PreviewHash: row.PreviewHash,
		PackageDigest: row.PackageDigest, PolicyVersion: row.PolicyVersion, Requester: row.Requester, Asker: row.Asker, Why: row.Why, State: string(row.State),
		DecidedBy: row.DecidedBy, Reason: row.Reason, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt,
	}
	e.Decider, e.Trusted = a.Asker, a.Approve && !a.Own && a.same
	if reason != "" {
		e.Reason = reason
	}
	if row.SubjectKind == SubjectCall {
		call, err := tx.Call(context.Background(), row.Tenant, row.SubjectID)
		if err != nil {
			return err
		}
		if call != nil {
			e.Operation, e.InputHash = call.Operation, call.InputHash
		}
	}
	body, err := json2.Marshal(e, json2.Deterministic(true))
	if err != nil {
		return err
	}
	tx.Append(plugin.Entry{At: at.Truncate(time.Microsecond).UTC(), Tenant: row.Tenant, Kind: kind, Subject: row.SubjectID, Principal: by, Body: body})
	return nil
}
