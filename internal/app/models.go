package app

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
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
		Allow: c.Allow, PerMinute: c.PerMinute, AtOnce: c.AtOnce, Timeout: time.Duration(c.Timeout), Budgets: budgets{a.Store}, Scrubber: a.scrubber,
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

// budgets keeps in the store what models cost, for all hosts on it.
type budgets struct{ st store.Store }

var _ llm.Budgets = budgets{}

// Reserve implements [llm.Budgets].
func (b budgets) Reserve(ctx context.Context, tenant, subject, period string, amount, limit llm.MicroCents) (ok bool, err error) {
	err = b.st.Write(ctx, func(tx store.Tx) (err error) {
		_, ok, err = tx.Spend(tenant, subject, period, amount, limit)
		return err
	})
	return ok && err == nil, err
}

// Return implements [llm.Budgets]. The cost counts even if this node lost its lease
// meanwhile, so the write is repeated then.
func (b budgets) Return(ctx context.Context, tenant, subject, period string, amount llm.MicroCents) error {
	for {
		err := b.st.Write(ctx, func(tx store.Tx) error {
			_, _, err := tx.Spend(tenant, subject, period, -amount, math.MaxInt64)
			return err
		})
		if !errors.Is(err, store.ErrLapsed) {
			return err
		}
	}
}

// Spent implements [llm.Budgets].
func (b budgets) Spent(ctx context.Context, tenant, subject, period string) (llm.MicroCents, error) {
	return b.st.Spent(ctx, tenant, subject, period)
}

// A ModelState is a configured model and whether it can be asked.
type ModelState struct {
	Tier        string   `json:"tier"`
	Name        string   `json:"name"`
	Provider    string   `json:"provider"`
	Model       string   `json:"model"`
	BaseURL     string   `json:"base_url"`
	Vision      bool     `json:"vision"`
	JSON        bool     `json:"json_mode"`
	Documents   []string `json:"documents"`
	URIs        []string `json:"uris"`
	Context     int      `json:"context"`
	InputPrice  float64  `json:"input_price"`
	OutputPrice float64  `json:"output_price"`
	Key         string   `json:"key"`         // where it is looked for, "" for nowhere
	KeyProblem  string   `json:"key_problem"` // "" where it is there, or none is needed
}

// ModelStates are all models with what was spent today.
type ModelStates struct {
	Models []ModelState  `json:"models"`
	Spent  float64       `json:"spent_today"` // dollars
	Budget config.Budget `json:"budget"`
	Allow  []string      `json:"allow"`
}

// ModelStates returns the models of the configuration, light before heavy.
func (a *App) ModelStates(ctx context.Context) (ModelStates, error) {
	c := a.Config.Models
	s := ModelStates{Models: []ModelState{}, Budget: c.Budget, Allow: c.Allow}
	for tier, models := range [][]config.Model{c.Light, c.Heavy} {
		for i := range models {
			s.Models = append(s.Models, stateOf(&models[i], []llm.Tier{llm.Light, llm.Heavy}[tier]))
		}
	}
	spent, err := budgets{a.Store}.Spent(ctx, a.Config.Tenant, llm.DaySubject, llm.Today(time.Now()))
	s.Spent = float64(spent) / float64(llm.Dollar)
	return s, err
}

func stateOf(c *config.Model, tier llm.Tier) ModelState {
	s := ModelState{
		Tier: string(tier), Name: c.Name, Provider: c.Provider, Model: c.Model, BaseURL: c.BaseURL, Vision: c.Vision, JSON: c.JSON,
		Documents: append([]string{}, c.Documents...), URIs: append([]string{}, c.URIs...), Context: c.Context, Key: c.KeyFile,
	}
	if c.KeyEnv != "" {
		s.Key = "$" + c.KeyEnv
	}
	if c.InputPrice != nil {
		s.InputPrice = *c.InputPrice
	}
	if c.OutputPrice != nil {
		s.OutputPrice = *c.OutputPrice
	}
	if _, problem := keyOf(c).Read(); problem != nil {
		s.KeyProblem = problem.Message
	}
	return s
}

// A ModelTest is what a model made of a tiny query.
type ModelTest struct {
	Name   string  `json:"name"`
	OK     bool    `json:"ok"`
	Error  string  `json:"error"`
	Answer string  `json:"answer"`
	In     int     `json:"tokens_in"`
	Out    int     `json:"tokens_out"`
	Cost   float64 `json:"cost"` // dollars
	Took   float64 `json:"latency_ms"`
}

// testTokens leaves a reasoning model enough to think about so little.
const testTokens = 512

// TestModel asks one model, by its name, for a word. It counts towards the
// budgets and is on record like any query.
func (a *App) TestModel(ctx context.Context, by plugin.Principal, name string) (ModelTest, error) {
	only, found := a.Models.Only(name)
	if !found {
		return ModelTest{}, plugin.Errorf(plugin.CodeNotFound, "no model is called %.200q; 'mortise models list' shows all there are", name)
	}
	began := time.Now()
	answer := only.Ask(ctx, llm.Caller{Tenant: a.Config.Tenant, Principal: by.ID, Operation: "models test"},
		llm.Query{Prompt: "Answer with the one word: ready", MaxTokens: testTokens, Hints: &llm.Hints{Tier: llm.Light}})
	t := ModelTest{Name: name, OK: answer.OK, Answer: answer.Text, In: answer.Usage.In, Out: answer.Usage.Out,
		Cost: float64(answer.Cost) / float64(llm.Dollar), Took: float64(time.Since(began).Microseconds()) / 1000}
	if !answer.OK {
		t.Error = answer.Err.Error()
	}
	return t, nil
}
