package llm

import (
	"io"

	"github.com/mortise-dev/mortise/plugin"
)

// A Caller is on whose behalf a query is made, for budgets and for the record.
type Caller struct {
	Tenant    string
	Principal string
	Session   string // "" outside one
	Call      string // the id of the call at work
	Operation string // plugin/operation
	Plugin    string
	Version   string
	Labels    []string   // of the call, and of what it heard
	Usage     *CallUsage // of the call; nil keeps none
}

// A Query is what a plugin wants to know of a model. At most one of Image and
// Document is set.
type Query struct {
	Prompt    string
	System    string
	Grounding []string // data to go before the prompt
	MaxTokens int      // of the answer
	Hints     *Hints   // nil where the plugin gave none
	Image     *Image
	Document  *Document
}

// Hints say what kind of query it is (Event Mill, QueryHints).
type Hints struct {
	Tier             Tier
	NeedsReasoning   bool
	StructuredOutput bool // the answer is to be JSON
	PrefersNative    bool
	MaxBudget        *MicroCents // what the query may cost; nil for no limit of its own
}

// An Image is looked at.
type Image struct {
	MIME string // image/png and the like
	Data []byte
}

// A Document is read.
type Document struct {
	Name   string
	MIME   string
	URI    string // where it also is, "" for nowhere: gs://bucket/object
	Size   int64
	SHA256 string
	Open   func() (io.ReadCloser, error)
}

// How a query reached a model (Event Mill, LLMResponse.transport_path).
const (
	PathURI    = "gs_uri"
	PathInline = "inline_bytes"
	PathText   = "text"
	PathNone   = "text_fallback" // it did not: the plugin extracts the text itself
)

// An Answer is what became of a query. One that is not ok has an Error.
type Answer struct {
	OK       bool
	Text     string
	Err      *Error
	Usage    Usage
	Model    string // "" where none was asked
	Path     string
	Fallback string // why it is not the path, or the model, that was wished for
	Attempts int    // requests that were sent

	// Estimated says that Usage holds what a provider did not tell: budgets are
	// charged with it, and no plugin hears of it.
	Estimated bool
	Cost      MicroCents
}

// An Exchange is one query as it is put on record.
type Exchange struct {
	By     Caller
	Record plugin.ModelRecord
	Prompt []byte // what was sent but for images and documents, as JSON
	Answer []byte // the answer's text

	Hashed bool // neither is kept, whatever is configured: only their hashes are on record
}
