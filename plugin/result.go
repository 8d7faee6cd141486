package plugin

import (
	"encoding/json"
	"time"
)

// A Status is the state of a call as callers see it.
type Status string

// The statuses. A queued or running call is in progress.
const (
	Succeeded       Status = "succeeded"
	Failed          Status = "failed"
	InProgress      Status = "in_progress"
	PendingApproval Status = "pending_approval"
	Unknown         Status = "unknown"
)

// Ended reports whether the call is in a state that it does not leave by itself.
func (s Status) Ended() bool { return s == Succeeded || s == Failed || s == Unknown }

// SchemaVersion is the version of the stored form of a [Result], kept with
// each so that older ones remain readable (kernel contracts, 5.7).
const SchemaVersion = "1"

// A Result is the outcome of a call.
type Result struct {
	Status         Status          `json:"status"`
	CallID         string          `json:"call_id"`
	Operation      string          `json:"operation"` // plugin/operation
	Version        string          `json:"version"`   // of the plugin
	Data           json.RawMessage `json:"data,omitzero"`
	Artifacts      []Artifact      `json:"artifacts,omitempty"`
	Metrics        Metrics         `json:"metrics,omitempty"`
	Nondeterminism *Nondeterminism `json:"nondeterminism,omitempty"`
	Summary        string          `json:"summary,omitempty"`
	Diagnostics    json.RawMessage `json:"diagnostics,omitzero"`
	Message        string          `json:"message,omitempty"`         // the plugin's message for people
	Details        json.RawMessage `json:"details,omitzero"`          // structured details beside the message
	Outputs        json.RawMessage `json:"output_artifacts,omitzero"` // the artifacts as the plugin reported them; Artifacts are those that the host stored
	Skips          json.RawMessage `json:"skips,omitzero"`
	Citations      json.RawMessage `json:"citations,omitzero"`
	NextCursor     json.RawMessage `json:"next_cursor,omitzero"`
	Returned       Returned        `json:"returned,omitempty"` // the form of a Shu result that lacks the members of a result
	Members        json.RawMessage `json:"members,omitzero"`   // the members of that dict, unchanged; its data, if any, is null here
	SchemaVersion  string          `json:"schema_version"`
	Correlation    string          `json:"correlation_id"`
	Cached         bool            `json:"cached,omitzero"`    // served from the cache of an earlier call with the same input
	Replayed       bool            `json:"replayed,omitzero"`  // the stored result of the first call with this idempotency key
	Labels         []string        `json:"labels,omitempty"`   // labels of the data
	Approval       *Pending        `json:"approval,omitempty"` // set if the status is pending_approval
	DryRun         *DryRun         `json:"dry_run,omitempty"`  // the changes that a dry run recorded
}

// Returned is the form of what execute of a Shu plugin returned, if that lacks the members
// of a result. The contract passes such values on unchanged, without a check of the output
// schema.
type Returned string

// The values of [Returned].
const (
	ReturnedDict Returned = "dict" // a dict with a status
	ReturnedBare Returned = "bare" // a dict without one; it is the data
	ReturnedNone Returned = "none" // None
)

// Pending is the approval that a call waits for.
type Pending struct {
	ID        string          `json:"id"`
	Why       string          `json:"why"` // the reason that policy gave
	Preview   json.RawMessage `json:"preview,omitzero"`
	ExpiresAt time.Time       `json:"expires_at"`
}

// Metrics are measurements of one call: latency_ms (always present), tokens_in,
// tokens_out, cost_total, provider, and any numbers and strings that the plugin adds.
type Metrics map[string]any

// Nondeterminism declares that the same input may give different outputs
// (kernel contracts, 5.3.4 C).
type Nondeterminism struct {
	Is        bool     `json:"is_nondeterministic"`
	Reasons   []string `json:"reasons,omitempty"`
	Stability string   `json:"stability,omitempty"` // high, medium, low

	// Undisclosed is true if the host detected the nondeterminism and the plugin did
	// not declare it.
	Undisclosed bool `json:"undisclosed,omitempty"`
}

// An Artifact is a file or object that a call produced. It has an id if the host stored
// it in a session.
type Artifact struct {
	ID   string `json:"id,omitempty"` // art_<8 hex digits>, unique within its session
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
	Path string `json:"path"`
	Hash string `json:"hash,omitempty"` // sha256:<64 hex digits>
	Size int64  `json:"size,omitzero"`  // bytes
}
