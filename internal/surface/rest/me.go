package rest

import (
	"context"

	"github.com/mortise-dev/mortise/internal/host"
)

// A Me is who asks, as the host knows them.
type Me struct {
	Principal  string   `json:"principal" doc:"As the configuration writes it."`
	Owner      bool     `json:"owner" doc:"They own the tenant."`
	Operator   string   `json:"operator" doc:"The principal that owns the tenant, as its configuration names it."`
	By         string   `json:"by,omitzero" doc:"Who acts on their behalf; on the owner's socket alone."`
	Token      string   `json:"token,omitzero" doc:"The id of the token of the request."`
	Scopes     []string `json:"scopes" nullable:"false"`
	Operations []string `json:"operations" nullable:"false" doc:"What the token may execute; all if empty."`
	Tenant     string   `json:"tenant"`
	Version    string   `json:"version" doc:"Of the host."`
	Config     string   `json:"config,omitzero" doc:"The configuration file; on the owner's socket alone."`
}

func (r *registry) me() {
	add(r, route{method: "GET", path: "me", id: "get-me", scope: anyScope, about: "Who asks, and which version of the host answers"}, r.getMe)
}

func (r *registry) getMe(_ context.Context, q *request, _ *struct{}) (*struct{ Body Me }, error) {
	c, owner := &q.caller, q.api.Owner()
	name := host.PrincipalName(c.Principal)
	config := ""
	if c.Owns {
		config = r.Config
	}
	return &struct{ Body Me }{Me{
		Principal: name, Owner: name == owner, Operator: owner, By: c.By, Token: c.Token, Scopes: append([]string{}, c.Scopes...),
		Operations: append([]string{}, c.Operations...), Tenant: q.api.Tenant(), Version: host.Version, Config: config,
	}}, nil
}
