package rest

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A Token is an API token, without its secret.
type Token struct {
	ID         string    `json:"id"`
	Name       string    `json:"name" doc:"What it is for."`
	Principal  string    `json:"principal"`
	Scopes     []string  `json:"scopes" nullable:"false"`
	Operations []string  `json:"operations" nullable:"false" doc:"What it may execute; everything where it is empty."`
	By         string    `json:"by" doc:"The principal that created it."`
	CreatedAt  time.Time `json:"created_at"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
	RevokedAt  time.Time `json:"revoked_at,omitzero"`
	UsedAt     time.Time `json:"used_at,omitzero" doc:"To the minute."`
	UsedFrom   string    `json:"used_from,omitzero"`
	Shared     bool      `json:"shared" doc:"Who created it has seen the secret, and is no second person beside its principal."`
}

// Tokens are all that the caller may see.
type Tokens struct {
	Tokens []Token `json:"tokens" nullable:"false"`
}

// A Secret is a token with its secret, which is told once.
type Secret struct {
	Token
	Secret string `json:"token"`
}

func (r *registry) tokens() {
	add(r, route{method: "GET", path: "tokens", id: "list-tokens", scope: host.ScopeRead, about: "The tokens of the caller, or all where policy lets them configure tokens"},
		func(ctx context.Context, q *request, _ *struct{}) (*struct{ Body Tokens }, error) {
			listed, err := q.api.Tokens().List(ctx)
			if err != nil {
				return nil, err
			}
			out := &struct{ Body Tokens }{Tokens{[]Token{}}}
			for _, t := range listed {
				out.Body.Tokens = append(out.Body.Tokens, Token(t))
			}
			return out, nil
		})
	add(r, route{method: "POST", path: "tokens", id: "create-token", scope: host.ScopeAdmin, about: "Make a token that has at most what the token of this request has; its secret is told once"}, r.createToken)
	add(r, route{method: "POST", path: "tokens/current:rotate", id: "rotate-token", scope: anyScope, about: "Give the token of this request another secret, which only the caller has seen"},
		func(ctx context.Context, q *request, _ *struct{}) (*struct{ Body Secret }, error) {
			t, secret, err := q.api.Tokens().Rotate(ctx)
			if err != nil {
				return nil, err
			}
			return &struct{ Body Secret }{Secret{Token(t), secret}}, nil
		})
	add(r, route{method: "POST", path: "tokens/{id}:revoke", id: "revoke-token", scope: host.ScopeConfigure, about: "End a token"},
		func(ctx context.Context, q *request, in *struct {
			ID string `path:"id" maxLength:"64"`
		}) (*struct{ Body Token }, error) {
			t, err := q.api.Tokens().Revoke(ctx, in.ID)
			if err != nil {
				return nil, unlessMissing(err, "token", in.ID)
			}
			return &struct{ Body Token }{Token(t)}, nil
		})
}

func (r *registry) createToken(ctx context.Context, q *request, in *struct {
	Body struct {
		Name       string   `json:"name" minLength:"1" maxLength:"100" doc:"What it is for."`
		For        string   `json:"for,omitzero" maxLength:"256" doc:"The principal, whom mortise.yaml names; the caller where it is left out."`
		Scopes     []string `json:"scopes,omitzero" maxItems:"6" nullable:"false" doc:"read, run, decide, approve, configure or admin; read where it is left out."`
		Operations []string `json:"operations,omitzero" maxItems:"64" nullable:"false" doc:"plugin/operation or plugin/*; all where it is left out."`
		Life       int64    `json:"expires_in,omitzero" minimum:"1" maximum:"315360000" doc:"Seconds; 90 days where it is left out, and never longer than the token of this request."`
		Endless    bool     `json:"no_expiry,omitzero" doc:"It is in force until it is revoked."`
	} `nameHint:"CreateToken"`
}) (*struct{ Body Secret }, error) {
	b := &in.Body
	if err := host.CheckScopes(b.Scopes); err != nil {
		return nil, err
	}
	n := host.NewToken{Name: b.Name, For: b.For, Scopes: b.Scopes, Operations: b.Operations, Life: time.Duration(b.Life) * time.Second}
	if b.Endless {
		if b.Life != 0 {
			return nil, refused(0, plugin.CodeInvalidInput, "a token expires or does not", Place{Pointer: "/no_expiry", Detail: "it is there beside expires_in"})
		}
		n.Life = -time.Second
	}
	t, secret, err := q.api.Tokens().Create(ctx, n)
	if err != nil {
		return nil, unlessMissing(err, "principal", b.For)
	}
	return &struct{ Body Secret }{Secret{Token(t), secret}}, nil
}
