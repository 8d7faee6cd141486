package rest

import (
	"context"

	"github.com/mortise-dev/mortise/internal/host"
)

// A Model is a model that the configuration names.
type Model struct {
	Name        string   `json:"name"`
	Tier        string   `json:"tier" enum:"light,heavy"`
	Provider    string   `json:"provider"`
	Model       string   `json:"model" doc:"The provider's name of it."`
	Ready       bool     `json:"ready" doc:"Its key is there, or none is needed."`
	Vision      bool     `json:"vision"`
	JSON        bool     `json:"json_mode"`
	Documents   []string `json:"documents" nullable:"false" doc:"Types of documents that it reads."`
	Context     int      `json:"context" doc:"Tokens; 0 where it is not known."`
	InputPrice  float64  `json:"input_price" doc:"Dollars for a million tokens, as the output_price."`
	OutputPrice float64  `json:"output_price"`

	// Where it is reached and where its key lies, on the socket of the owner alone.
	BaseURL    string   `json:"base_url,omitzero" doc:"Told the owner alone, as are uris, key and key_problem."`
	URIs       []string `json:"uris,omitzero" nullable:"false"`
	Key        string   `json:"key,omitzero" doc:"Where it is looked for."`
	KeyProblem string   `json:"key_problem,omitzero"`
}

// Models are all of them, with what was spent.
type Models struct {
	Models []Model     `json:"models" nullable:"false"`
	Spent  float64     `json:"spent_today" doc:"Dollars, since midnight UTC, as those of the budget."`
	Budget ModelBudget `json:"budget"`
	Allow  []string    `json:"allow,omitzero" nullable:"false" doc:"The plugins that may ask; told the owner alone."`
}

// A ModelBudget bounds what models cost, in dollars.
type ModelBudget struct {
	Query   float64 `json:"query"`
	Call    float64 `json:"call"`
	Session float64 `json:"session"`
	Day     float64 `json:"day"`
}

// A ModelTest is what a model made of a tiny query.
type ModelTest struct {
	Name   string  `json:"name"`
	OK     bool    `json:"ok"`
	Error  string  `json:"error,omitzero"`
	Answer string  `json:"answer,omitzero"`
	In     int     `json:"tokens_in"`
	Out    int     `json:"tokens_out"`
	Cost   float64 `json:"cost" doc:"Dollars."`
	Took   float64 `json:"latency_ms"`
}

func (r *registry) models() {
	add(r, route{method: "GET", path: "models", id: "list-models", scope: host.ScopeRead, about: "The models that plugins may ask, light before heavy, with what was spent today"}, r.listModels)
	add(r, route{method: "POST", path: "models:test", id: "test-model", scope: host.ScopeConfigure, stays: true, about: "Ask a model for a word, which costs money"}, r.testModel)
}

func (r *registry) listModels(ctx context.Context, q *request, _ *struct{}) (*struct{ Body Models }, error) {
	all, err := q.api.Models().List(ctx)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Models }{Models{Models: []Model{}, Spent: all.Spent, Budget: ModelBudget(all.Budget)}}
	if q.caller.Owns {
		out.Body.Allow = all.Allow
	}
	for _, m := range all.Models {
		one := Model{
			Name: m.Name, Tier: m.Tier, Provider: m.Provider, Model: m.Model, Ready: m.KeyProblem == "", Vision: m.Vision, JSON: m.JSON,
			Documents: append([]string{}, m.Documents...), Context: m.Context, InputPrice: m.InputPrice, OutputPrice: m.OutputPrice,
		}
		if q.caller.Owns {
			one.BaseURL, one.URIs, one.Key, one.KeyProblem = m.BaseURL, m.URIs, m.Key, m.KeyProblem
		}
		out.Body.Models = append(out.Body.Models, one)
	}
	return out, nil
}

func (r *registry) testModel(ctx context.Context, q *request, in *struct {
	Body struct {
		Name string `json:"name" minLength:"1" maxLength:"256"`
	} `nameHint:"TestModel"`
}) (*struct{ Body ModelTest }, error) {
	ctx, cancel := r.staying(ctx, q)
	defer cancel()
	t, err := q.api.Models().Test(ctx, in.Body.Name)
	if err != nil {
		return nil, unlessMissing(err, "model", in.Body.Name)
	}
	return &struct{ Body ModelTest }{ModelTest(t)}, nil
}
