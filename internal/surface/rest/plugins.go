package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A Plugin is a version of a plugin, as far as the caller may know of it.
type Plugin struct {
	Name         string        `json:"name"`
	Version      string        `json:"version"`
	VersionText  string        `json:"version_text,omitzero" doc:"As its author wrote it, where that is another text."`
	DisplayName  string        `json:"display_name,omitzero"`
	Description  string        `json:"description,omitzero"`
	State        string        `json:"state"`
	Kinds        []plugin.Kind `json:"kinds" nullable:"false"`
	Operations   []string      `json:"operations" nullable:"false"`
	Dialect      string        `json:"dialect" doc:"The contract that it is written to."`
	Source       string        `json:"source"`
	Path         string        `json:"path,omitzero" doc:"Where its files are; told the owner alone, on the socket of the data directory."`
	Digest       string        `json:"digest"`
	Dev          bool          `json:"dev"`
	ApprovedBy   string        `json:"approved_by,omitzero"`
	Held         bool          `json:"held,omitzero" doc:"Quarantined until its differences are approved."`
	Problem      string        `json:"problem,omitzero" doc:"Why an active one cannot be used at the moment."`
	RegisteredAt time.Time     `json:"registered_at"`
	Halted       []PluginHalt  `json:"disabled_for,omitzero" nullable:"false" doc:"The agents that the host has disabled it for, because it could not be stopped otherwise."`
}

// Plugins are a page of them.
type Plugins struct {
	Plugins []Plugin `json:"plugins" nullable:"false"`
	Next    string   `json:"next_page_token" doc:"Empty on the last page."`
}

// A PluginShown is a plugin with its other versions.
type PluginShown struct {
	Plugin
	Halted   []PluginHalt    `json:"disabled_for" nullable:"false" doc:"The agents that the host has disabled it for, because it could not be stopped otherwise."`
	Versions []string        `json:"versions" nullable:"false" doc:"All there are, the highest first."`
	Waiting  []string        `json:"waiting" nullable:"false" doc:"Those that wait for approval."`
	Manifest json.RawMessage `json:"manifest,omitzero" doc:"With the operations that the caller may know of; times are in nanoseconds."`
}

// A PluginHalt is an agent that the host has disabled a plugin for.
type PluginHalt struct {
	Agent  string    `json:"agent"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// A PluginChanged is a plugin that is to change.
type PluginChanged struct {
	PluginNamed
	Match
}

func (q *request) pluginOf(info *host.PluginInfo) Plugin {
	p := Plugin{
		Name: info.Name, Version: info.Version, VersionText: info.Plugin().VersionText, DisplayName: info.DisplayName, Description: info.Description, State: string(info.State),
		Kinds: append([]plugin.Kind{}, info.Kinds...), Operations: append([]string{}, info.Operations...), Dialect: info.Dialect, Source: info.Source,
		Digest: info.Digest, Dev: info.Dev, ApprovedBy: info.ApprovedBy, Held: info.Held, Problem: info.Problem, RegisteredAt: info.RegisteredAt,
		Halted: haltsOf(info.Halted),
	}
	if q.caller.Owns {
		p.Path = info.Path
	}
	return p
}

// haltsOf are agents that a plugin is disabled for; nil for none.
func haltsOf(all []host.PluginHalt) (halts []PluginHalt) {
	for _, h := range all {
		halts = append(halts, PluginHalt{h.Agent, h.Reason, h.At})
	}
	return halts
}

// A PluginNamed is a plugin that is meant.
type PluginNamed struct {
	Name string `path:"name" maxLength:"128" doc:"A name, or name@version."`
}

func (r *registry) plugins() {
	add(r, route{method: "GET", path: "plugins", id: "list-plugins", scope: host.ScopeRead, about: "The plugins that the caller may know of, by name and version"}, r.listPlugins)
	add(r, route{method: "GET", path: "plugins/{name}", id: "get-plugin", scope: host.ScopeRead, about: "A plugin"}, r.getPlugin)
	add(r, route{method: "POST", path: "plugins/{name}:enable", id: "enable-plugin", scope: host.ScopeConfigure, about: "Let a plugin be called"}, r.enablePlugin)
	add(r, route{method: "POST", path: "plugins/{name}:disable", id: "disable-plugin", scope: host.ScopeConfigure, about: "Let a plugin be called no more"}, r.disablePlugin)
	r.pluginChanges()
	r.registering()
	add(r, route{
		method: "POST", path: "plugins/{name}/execute", id: "execute-plugin", scope: host.ScopeRun, stays: true, accepts: true,
		told: []reflect.Type{reflect.TypeFor[Problem]()}, about: "Execute a plugin by the contract of Shu, whose envelope and statuses the answer has",
	}, r.executeShu)
}

func (r *registry) listPlugins(ctx context.Context, q *request, in *struct{ Page }) (*struct{ Body Plugins }, error) {
	last, err := in.after("plugins")
	if err != nil {
		return nil, err
	}
	all, err := q.api.Plugins().List(ctx)
	if err != nil {
		return nil, err
	}
	found := []Plugin{}
	id := func(p *Plugin) string { return p.Name + "@" + p.Version }
	for i := range all {
		if p := q.pluginOf(&all[i]); id(&p) > last {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b Plugin) int { return strings.Compare(id(&a), id(&b)) })
	out := new(struct{ Body Plugins })
	out.Body.Plugins, out.Body.Next = cut(found, in.size(), "", id, "plugins")
	return out, nil
}

// plugin returns a plugin as it is answered.
func (q *request) plugin(name string) func(ctx context.Context) (PluginShown, error) {
	return func(ctx context.Context) (PluginShown, error) {
		shown, err := q.api.Plugins().Show(ctx, name)
		if err != nil {
			return PluginShown{}, unlessMissing(err, "plugin", name)
		}
		out := PluginShown{q.pluginOf(&shown.Info), append([]PluginHalt{}, haltsOf(shown.Halted)...), append([]string{}, shown.Versions...), append([]string{}, shown.Waiting...), nil}
		if shown.Manifest != nil {
			out.Manifest, err = json.Marshal(shown.Manifest)
		}
		return out, err
	}
}

func (r *registry) getPlugin(ctx context.Context, q *request, in *struct {
	PluginNamed
	Seen
}) (*Tagged[PluginShown], error) {
	p, err := q.plugin(in.Name)(ctx)
	if err != nil {
		return nil, err
	}
	return tagged(q, p)
}

// changePlugin does what changes a plugin, as all its changes are conditional.
func changePlugin[O any](ctx context.Context, q *request, ref string, do func(ctx context.Context) (O, error)) (O, error) {
	name, _, _ := strings.Cut(ref, "@")
	return change(ctx, q, host.Thing{Noun: host.APlugin, ID: name}, q.plugin(ref), func(ctx context.Context) (O, error) {
		out, err := do(ctx)
		return out, unlessMissing(err, "plugin", ref)
	})
}

func (r *registry) enablePlugin(ctx context.Context, q *request, in *PluginChanged) (*struct{ Body Plugins }, error) {
	info, err := changePlugin(ctx, q, in.Name, func(ctx context.Context) (host.PluginInfo, error) { return q.api.Plugins().Enable(ctx, in.Name) })
	return changed(q, err, info)
}

func (r *registry) disablePlugin(ctx context.Context, q *request, in *PluginChanged) (*struct{ Body Plugins }, error) {
	infos, err := changePlugin(ctx, q, in.Name, func(ctx context.Context) ([]host.PluginInfo, error) { return q.api.Plugins().Disable(ctx, in.Name) })
	return changed(q, err, infos...)
}

// changed are the versions that a change was of.
func changed(q *request, err error, infos ...host.PluginInfo) (*struct{ Body Plugins }, error) {
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Plugins }{Plugins{Plugins: []Plugin{}}}
	for i := range infos {
		out.Body.Plugins = append(out.Body.Plugins, q.pluginOf(&infos[i]))
	}
	return out, nil
}

// A ShuExecution is a call by the contract of Shu.
type ShuExecution struct {
	PluginNamed
	Key
	Body struct {
		Parameters json.RawMessage `json:"parameters,omitzero" doc:"The arguments, with op where the plugin has several operations."`
		Params     json.RawMessage `json:"params,omitzero" doc:"The arguments, under the name that clients of the published host send. It is not sent beside parameters."`
		Agent      *string         `json:"agent_key,omitzero" maxLength:"256" doc:"The agent that a client of the published host names. It changes nothing: the token says who asks."`
		User       *ShuUser        `json:"user_context,omitzero"`
	} `nameHint:"ShuExecutionBody"`
}

// A ShuUser is what a body says of who asks. It narrows what the token says.
type ShuUser struct {
	UserID      string   `json:"user_id,omitzero" maxLength:"256" doc:"Who asks; it can be no other than the token stands for."`
	Permissions []string `json:"permissions,omitzero" maxItems:"256" nullable:"false" doc:"The scopes that the call is to have, of those that the caller has."`
}

// A ShuAnswer is the answer by that contract.
type ShuAnswer struct {
	Status int
	Retry  string `header:"Retry-After"`
	Limit  string `header:"RateLimit-Limit" doc:"Of a day or a month, as 100;w=86400: its calls, and its seconds."`
	Left   string `header:"RateLimit-Remaining"`
	Reset  string `header:"RateLimit-Reset" doc:"Seconds until it begins again."`
	Replay string `header:"Idempotency-Replayed" doc:"true where this is the first answer to the key."`
	Body   map[string]json.RawMessage
}

// executeShu executes a plugin as the contract of Shu has it. Who asks is told by the
// token: the body narrows it and never widens it.
func (r *registry) executeShu(ctx context.Context, q *request, in *ShuExecution) (*ShuAnswer, error) {
	if _, err := r.preferenceOf(q.Request); err != nil {
		return nil, err
	}
	parameters := in.Body.Parameters
	if parameters == nil {
		parameters = in.Body.Params
	} else if in.Body.Params != nil {
		return nil, refused(0, plugin.CodeInvalidInput, "the arguments are sent once", Place{Pointer: "/params", Detail: "parameters is there too"})
	}
	caller := q.caller
	if user := in.Body.User; user != nil {
		if user.UserID != "" && user.UserID != caller.Principal.ID {
			return nil, refused(0, plugin.CodeScopeDenied, "the token stands for another user than the user_context names")
		}
		if user.Permissions != nil {
			caller.Principal.Scopes = narrowed(caller.Principal.Scopes, user.Permissions)
		}
	}
	as := *q
	as.api = r.Host.For(caller)
	ref, target := as.api.Plugins().Operation(ctx, in.Name, parameters)
	debugs := false
	res, err := r.invoke(ctx, &as, host.Invocation{
		Operation: ref, Target: target, Input: parameters, Origin: plugin.OriginAPI, Key: in.Key.Key, Patience: r.Wait,
		Begins: func(debug bool) func(plugin.Event) { debugs = debug; return nil },
	}, preference{})
	if plugin.CodeOf(err) == plugin.CodeInternal {
		_ = r.problem(q, err) // for the log
		err = host.AsError(err)
	}
	raw, failed := json2.Marshal(host.Envelope("shu", target, res, err, debugs), json2.Deterministic(true))
	if failed != nil {
		return nil, failed
	}
	var said struct {
		Status int                        `json:"http_status"`
		Body   map[string]json.RawMessage `json:"body"`
	}
	if err := json2.Unmarshal(raw, &said); err != nil {
		return nil, err
	}
	out := &ShuAnswer{Status: said.Status, Body: said.Body}
	if res.Replayed {
		out.Replay = "true"
	}
	if err != nil && (said.Status == http.StatusTooManyRequests || said.Status == http.StatusServiceUnavailable) {
		out.Retry = seconds(plugin.AsError(err).RetryAfter)
	}
	out.limits(plugin.AsError(err))
	return out, nil
}

// limits says of a quota that is used up how large it is, and when it begins again.
func (a *ShuAnswer) limits(e *plugin.Error) {
	var of struct {
		Limit  int64  `json:"limit"`
		Period string `json:"period"`
	}
	if e == nil || e.Code != plugin.CodeBudgetExceeded || json.Unmarshal(e.Details, &of) != nil || of.Limit == 0 {
		return
	}
	width := 24 * time.Hour
	if of.Period == "monthly" {
		width *= 30
	}
	a.Limit, a.Left, a.Reset = fmt.Sprintf("%d;w=%s", of.Limit, seconds(width)), "0", seconds(e.RetryAfter)
}

// narrowed are the scopes of those that a principal has.
func narrowed(has, wanted []string) []string {
	if slices.Contains(has, "*") {
		return wanted
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(scope string) bool { return !slices.Contains(has, scope) })
}
