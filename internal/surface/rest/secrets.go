package rest

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
)

// A SecretKept is a secret without its value, which no route answers.
type SecretKept struct {
	Name      string    `json:"name"`
	Plugin    string    `json:"plugin" doc:"Which one it is for; * for all."`
	Scope     string    `json:"scope" enum:"user,system"`
	Subject   string    `json:"subject" doc:"The principal whose it is; empty for the system's."`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	Labels    []string  `json:"labels,omitzero" nullable:"false"`
}

// SecretsKept are all that the caller may see.
type SecretsKept struct {
	Secrets []SecretKept `json:"secrets" nullable:"false"`
	All     bool         `json:"all" doc:"The caller may see and change the secrets of everybody and of the system."`
}

// A SecretNeed is a secret that an operation needs, and whether it is there.
type SecretNeed struct {
	Plugin    string `json:"plugin"`
	Version   string `json:"version"`
	Operation string `json:"operation"`
	Name      string `json:"name"`
	Scope     string `json:"allowed_scope"`
	Optional  bool   `json:"optional"`
	There     string `json:"there" doc:"The scope in which it is; empty where it is missing."`
}

// SecretNeeds are those of one plugin or of all.
type SecretNeeds struct {
	Secrets []SecretNeed `json:"secrets" nullable:"false"`
}

// A SecretsRotated is a change of the key that all secrets are encrypted with.
type SecretsRotated struct {
	Master  string `json:"master" doc:"The fingerprint of the key that is used now."`
	Secrets int    `json:"secrets" doc:"How many were encrypted again."`
	Resumed bool   `json:"resumed" doc:"An earlier change was brought to its end."`
}

// SecretsDeleted is how many secrets there were.
type SecretsDeleted struct {
	Deleted int `json:"deleted"`
}

// A SecretNamed is a secret that is meant: the caller's own where neither user nor system
// says otherwise.
type SecretNamed struct {
	Name   string `path:"name" maxLength:"128"`
	Plugin string `query:"plugin" maxLength:"128" doc:"The plugin that it is for; all where it is left out."`
	User   string `query:"user" maxLength:"256" doc:"The principal whose it is; the caller where it is left out."`
	System bool   `query:"system" doc:"It is the system's."`
}

func (n *SecretNamed) place() host.SecretPlace {
	return host.SecretPlace{Name: n.Name, Plugin: n.Plugin, User: n.User, System: n.System}
}

func (r *registry) secrets() {
	add(r, route{method: "GET", path: "secrets", id: "list-secrets", scope: host.ScopeRead, about: "The secrets of the caller, or all where policy lets them configure secrets; never a value"}, r.listSecrets)
	add(r, route{method: "GET", path: "secrets/needs", id: "list-secret-needs", scope: host.ScopeRead, about: "The secrets that operations need, and whether the caller has them"}, r.listSecretNeeds)
	add(r, route{method: "PUT", path: "secrets/{name}", id: "put-secret", scope: host.ScopeConfigure, about: "Keep a secret, in place of an earlier one"}, r.putSecret)
	add(r, route{method: "DELETE", path: "secrets/{name}", id: "delete-secret", scope: host.ScopeConfigure, about: "Delete a secret"}, r.deleteSecret)
	add(r, route{method: "POST", path: "secrets:rotate", id: "rotate-secrets", scope: host.ScopeAdmin, stays: true, about: "Change the keys, and encrypt all secrets again; on the owner's socket alone, since they are of all tenants"}, r.rotateSecrets)
	add(r, route{method: "POST", path: "secrets:delete-all", id: "delete-all-secrets", scope: host.ScopeAdmin, stays: true, about: "Delete all secrets of everybody, with their keys: the way out where the master key is lost; on the owner's socket alone"}, r.deleteSecrets)
}

func (r *registry) listSecrets(ctx context.Context, q *request, _ *struct{}) (*struct{ Body SecretsKept }, error) {
	listed, err := q.api.Secrets().List(ctx)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body SecretsKept }{SecretsKept{Secrets: []SecretKept{}, All: q.api.Secrets().All()}}
	for _, s := range listed {
		out.Body.Secrets = append(out.Body.Secrets, SecretKept(s))
	}
	return out, nil
}

func (r *registry) listSecretNeeds(ctx context.Context, q *request, in *struct {
	Plugin string `query:"plugin" maxLength:"128" doc:"Only those of this plugin."`
}) (*struct{ Body SecretNeeds }, error) {
	states, err := q.api.Secrets().Check(ctx, in.Plugin)
	if err != nil {
		return nil, unlessMissing(err, "plugin", in.Plugin)
	}
	out := &struct{ Body SecretNeeds }{SecretNeeds{[]SecretNeed{}}}
	for _, s := range states {
		out.Body.Secrets = append(out.Body.Secrets, SecretNeed(s))
	}
	return out, nil
}

func (r *registry) putSecret(ctx context.Context, q *request, in *struct {
	SecretNamed
	Body struct {
		Value string `json:"value" maxLength:"65536" writeOnly:"true" doc:"It is not empty."`
	} `nameHint:"PutSecret"`
}) (*struct{ Body SecretKept }, error) {
	kept, err := q.api.Secrets().Set(ctx, in.place(), in.Body.Value)
	if err != nil {
		return nil, err
	}
	return &struct{ Body SecretKept }{SecretKept(kept)}, nil
}

func (r *registry) deleteSecret(ctx context.Context, q *request, in *SecretNamed) (*struct{ Body SecretKept }, error) {
	gone, err := q.api.Secrets().Delete(ctx, in.place())
	if err != nil {
		return nil, err
	}
	return &struct{ Body SecretKept }{SecretKept(gone)}, nil
}

func (r *registry) rotateSecrets(ctx context.Context, q *request, _ *struct{}) (*struct{ Body SecretsRotated }, error) {
	if err := q.owns("changing the keys of all secrets, which are of all tenants,", true); err != nil {
		return nil, err
	}
	ctx, cancel := r.staying(ctx, q)
	defer cancel()
	done, err := q.api.Secrets().Rotate(ctx)
	if err != nil {
		return nil, err
	}
	return &struct{ Body SecretsRotated }{SecretsRotated(done)}, nil
}

func (r *registry) deleteSecrets(ctx context.Context, q *request, _ *struct{}) (*struct{ Body SecretsDeleted }, error) {
	if err := q.owns("deleting all secrets, which are of all tenants,", true); err != nil {
		return nil, err
	}
	ctx, cancel := r.staying(ctx, q)
	defer cancel()
	n, err := q.api.Secrets().DeleteAll(ctx)
	if err != nil {
		return nil, err
	}
	return &struct{ Body SecretsDeleted }{SecretsDeleted{n}}, nil
}
