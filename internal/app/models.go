package app

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/internal/service/llm"
)

// openModels returns what asks the models of the configuration.
func (a *App) openModels(log *slog.Logger) *llm.Dispatcher {
	c := a.Config.Models
	if len(c.Light)+len(c.Heavy) == 0 && c.Embedding == nil {
		return nil
	}
	over := llm.Transport()
	a.opened("connections to models", func() error { over.CloseIdleConnections(); return nil })
	o := llm.Options{
		Allow: c.Allow, PerMinute: c.PerMinute, AtOnce: c.AtOnce, Timeout: time.Duration(c.Timeout), Budgets: bridge.Budgets{Of: a.Store}, Scrubber: a.scrubber,
		Limits: llm.Limits{Query: microCents(c.Budget.Query), Call: microCents(c.Budget.Call), Session: microCents(c.Budget.Session), Day: microCents(c.Budget.Day)},
		Record: func(ctx context.Context, e *llm.Exchange) error { return a.recordModel(ctx, log, e) },
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
	return llm.New(o)
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

// recordModel puts an exchange into the ledger.
func (a *App) recordModel(ctx context.Context, log *slog.Logger, e *llm.Exchange) error {
	var bodies [][]byte
	if a.Config.Models.Keep && !e.Hashed {
		e.Record.Kept = true
		if bodies = append(bodies, e.Prompt); len(e.Answer) > 0 {
			bodies = append(bodies, e.Answer)
		}
	}
	err := a.Ledger.RecordModel(ctx, e.By.Tenant, e.By.Principal, &e.Record, time.Now(), bodies...)
	if err != nil {
		log.Error("a query to a model could not be recorded", "call_id", e.By.Call, "model", e.Record.Model, "cause", err.Error())
	}
	return err
}
