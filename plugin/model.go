package plugin

// A ModelRecord is what the ledger keeps of one query to a language model. What
// was asked and answered is kept beside it under the hashes, and is private.
type ModelRecord struct {
	CallID     string         `json:"call_id"`
	Operation  string         `json:"operation"` // plugin/operation
	Plugin     string         `json:"plugin"`
	Version    string         `json:"version"`
	Session    string         `json:"session"`
	Tier       string         `json:"tier"`     // that was asked for
	Model      string         `json:"model"`    // that answered, as the host calls it; the last that was tried where none did
	Provider   string         `json:"provider"` // likewise
	Answered   string         `json:"answered"` // what the provider says it was
	Stop       string         `json:"stop"`     // why it ended, in the provider's words
	Parameters map[string]any `json:"parameters"`
	TokensIn   int            `json:"tokens_in"`
	TokensOut  int            `json:"tokens_out"`
	Cost       int64          `json:"cost_micro_cents"` // as budgets count it
	Estimated  bool           `json:"estimated"`        // part of the cost is an upper bound, because the actual cost is unknown
	Path       string         `json:"transport_path"`
	Fallback   string         `json:"fallback_reason"`
	Attempts   []ModelAttempt `json:"attempts"`
	Outcome    string         `json:"outcome"` // ok, or what kind of failure
	Message    string         `json:"message"` // of the failure
	PromptHash string         `json:"prompt_hash"`
	AnswerHash string         `json:"answer_hash"` // "" where there is none
	Kept       bool           `json:"kept"`        // whether the bodies of both are
	Labels     []string       `json:"labels"`
	Took       float64        `json:"latency_ms"`
}

// A ModelAttempt is one request of a query.
type ModelAttempt struct {
	Model   string  `json:"model"`
	Outcome string  `json:"outcome"`
	Status  int     `json:"status"` // of the HTTP answer, 0 where there was none
	Cost    int64   `json:"cost_micro_cents"`
	Took    float64 `json:"latency_ms"`
}
