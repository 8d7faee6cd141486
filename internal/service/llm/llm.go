// Package llm asks language models on behalf of plugins.
//
// A [Dispatcher] picks the model by what a [Query] needs, reserves what the
// answer may cost at most, asks the model's [Provider], tries again what may be
// tried again, settles the reservation and puts the exchange on record. It
// answers every query: that a model failed is an [Answer] that is not ok, never
// an error. A [Conversation], with tools and an answer that is heard as it comes,
// goes the same way to a provider that is a [Converser], and ends in a [Move].
//
// Providers translate and do nothing else. They send a request once; the clients' own
// retries, redirects and settings from the environment are off, because a request that
// is not counted here would spend money without a record.
//
// Who may ask at all, and how a query comes out of a plugin, is decided in
// package service.
package llm

import "context"

// A Provider is one way to reach models.
type Provider interface {
	// Complete asks once. The error is an [*Error]; the reply's usage may be
	// known beside it, where a model answered and the answer is of no use.
	Complete(ctx context.Context, r Request) (Reply, error)
}

// A Request is what a provider sends.
type Request struct {
	Model     string // the provider's name of it
	System    string // "" for none
	Prompt    string
	MaxTokens int // of the answer
	JSON      bool
	Parts     []Part // go before the prompt
}

// A Part is an image or a document. It is in Data, or where URI says.
type Part struct {
	MIME string
	Name string
	Data []byte
	URI  string
}

// Image reports whether the part is to be looked at and not read.
func (p *Part) Image() bool { return len(p.MIME) > 6 && p.MIME[:6] == "image/" }

// A Reply is what a model answered.
type Reply struct {
	Text  string
	Usage Usage
	Model string // as the provider names what really answered
	Stop  string // why it stopped, in the provider's words
}

// Usage is what an exchange is charged for.
type Usage struct {
	In  int `json:"input_tokens"`
	Out int `json:"output_tokens"`
}

// Known reports whether the provider said what was used.
func (u Usage) Known() bool { return u.In > 0 || u.Out > 0 }
