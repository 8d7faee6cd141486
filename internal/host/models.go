package host

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/plugin"
)

// Models are the models that the configuration names, as one principal may ask them.
type Models struct {
	kept
	engine *llm.Dispatcher // nil where none is configured
	config func() config.Models
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

// List returns the models of the configuration, light before heavy.
func (m Models) List(ctx context.Context) (ModelStates, error) {
	c := m.config()
	s := ModelStates{Models: []ModelState{}, Budget: c.Budget, Allow: c.Allow}
	for tier, models := range [][]config.Model{c.Light, c.Heavy} {
		for i := range models {
			s.Models = append(s.Models, stateOf(&models[i], []llm.Tier{llm.Light, llm.Heavy}[tier]))
		}
	}
	spent, err := bridge.Budgets{Of: m.g.Store}.Spent(ctx, m.g.Tenant, llm.DaySubject, llm.Today(time.Now()))
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
	if _, problem := (llm.Key{Env: c.KeyEnv, File: c.KeyFile}).Read(); problem != nil {
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

// Test asks one model, by its name, for a word. It counts towards the budgets and is
// on record like any query. Since it costs money it is for the administrator, and
// principals that policy lets configure mortise.models.
func (m Models) Test(ctx context.Context, name string) (ModelTest, error) {
	if err := m.allow(ctx, ModelsPlugin, use{plugin.EntryModelRefused, name, "test", "test models"}); err != nil {
		return ModelTest{}, err
	}
	only, found := m.engine.Only(name)
	if !found {
		return ModelTest{}, plugin.Errorf(plugin.CodeNotFound, "no model is called %.200q; 'mortise models list' shows all there are", name)
	}
	began := time.Now()
	answer := only.Ask(ctx, llm.Caller{Tenant: m.g.Tenant, Principal: m.by.Member(), Operation: "models test"},
		llm.Query{Prompt: "Answer with the one word: ready", MaxTokens: testTokens, Hints: &llm.Hints{Tier: llm.Light}})
	t := ModelTest{Name: name, OK: answer.OK, Answer: answer.Text, In: answer.Usage.In, Out: answer.Usage.Out,
		Cost: float64(answer.Cost) / float64(llm.Dollar), Took: float64(time.Since(began).Microseconds()) / 1000}
	if !answer.OK {
		t.Error = answer.Err.Error()
	}
	return t, nil
}
