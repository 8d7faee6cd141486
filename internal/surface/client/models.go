package client

import (
	"context"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// Models implements [Host].
func (r *remote) Models() Models { return remoteModels{r} }

type remoteModels struct{ *remote }

// List implements [Models]. Where a model is reached and where its key lies is known to the
// owner alone: at a URL it is only known whether there is one.
func (r remoteModels) List(ctx context.Context) (host.ModelStates, error) {
	var all rest.Models
	if err := r.get(ctx, &all, nil, "models"); err != nil {
		return host.ModelStates{}, err
	}
	s := host.ModelStates{Spent: all.Spent, Allow: all.Allow, Models: each(all.Models, func(m rest.Model) host.ModelState {
		state := host.ModelState{
			Tier: m.Tier, Name: m.Name, Provider: m.Provider, Model: m.Model, BaseURL: m.BaseURL, Vision: m.Vision, JSON: m.JSON, Documents: m.Documents, URIs: m.URIs,
			Context: m.Context, InputPrice: m.InputPrice, OutputPrice: m.OutputPrice, Key: m.Key, KeyProblem: m.KeyProblem,
		}
		if !m.Ready && state.KeyProblem == "" {
			state.KeyProblem = "its key is not there"
		}
		return state
	})}
	s.Budget.Query, s.Budget.Call, s.Budget.Session, s.Budget.Day = all.Budget.Query, all.Budget.Call, all.Budget.Session, all.Budget.Day
	return s, nil
}

// Test implements [Models].
func (r remoteModels) Test(ctx context.Context, name string) (host.ModelTest, error) {
	var t rest.ModelTest
	err := r.post(ctx, map[string]string{"name": name}, &t, "models:test")
	return host.ModelTest(t), err
}
