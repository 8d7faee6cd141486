package rest

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A PluginReview is what the approver of a version that waits has to know.
type PluginReview struct {
	Name       string           `json:"name"`
	Version    string           `json:"version"`
	Digest     string           `json:"digest" doc:"Of its files."`
	Approved   *PluginApproved  `json:"approved,omitzero" doc:"What it is compared with, where there is anything."`
	Difference PluginDifference `json:"difference"`
	Hash       string           `json:"difference_hash"`
	Open       bool             `json:"open" doc:"Its code, which was not asked, may say more: what it says is reviewed with :review."`
}

// A PluginApproved is the version that another is compared with.
type PluginApproved struct {
	Version string `json:"version" maxLength:"128"`
	Digest  string `json:"digest" maxLength:"128"`
}

// A PluginDifference is what is another in a version.
type PluginDifference struct {
	May     []PluginDiffers `json:"may" nullable:"false" doc:"What it may do, and how it is run."`
	Says    []PluginDiffers `json:"says" nullable:"false" doc:"Texts that people and models read."`
	Schemas []PluginDiffers `json:"schemas" nullable:"false" doc:"What its operations accept and promise."`
	Files   []PluginDiffers `json:"files" nullable:"false"`
}

// A PluginDiffers is one place where two versions differ.
type PluginDiffers struct {
	At     string          `json:"at" doc:"A JSON pointer into the manifest, operations by name; of a file its path."`
	What   string          `json:"what" enum:"added,removed,changed"`
	Before json.RawMessage `json:"before,omitzero"`
	After  json.RawMessage `json:"after,omitzero"`
}

// A PluginApproval is what was reviewed.
type PluginApproval struct {
	Digest   string          `json:"digest" maxLength:"128" doc:"Of the review."`
	Hash     string          `json:"difference_hash" maxLength:"128" doc:"Of the review."`
	Approved *PluginApproved `json:"approved,omitzero" doc:"Of the review, where it has it."`
}

// A PluginRolledBack is the version that was left, and the one that is called now.
type PluginRolledBack struct {
	Left Plugin `json:"left"`
	Back Plugin `json:"back"`
}

// PluginNeeds are what a plugin needs of the caller and of the host. No value of a secret is
// among them.
type PluginNeeds struct {
	Ready         bool          `json:"ready" doc:"Nothing is missing that is not optional."`
	Subscribed    bool          `json:"subscribed" doc:"It may act for the caller."`
	Subscription  string        `json:"subscription" enum:"none,optional,required" doc:"Whether there is anything to subscribe to, and whether it acts without."`
	Secrets       []SecretNeed  `json:"secrets" nullable:"false"`
	Accounts      []AccountNeed `json:"accounts" nullable:"false"`
	Permissions   []string      `json:"permissions" nullable:"false" doc:"Scopes that the caller lacks."`
	Configuration []string      `json:"configuration" nullable:"false" doc:"What an administrator has yet to do, in words."`
}

// An AccountNeed is an account that an operation acts with.
type AccountNeed struct {
	Operation string   `json:"operation,omitzero" doc:"None for the plugin as a whole."`
	Provider  string   `json:"provider"`
	Mode      string   `json:"mode,omitzero"`
	Scopes    []string `json:"scopes" nullable:"false"`
	Optional  bool     `json:"optional"`
	Problem   string   `json:"problem,omitzero" doc:"Why a call would be refused for it."`
}

// A MappingSpec is an administrator's word on what an operation does.
type MappingSpec struct {
	Operation string   `json:"operation" minLength:"1" maxLength:"128" doc:"Of the plugin."`
	Declared  bool     `json:"declared,omitzero" doc:"Take the word back: what is declared holds."`
	Effects   []string `json:"effects,omitzero" maxItems:"64" nullable:"false" doc:"All that it may have."`
	Tool      bool     `json:"tool,omitzero" doc:"It computes, and has no effects."`
	Brokered  bool     `json:"brokered,omitzero" doc:"All its effects go through host services."`
	Approval  bool     `json:"approval,omitzero" doc:"A person agrees to each call."`
}

// An EnvironmentSpec is what is to become of the environment of a plugin.
type EnvironmentSpec struct {
	From   string `json:"from,omitzero" maxLength:"4096" doc:"A directory of wheels on the host's machine, absolute, in place of what is configured; on the owner's socket alone."`
	Remove bool   `json:"remove,omitzero" doc:"Take away what is installed."`
}

// A PluginAction is a write of a plugin of Shu, as that contract lists it.
type PluginAction struct {
	Name             string          `json:"name"`
	Description      string          `json:"description"`
	ParamsSchema     json.RawMessage `json:"params_schema"`
	RequiredScopes   []string        `json:"required_scopes" nullable:"false"`
	RequiresApproval bool            `json:"requires_approval"`
	RiskLevel        string          `json:"risk_level,omitempty"`
}

// PluginActions are all that the caller may use.
type PluginActions struct {
	Actions []PluginAction `json:"actions" nullable:"false"`
}

func (r *registry) pluginChanges() {
	add(r, route{method: "GET", path: "plugins/{name}/review", id: "get-review", scope: host.ScopeRead, about: "What is different in the version that waits for approval, as far as its files say it"}, r.getReview)
	add(r, route{method: "POST", path: "plugins/{name}:review", id: "review-plugin", scope: host.ScopeConfigure, about: "The same, and its code is asked for what its manifest leaves open"}, r.reviewPlugin)
	add(r, route{method: "POST", path: "plugins/{name}:approve", id: "approve-plugin", scope: host.ScopeApprove, about: "Let exactly that version be called that was reviewed: a name@version"}, r.approvePlugin)
	add(r, route{method: "POST", path: "plugins/{name}:rollback", id: "rollback-plugin", scope: host.ScopeConfigure, about: "Go back to the next lower version that was approved"}, r.rollbackPlugin)
	add(r, route{method: "GET", path: "plugins/{name}/needs", id: "get-needs", scope: host.ScopeRead, about: "What a plugin needs before it can do for the caller all it does: secrets, accounts, scopes, configuration"}, r.needs((host.Plugins).Needs))
	add(r, route{method: "POST", path: "plugins/{name}:subscribe", id: "subscribe-plugin", scope: host.ScopeRun, about: "Let a plugin act for the caller, with their accounts and secrets"}, r.needs((host.Plugins).Subscribe))
	add(r, route{method: "POST", path: "plugins/{name}:unsubscribe", id: "unsubscribe-plugin", scope: host.ScopeRun, about: "Keep a plugin from acting for the caller, in the calls of others too"}, r.needs((host.Plugins).Unsubscribe))
	add(r, route{method: "POST", path: "plugins/{name}:map", id: "map-operation", scope: host.ScopeApprove, about: "Say what an operation of a plugin does, in place of what it declares"}, r.mapOperation)
	add(r, route{method: "POST", path: "plugins/{name}:refresh", id: "refresh-plugin", scope: host.ScopeConfigure, stays: true, about: "Ask the server that a plugin mounts for its tools again"}, r.refreshPlugin)
	add(r, route{method: "POST", path: "plugins/{name}:environment", id: "install-for-plugin", scope: host.ScopeConfigure, stays: true, about: "Install what a plugin requires for it alone, or take that away"}, r.environment)
	add(r, route{method: "DELETE", path: "plugins/{name}", id: "delete-plugin", scope: host.ScopeConfigure, about: "Delete a version of a plugin, or the only one there is"}, r.deletePlugin)
	add(r, route{method: "GET", path: "plugins/{name}/actions", id: "list-actions", scope: host.ScopeRead, about: "The writes of a plugin of Shu that the caller may use"}, r.listActions)
}

func reviewOf(v host.PluginReview, err error, ref string) (*struct{ Body PluginReview }, error) {
	if err != nil {
		return nil, unlessMissing(err, "version that waits of plugin", ref)
	}
	out := PluginReview{Name: v.Name, Version: v.Version, Digest: v.Digest, Approved: (*PluginApproved)(v.Approved), Hash: v.Hash, Open: v.Open}
	raw, err := json.Marshal(v.Difference)
	if err == nil {
		err = json.Unmarshal(raw, &out.Difference)
	}
	for _, list := range []*[]PluginDiffers{&out.Difference.May, &out.Difference.Says, &out.Difference.Schemas, &out.Difference.Files} {
		*list = append([]PluginDiffers{}, *list...)
	}
	return &struct{ Body PluginReview }{out}, err
}

func (r *registry) getReview(ctx context.Context, q *request, in *PluginNamed) (*struct{ Body PluginReview }, error) {
	v, err := q.api.Plugins().Review(ctx, in.Name, false)
	return reviewOf(v, err, in.Name)
}

func (r *registry) reviewPlugin(ctx context.Context, q *request, in *PluginNamed) (*struct{ Body PluginReview }, error) {
	v, err := q.api.Plugins().Review(ctx, in.Name, true)
	return reviewOf(v, err, in.Name)
}

func (r *registry) approvePlugin(ctx context.Context, q *request, in *struct {
	PluginChanged
	Body PluginApproval
}) (*struct{ Body Plugins }, error) {
	name, version, _ := strings.Cut(in.Name, "@")
	if version == "" {
		return nil, refused(0, plugin.CodeInvalidInput, "what is approved is one version: name@version", Place{Pointer: "name", Detail: "it names no version"})
	}
	seen := host.PluginReview{Name: name, Version: version, Digest: in.Body.Digest, Hash: in.Body.Hash, Approved: (*host.PluginApproved)(in.Body.Approved)}
	info, err := changePlugin(ctx, q, in.Name, func(ctx context.Context) (host.PluginInfo, error) { return q.api.Plugins().Approve(ctx, seen) })
	return changed(q, err, info)
}

func (r *registry) rollbackPlugin(ctx context.Context, q *request, in *PluginChanged) (*struct{ Body PluginRolledBack }, error) {
	return changePlugin(ctx, q, in.Name, func(ctx context.Context) (*struct{ Body PluginRolledBack }, error) {
		left, back, err := q.api.Plugins().Rollback(ctx, in.Name)
		return &struct{ Body PluginRolledBack }{PluginRolledBack{q.pluginOf(&left), q.pluginOf(&back)}}, err
	})
}

// needs is what answers with the needs of a plugin.
func (r *registry) needs(do func(host.Plugins, context.Context, string) (host.PluginNeeds, error)) func(context.Context, *request, *PluginNamed) (*struct{ Body PluginNeeds }, error) {
	return func(ctx context.Context, q *request, in *PluginNamed) (*struct{ Body PluginNeeds }, error) {
		n, err := do(q.api.Plugins(), ctx, in.Name)
		if err != nil {
			return nil, unlessMissing(err, "plugin", in.Name)
		}
		out := &struct{ Body PluginNeeds }{PluginNeeds{n.Ready(), n.Subscribed, n.Subscription, []SecretNeed{}, []AccountNeed{}, n.Permissions, []string{}}}
		for _, s := range n.Secrets {
			out.Body.Secrets = append(out.Body.Secrets, SecretNeed(s))
		}
		for _, a := range n.Accounts {
			a.Problem = told(a.Problem)
			out.Body.Accounts = append(out.Body.Accounts, AccountNeed(a))
		}
		for _, text := range n.Configuration {
			out.Body.Configuration = append(out.Body.Configuration, told(text))
		}
		return out, nil
	}
}

func (r *registry) mapOperation(ctx context.Context, q *request, in *struct {
	PluginChanged
	Body MappingSpec
}) (*struct{ Body Plugins }, error) {
	b := in.Body
	word := &host.MappingWord{Effects: b.Effects, Tool: b.Tool, Brokered: b.Brokered, Approval: b.Approval}
	if b.Declared {
		word = nil
	}
	name, version, found := strings.Cut(in.Name, "@")
	ref := name + "/" + b.Operation
	if found {
		ref += "@" + version
	}
	info, err := changePlugin(ctx, q, in.Name, func(ctx context.Context) (host.PluginInfo, error) { return q.api.Plugins().Map(ctx, ref, word) })
	return changed(q, err, info)
}

func (r *registry) environment(ctx context.Context, q *request, in *struct {
	PluginNamed
	Body EnvironmentSpec
}) (*struct{ Body PluginRegistered }, error) {
	if from := in.Body.From; from != "" {
		if err := q.ofOwner("/from", from); err != nil {
			return nil, err
		}
	}
	ctx, cancel := r.staying(ctx, q)
	defer cancel()
	var one host.RegisteredPlugin
	var err error
	if in.Body.Remove {
		one, err = q.api.Plugins().RemoveEnvironment(ctx, in.Name)
	} else {
		one, err = q.api.Plugins().Environment(ctx, in.Name, in.Body.From)
	}
	if err != nil {
		return nil, unlessMissing(err, "plugin", in.Name)
	}
	return &struct{ Body PluginRegistered }{PluginRegistered{q.pluginOf(&one.Info), one.Unchanged, failed(one.NotEnabled)}}, nil
}

func (r *registry) refreshPlugin(ctx context.Context, q *request, in *PluginNamed) (*struct{ Body PluginRegistered }, error) {
	ctx, cancel := r.staying(ctx, q)
	defer cancel()
	one, err := q.api.Plugins().Refresh(ctx, in.Name)
	if err != nil {
		return nil, unlessMissing(err, "plugin", in.Name)
	}
	return &struct{ Body PluginRegistered }{PluginRegistered{q.pluginOf(&one.Info), one.Unchanged, failed(one.NotEnabled)}}, nil
}

func (r *registry) deletePlugin(ctx context.Context, q *request, in *PluginChanged) (*struct{ Body Plugins }, error) {
	info, err := changePlugin(ctx, q, in.Name, func(ctx context.Context) (host.PluginInfo, error) { return q.api.Plugins().Delete(ctx, in.Name) })
	return changed(q, err, info)
}

func (r *registry) listActions(ctx context.Context, q *request, in *PluginNamed) (*struct{ Body PluginActions }, error) {
	all, err := q.api.Plugins().Actions(ctx, in.Name)
	if err != nil {
		return nil, unlessMissing(err, "plugin", in.Name)
	}
	out := &struct{ Body PluginActions }{PluginActions{[]PluginAction{}}}
	for _, a := range all {
		out.Body.Actions = append(out.Body.Actions, PluginAction(a))
	}
	return out, nil
}
