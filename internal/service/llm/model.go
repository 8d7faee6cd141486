package llm

import (
	"math"
	"slices"
)

// A Tier is how much a model can do, and costs. Plugins ask for a tier, never
// for a model.
type Tier string

// The tiers.
const (
	Light Tier = "light"
	Heavy Tier = "heavy"
)

// other returns the tier that stands in.
func (t Tier) other() Tier {
	if t == Heavy {
		return Light
	}
	return Heavy
}

// A Model is one that can be asked, with what it can do and costs.
type Model struct {
	Name     string // as the host calls it
	Tier     Tier
	Provider string // its provider's name: openai, anthropic, gemini
	ID       string // the provider's name of it
	Asks     Provider

	Vision    bool
	JSON      bool     // it can be made to answer with JSON
	Documents []string // MIME types that it reads by itself
	URIs      []string // schemes of URIs from which its provider fetches documents
	Context   int      // tokens of prompt and answer
	MaxOutput int      // tokens of an answer; as many as are asked for where it is 0
	MaxInline int64    // bytes of a document that is sent along

	Input, Output Price
}

// Reads reports whether the model reads documents of a MIME type by itself.
func (m *Model) Reads(mime string) bool { return slices.Contains(m.Documents, mime) }

// A Price is micro-dollars for a million tokens.
type Price int64

// Dollars returns the price of so many dollars for a million tokens.
func Dollars(d float64) Price { return Price(math.Round(d * 1e6)) }

// Dollars returns the price in dollars for a million tokens.
func (p Price) Dollars() float64 { return float64(p) / 1e6 }

// MicroCents are what budgets count in: a dollar has 100,000,000.
type MicroCents = int64

// Dollar is one dollar.
const Dollar MicroCents = 100_000_000

// cost returns what so many tokens cost, rounded up.
func (p Price) cost(tokens int) MicroCents {
	const perCent = 10_000 // micro-dollars a million tokens are 1/10,000 micro-cents a token
	if tokens <= 0 || p <= 0 {
		return 0
	}
	if int64(tokens) > (math.MaxInt64/4-perCent)/int64(p) {
		return math.MaxInt64 / 4
	}
	return (int64(p)*int64(tokens) + perCent - 1) / perCent
}

// cost returns what an exchange costs.
func (m *Model) cost(u Usage) MicroCents { return m.Input.cost(u.In) + m.Output.cost(u.Out) }
