package setup

import (
	"maps"
	"math"
	"net/http"
	"slices"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/service/llm"
)

// Embedding returns the embedding model of a configuration, which is asked over a transport.
func Embedding(c *config.Embedding, over http.RoundTripper) *llm.EmbeddingModel {
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

// Model returns a model of a configuration, which is asked over a transport.
func Model(c *config.Model, tier llm.Tier, over http.RoundTripper) llm.Model {
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

// MicroCents returns dollars as budgets count them.
func MicroCents(dollars float64) llm.MicroCents {
	return llm.MicroCents(math.Round(dollars * float64(llm.Dollar)))
}

// Providers are the providers of the configuration, by name.
func Providers(c config.Auth) []account.Provider {
	var all []account.Provider
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[name]
		made := account.Provider{
			Name: name, Kind: p.Kind, ClientID: p.ClientID, ClientSecret: account.Source{Env: p.ClientSecretEnv, File: p.ClientSecretFile, Secret: p.ClientSecretName},
			Issuer: p.Issuer, AuthURL: p.AuthorizeURL, TokenURL: p.TokenURL, RevokeURL: p.RevokeURL, UserURL: p.UserURL, Scopes: p.Scopes, RedirectPort: p.RedirectPort,
		}
		if s := p.Service; s != nil {
			made.Service = &account.Service{Key: account.Source{Env: s.KeyEnv, File: s.KeyFile, Secret: s.KeyName}, Subjects: s.Subjects}
		}
		all = append(all, made)
	}
	return all
}
