package plugin

import (
	"encoding/json"
	"time"
)

// A Status is how a call stands.
type Status string

// The statuses. Outside, a queued or running call reads as in progress.
const (
	Succeeded       Status = "succeeded"
	Failed          Status = "failed"
	InProgress      Status = "in_progress"
	PendingApproval Status = "pending_approval"
	Unknown         Status = "unknown"
)

// Ended reports whether nothing more will happen by itself.
func (s Status) Ended() bool { return s == Succeeded || s == Failed || s == Unknown }

// SchemaVersion is the version of the stored form of a [Result], kept with
// each so that older ones remain readable (kernel contracts, 5.7).
const SchemaVersion = "1"

// A Result is a call's answer.
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
	Message        string          `json:"message,omitempty"`         // what the plugin says of its answer
	Details        json.RawMessage `json:"details,omitzero"`          // likewise, as members
	Outputs        json.RawMessage `json:"output_artifacts,omitzero"` // what it says it made, in its own words; Artifacts is what the host took in
	Skips          json.RawMessage `json:"skips,omitzero"`
	Citations      json.RawMessage `json:"citations,omitzero"`
	NextCursor     json.RawMessage `json:"next_cursor,omitzero"`
	Returned       Returned        `json:"returned,omitempty"` // what a plugin of Shu returned, where it was no object with the members of a result
	Members        json.RawMessage `json:"members,omitzero"`   // of the dict that a plugin of Shu returned, as they are; its data, if any, is null here
	SchemaVersion  string          `json:"schema_version"`
	Correlation    string          `json:"correlation_id"`
	Cached         bool            `json:"cached,omitzero"`    // an earlier answer of the same tool to the same input
	Replayed       bool            `json:"replayed,omitzero"`  // the first answer to this idempotency key
	Labels         []string        `json:"labels,omitempty"`   // what the data is tainted with
	Approval       *Pending        `json:"approval,omitempty"` // what a call that is pending_approval waits for
	DryRun         *DryRun         `json:"dry_run,omitempty"`  // what a dry run found out; nothing of it has happened
}

// Returned says what the execute of a Shu plugin returned in place of an object
// with the members of a result. Its contract passes those on as they are: the
// output schema is not looked at.
type Returned string

// The values of [Returned].
const (
	ReturnedDict Returned = "dict" // a dict with a status
	ReturnedBare Returned = "bare" // a dict without one; it is the data
	ReturnedNone Returned = "none" // None
)

// Pending is what a person is asked before a call goes on.
type Pending struct {
	ID        string          `json:"id"`
	Why       string          `json:"why"` // what policy said
	Preview   json.RawMessage `json:"preview,omitzero"`
	ExpiresAt time.Time       `json:"expires_at"`
}

// Metrics are figures of one call: latency_ms (always there), tokens_in,
// tokens_out, cost_total, provider, and whatever numbers and strings the
// plugin adds.
type Metrics map[string]any

// Nondeterminism is a plugin's statement that the same input need not give the
// same output (kernel contracts, 5.3.4 C).
type Nondeterminism struct {
	Is        bool     `json:"is_nondeterministic"`
	Reasons   []string `json:"reasons,omitempty"`
	Stability string   `json:"stability,omitempty"` // high, medium, low

	// Undisclosed says that the host found this out, and the plugin said nothing
	// of it or denied it.
	Undisclosed bool `json:"undisclosed,omitempty"`
}

// An Artifact is a file or object that a call produced. One that the host took
// into a session has an id.
type Artifact struct {
	ID   string `json:"id,omitempty"` // art_<8 hex digits>, unique within its session
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
	Path string `json:"path"`
	Hash string `json:"hash,omitempty"` // sha256:<64 hex digits>
	Size int64  `json:"size,omitzero"`  // bytes
}
