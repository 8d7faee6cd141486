package setup

import (
	"math"
	"net/http"
	"time"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/service/llm"
)

// Models returns how the models of a configuration are asked, over a transport.
func Models(c config.Models, over http.RoundTripper) llm.Options {
	o := llm.Options{
		Allow: c.Allow, PerMinute: c.PerMinute, AtOnce: c.AtOnce, Timeout: time.Duration(c.Timeout),
		Limits: llm.Limits{Query: microCents(c.Budget.Query), Call: microCents(c.Budget.Call), Session: microCents(c.Budget.Session), Day: microCents(c.Budget.Day)},
	}
	for _, m := range c.Light {
		o.Models = append(o.Models, modelOf(&m, llm.Light, over))
	}
	for _, m := range c.Heavy {
		o.Models = append(o.Models, modelOf(&m, llm.Heavy, over))
	}
	if c.Embedding != nil {
		o.Embedding = embeddingOf(c.Embedding, over)
	}
	return o
}

func embeddingOf(c *config.Embedding, over http.RoundTripper) *llm.EmbeddingModel {
	m := &llm.EmbeddingModel{Name: c.Name, Provider: c.Provider, ID: c.Model, Dimensions: c.Dimensions, Batch: c.Batch}
	if c.InputPrice != nil {
		m.Price = llm.Dollars(*c.InputPrice)
	}
	key := llm.Key{Env: c.KeyEnv, File: c.KeyFile}
	switch c.Provider {
	case "openai":
		m.Asks = &llm.OpenAI{BaseURL: c.BaseURL, Key: key, Over: over}
	case "gemini":
		m.Asks = &llm.Gemini{BaseURL: c.BaseURL, Key: key, Over: over}
	}
	return m
}

func modelOf(c *config.Model, tier llm.Tier, over http.RoundTripper) llm.Model {
	m := llm.Model{
		Name: c.Name, Tier: tier, Provider: c.Provider, ID: c.Model, Vision: c.Vision, JSON: c.JSON, Documents: c.Documents, URIs: c.URIs,
		Context: c.Context, MaxOutput: c.MaxOutput, MaxInline: int64(c.MaxInline),
	}
	if c.InputPrice != nil {
		m.Input = llm.Dollars(*c.InputPrice)
	}
	if c.OutputPrice != nil {
		m.Output = llm.Dollars(*c.OutputPrice)
	}
	key := keyOf(c)
	switch c.Provider {
	case "openai":
		m.Asks = &llm.OpenAI{BaseURL: c.BaseURL, Key: key, Over: over}
	case "anthropic":
		m.Asks = &llm.Anthropic{BaseURL: c.BaseURL, Key: key, Over: over}
	case "gemini":
		m.Asks = &llm.Gemini{BaseURL: c.BaseURL, Key: key, Over: over}
	}
	return m
}

func keyOf(c *config.Model) llm.Key { return llm.Key{Env: c.KeyEnv, File: c.KeyFile} }

func microCents(dollars float64) llm.MicroCents {
	return llm.MicroCents(math.Round(dollars * float64(llm.Dollar)))
}
