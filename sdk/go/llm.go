package mortise

// LLMHints say which model suits a query. They add nothing to what is asked.
type LLMHints struct {
	Tier                  string  `json:"tier,omitempty"` // light or heavy
	NeedsReasoning        bool    `json:"needs_reasoning,omitzero"`
	NeedsStructuredOutput bool    `json:"needs_structured_output,omitzero"`
	PrefersNativeFile     bool    `json:"prefers_native_file,omitzero"`
	MaxBudgetCents        float64 `json:"max_budget_cents,omitzero"` // no limit of its own where it is 0
}

// An LLMQuery asks a model. Its texts have 4 MiB together.
type LLMQuery struct {
	Prompt        string    `json:"prompt"`
	SystemContext string    `json:"system_context,omitempty"`
	MaxTokens     int       `json:"max_tokens,omitzero"`      // of the answer, at most 131,072; 4096 where it is 0
	GroundingData []string  `json:"grounding_data,omitempty"` // at most 64 texts
	Hints         *LLMHints `json:"hints,omitzero"`
}

// An LLMImageQuery asks a model about a picture.
type LLMImageQuery struct {
	Prompt        string `json:"prompt"`
	Image         File   `json:"image"`                  // at most 16 MiB
	ImageFormat   string `json:"image_format,omitempty"` // png, jpeg, gif or webp
	SystemContext string `json:"system_context,omitempty"`
	MaxTokens     int    `json:"max_tokens,omitzero"` // 4096 where it is 0
}

// An LLMDocumentQuery asks a model about a document: an artifact of the call's
// session, or a file in the scratch directory of at most 32 MiB, given by its path.
type LLMDocumentQuery struct {
	Prompt        string    `json:"prompt"`
	ArtifactID    string    `json:"artifact_id,omitempty"`
	Document      File      `json:"document,omitzero"`
	MIMEType      string    `json:"mime_type,omitempty"` // application/pdf of a file, where it is empty
	SystemContext string    `json:"system_context,omitempty"`
	MaxTokens     int       `json:"max_tokens,omitzero"` // 8192 where it is 0
	GroundingData []string  `json:"grounding_data,omitempty"`
	Hints         *LLMHints `json:"hints,omitzero"` // tier heavy where it is nil
}

// An LLMAnswer is what came of a query. That a model failed, or may not be paid
// for, is an answer too, with OK false.
type LLMAnswer struct {
	OK             bool       `json:"ok"`
	Text           string     `json:"text"`
	Error          string     `json:"error"`           // a word of docs/services.md, such as rate_limited, a colon and the reason; empty where OK
	TokenUsage     *LLMTokens `json:"token_usage"`     // nil where the provider tells nothing
	ModelUsed      string     `json:"model_used"`      // empty where none was asked
	TransportPath  string     `json:"transport_path"`  // how a document was sent: gs_uri, inline_bytes or text_fallback
	FallbackReason string     `json:"fallback_reason"` // why it was text_fallback
}

// LLMTokens are how many tokens a query took.
type LLMTokens struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
	Total  int `json:"total_tokens"`
}

func (c *Call) query(method string, query any) (answer LLMAnswer, err error) {
	err = c.Service(method, query, &answer)
	return answer, err
}

// LLMQueryText asks a model. The error is of the request, as service_denied is
// for a plugin that may ask no model, input_too_large, and limit_exceeded from
// the 1,001st query of a call on; see [LLMAnswer] for a model that fails.
func (c *Call) LLMQueryText(query LLMQuery) (LLMAnswer, error) {
	return c.query("llm.query_text", query)
}

// LLMQueryMultimodal asks a model about a picture; see [Call.LLMQueryText].
func (c *Call) LLMQueryMultimodal(query LLMImageQuery) (LLMAnswer, error) {
	return c.query("llm.query_multimodal", query)
}

// LLMQueryWithDocument asks a model about a document; see [Call.LLMQueryText].
func (c *Call) LLMQueryWithDocument(query LLMDocumentQuery) (LLMAnswer, error) {
	return c.query("llm.query_with_document", query)
}

// LLMSupportsNativeDocument reports whether a model reads documents of a type,
// such as application/pdf, by itself. Nothing is sent.
func (c *Call) LLMSupportsNativeDocument(mimeType string) (bool, error) {
	var answer struct {
		Supported bool `json:"supported"`
	}
	err := c.Service("llm.supports_native_document", struct {
		MIMEType string `json:"mime_type"`
	}{mimeType}, &answer)
	return answer.Supported, err
}
