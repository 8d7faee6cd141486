package rest

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// An Identity links a user of another system to a principal here.
type Identity struct {
	Provider   string    `json:"provider"`
	ExternalID string    `json:"external_id"`
	Principal  string    `json:"principal"`
	Adapter    string    `json:"adapter,omitzero" doc:"The one that may speak of them."`
	Scopes     []string  `json:"scopes" nullable:"false"`
	By         string    `json:"by" doc:"Who linked them."`
	At         time.Time `json:"at"`
}

// Identities are all links.
type Identities struct {
	Identities []Identity `json:"identities" nullable:"false"`
}

// An External is a user of another system. Their id may have any character, which is why
// it is no part of a path.
type External struct {
	Provider   string `json:"provider" minLength:"1" maxLength:"200"`
	ExternalID string `json:"external_id" minLength:"1" maxLength:"200"`
}

func (r *registry) identities() {
	add(r, route{method: "GET", path: "identities", id: "list-identities", scope: host.ScopeRead, about: "The links of users of other systems to principals, for who may configure them"}, r.listIdentities)
	add(r, route{method: "POST", path: "identities:link", id: "link-identity", scope: host.ScopeAdmin, about: "Link a user of another system to a principal, in place of an earlier link"}, r.linkIdentity)
	add(r, route{method: "POST", path: "identities:unlink", id: "unlink-identity", scope: host.ScopeConfigure, about: "Take a link back"}, r.unlinkIdentity)
}

func (r *registry) listIdentities(ctx context.Context, q *request, _ *struct{}) (*struct{ Body Identities }, error) {
	links, err := q.api.Identities().List(ctx)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Identities }{Identities{[]Identity{}}}
	for _, l := range links {
		out.Body.Identities = append(out.Body.Identities, Identity(l))
	}
	return out, nil
}

func (r *registry) linkIdentity(ctx context.Context, q *request, in *struct {
	Body struct {
		External
		Principal string   `json:"principal" minLength:"1" maxLength:"256" doc:"Whom mortise.yaml names."`
		Adapter   string   `json:"adapter,omitzero" maxLength:"128" doc:"The one that may speak of them."`
		Scopes    []string `json:"scopes,omitzero" maxItems:"64" nullable:"false" doc:"Those that the link grants."`
	} `nameHint:"LinkIdentity"`
}) (*struct{ Body Identity }, error) {
	b := &in.Body
	l, err := q.api.Identities().For(b.Adapter).Link(ctx, b.Provider, b.ExternalID, b.Principal, b.Scopes...)
	if err != nil {
		return nil, unlessMissing(err, "principal", b.Principal)
	}
	return &struct{ Body Identity }{Identity(l)}, nil
}

func (r *registry) unlinkIdentity(ctx context.Context, q *request, in *struct{ Body External }) (*struct{ Body Identity }, error) {
	l, err := q.api.Identities().Unlink(ctx, in.Body.Provider, in.Body.ExternalID)
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		err = missing("link of", in.Body.ExternalID)
	}
	if err != nil {
		return nil, err
	}
	return &struct{ Body Identity }{Identity(l)}, nil
}
