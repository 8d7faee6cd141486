package mortise

// A SubmitRequest is what an adapter makes of an event that happened elsewhere
// (KernelSubmitRequest; kernel contracts, 5.5.1). There is no way to name rights
// in it: whose they are is for the host to say.
type SubmitRequest struct {
	Intent         SubmitIntent      `json:"intent"`
	Principal      ExternalPrincipal `json:"principal"`
	Context        map[string]any    `json:"context,omitempty"`
	Constraints    map[string]any    `json:"constraints,omitempty"`
	IdempotencyKey string            `json:"idempotency_key,omitempty"` // the same for every delivery of the same event
	Metadata       map[string]any    `json:"metadata,omitempty"`
}

// A SubmitIntent is what the event asks for, such as Support.Ticket.Resolve.
type SubmitIntent struct {
	Type    string         `json:"type"`
	Payload map[string]any `json:"payload"`
}

// An ExternalPrincipal is who the other system says it was.
type ExternalPrincipal struct {
	Provider   string `json:"provider"`
	ExternalID string `json:"external_id"`
}
