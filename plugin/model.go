package plugin

// A ModelRecord is the ledger's record of one query to a language model. Prompt and answer
// are stored separately under their hashes, and are private.
type ModelRecord struct {
	CallID     string         `json:"call_id"`
	Operation  string         `json:"operation"` // plugin/operation
	Plugin     string         `json:"plugin"`
	Version    string         `json:"version"`
	Session    string         `json:"session"`
	Tier       string         `json:"tier"`     // the requested tier
	Model      string         `json:"model"`    // the model that answered, by its name in the configuration; if none did, the last one tried
	Provider   string         `json:"provider"` // its provider
	Answered   string         `json:"answered"` // the name of the model as the provider reported it
	Stop       string         `json:"stop"`     // the stop reason of the provider
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
	Kept       bool           `json:"kept"`        // whether prompt and answer are stored
	Labels     []string       `json:"labels"`
	Took       float64        `json:"latency_ms"`
}

// A ModelAttempt is one request of a query.
type ModelAttempt struct {
	Model   string  `json:"model"`
	Outcome string  `json:"outcome"`
	Status  int     `json:"status"` // HTTP status, 0 if there was no response
	Cost    int64   `json:"cost_micro_cents"`
	Took    float64 `json:"latency_ms"`
}
