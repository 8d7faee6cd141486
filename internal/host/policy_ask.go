package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// maxRequest is the longest line of requests that is read.
const maxRequest = 4 << 20

// A PolicyRequest is one question to policies as it is written down: in the flags of a
// command, or as a line of JSON.
type PolicyRequest struct {
	Principal string          `json:"principal"` // a user's id, service::id, agent::id; the one configured if empty
	Tenant    string          `json:"tenant"`    // the one configured if empty
	Groups    []string        `json:"groups"`    // these three in place of what the host knows
	Roles     []string        `json:"roles"`
	Consent   []string        `json:"consent"`
	Scopes    []string        `json:"scopes"` // * if absent
	Action    policy.Action   `json:"action"` // execute if empty
	Operation string          `json:"operation"`
	Resource  *PolicyResource `json:"resource"` // in place of what the registry says of the operation
	Input     json.RawMessage `json:"input"`
	Origin    plugin.Origin   `json:"origin"` // cli if empty
	Actor     string          `json:"actor"`
	Agent     string          `json:"agent"`
	Depth     int             `json:"depth"`
	Labels    []string        `json:"labels"`
}

// A PolicyResource is an operation that need not be installed.
type PolicyResource struct {
	Plugin      string      `json:"plugin"`
	Operation   string      `json:"operation"`
	Version     string      `json:"version"`
	Dialect     string      `json:"dialect"`
	Kind        plugin.Kind `json:"kind"`
	Effects     []string    `json:"effects"`
	Tags        []string    `json:"tags"`
	Permissions []string    `json:"permissions"`
}

// PolicyAction is what a principal may be allowed to do.
type PolicyAction = policy.Action

// An UnknownAction is the error of a request whose action is none.
type UnknownAction string

func (a UnknownAction) Error() string {
	return fmt.Sprintf("%q is no action; the actions are execute, list, approve and configure", string(a))
}

// KnownAction refuses what is no action; an empty one is execute.
func (q PolicyRequest) KnownAction() error {
	if q.Action != "" && !q.Action.Known() {
		return UnknownAction(q.Action)
	}
	return nil
}

// Version returns the version of the policies in force.
func (p Policies) Version() string { return p.g.Policy.Version() }

// Explain says which policies decide about a request, and what would change it.
func (p Policies) Explain(ctx context.Context, r PolicyRequest) (policy.Explanation, error) {
	q, err := p.question(ctx, r)
	if err != nil {
		return policy.Explanation{}, err
	}
	x := p.g.Policy.Explain(q)
	if p.caller != nil && p.g.right(PoliciesPlugin, p.by).Verdict != plugin.Allow {
		x.Nearest = nil // rules about others, word for word
	}
	return x, nil
}

// Ask says what the policies decide about a request.
func (p Policies) Ask(ctx context.Context, r PolicyRequest) (plugin.Decision, error) {
	q, err := p.question(ctx, r)
	if err != nil {
		return plugin.Decision{}, err
	}
	return p.g.Policy.Ask(q), nil
}

// question completes a request with what the host knows.
func (p Policies) question(ctx context.Context, q PolicyRequest) (*policy.Question, error) {
	if err := q.KnownAction(); err != nil {
		return nil, err
	}
	if q.Action == "" {
		q.Action = policy.Execute
	}
	if err := p.about(ctx, &q); err != nil {
		return nil, err
	}
	if q.Principal == "" {
		q.Principal = p.g.Owner
	}
	if q.Tenant == "" {
		q.Tenant = p.g.Tenant
	}
	if q.Scopes == nil {
		q.Scopes = []string{"*"}
	}
	if q.Origin == "" {
		q.Origin = plugin.OriginCLI
	}
	who := principal.Parse(q.Principal)
	who.Scopes = q.Scopes
	if q.Tenant == p.g.Tenant && who.Member() == p.by.Member() {
		who.Groups = p.by.Groups // what their sign-in gave is not known of others
	}
	standing := p.g.Policy.Standing(q.Tenant, who)
	for _, known := range []struct{ given, have *[]string }{{&q.Groups, &standing.Groups}, {&q.Roles, &standing.Roles}, {&q.Consent, &standing.Consent}} {
		if *known.given != nil {
			*known.have = *known.given
		}
	}
	target, err := p.target(ctx, q)
	if err != nil {
		return nil, err
	}
	return &policy.Question{Action: q.Action, Target: target, Standing: &standing, Call: &plugin.Call{
		Tenant: q.Tenant, Principal: who, Actor: q.Actor, Agent: q.Agent, Origin: q.Origin, Depth: q.Depth, Labels: q.Labels,
		Operation: q.Operation, Input: []byte(q.Input),
	}}, nil
}

// about completes a request of a caller who was authenticated: it is about themselves as
// they are known here. One about another takes the right to configure mortise.policies,
// because it tells groups, roles and rights of that other.
func (p Policies) about(ctx context.Context, q *PolicyRequest) error {
	if p.caller == nil {
		return nil
	}
	self := principal.Name(p.by)
	if q.Origin == "" {
		q.Origin = plugin.OriginAPI
	}
	if q.Principal == "" {
		q.Principal = self
	}
	if principal.Name(principal.Parse(q.Principal)) == self && (q.Tenant == "" || q.Tenant == p.g.Tenant) && q.Actor == "" && q.Agent == "" &&
		q.Groups == nil && q.Roles == nil && q.Consent == nil && !slices.ContainsFunc(q.Scopes, func(scope string) bool {
		return !slices.Contains(p.by.Scopes, "*") && !slices.Contains(p.by.Scopes, scope)
	}) {
		if q.Scopes == nil {
			q.Scopes = append([]string{}, p.by.Scopes...)
		}
		return nil
	}
	return p.g.authorise(ctx, p.by, p.g.part(PoliciesPlugin), use{plugin.EntryPolicyRefused, q.Principal, "ask", "ask policy about others"})
}

// target finds what is asked for.
func (p Policies) target(ctx context.Context, q PolicyRequest) (*plugin.Target, error) {
	if d := q.Resource; d != nil {
		return &plugin.Target{
			Manifest:  &plugin.Manifest{Name: d.Plugin, Version: d.Version, Dialect: d.Dialect},
			Operation: &plugin.Operation{Name: d.Operation, Kind: d.Kind, Effects: d.Effects, PolicyTags: d.Tags, Permissions: d.Permissions},
		}, nil
	}
	if q.Action != policy.Configure {
		return p.plugins.Resolve(ctx, q.Operation, "ask policy about")
	}
	shown, err := p.plugins.show(ctx, q.Operation, "ask policy about")
	if err != nil {
		return nil, err
	}
	return &plugin.Target{Manifest: shown.Manifest}, nil
}

// A supposition is a store with other policies.
type supposition struct {
	Reader
	rows []policyRow
}

func (s supposition) Policies(context.Context, string) ([]policyRow, error) { return s.rows, nil }

// Suppose returns the engine of what the policies would be with a text stored under a
// name, for [Policies.Simulate]. Nothing is stored and nothing is put into force. It takes
// the right to configure mortise.policies, as [Policies.Put] does.
func (p Policies) Suppose(ctx context.Context, name string, text []byte) (*policy.Engine, error) {
	if err := p.may(ctx, "simulate", name); err != nil {
		return nil, err
	}
	if err := checkPolicyName(name); err != nil {
		return nil, err
	}
	rows, err := p.g.Store.Policies(ctx, p.g.Tenant)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(r policyRow) bool { return r.Name == name })
	rows = append(rows, policyRow{Tenant: p.g.Tenant, Name: name, Text: string(text)})
	engine, err := p.open(supposition{p.g.Store, rows})
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the policies that would come of it cannot be used: %w", err)
	}
	return engine, nil
}

// A Simulation is how two sets of policies decide about the same requests.
type Simulation struct {
	Requests    int                `json:"requests"`
	Differences []PolicyDifference `json:"differences"`
}

// A PolicyDifference is a request that the two decide in two ways.
type PolicyDifference struct {
	Line      int             `json:"line"`
	Principal string          `json:"principal"`
	Action    policy.Action   `json:"action"`
	Operation string          `json:"operation"`
	Now       plugin.Decision `json:"now"`
	Then      plugin.Decision `json:"then"`
}

// Simulate puts requests, one JSON object on each line of a file of that name, to the
// policies in force and to others.
func (p Policies) Simulate(ctx context.Context, other *policy.Engine, requests io.Reader, name string) (Simulation, error) {
	s := Simulation{Differences: []PolicyDifference{}}
	lines := bufio.NewScanner(requests)
	lines.Buffer(nil, maxRequest)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := p.compare(ctx, &s, other, n, lines.Bytes()); err != nil {
			if plugin.CodeOf(err) == plugin.CodePolicyDenied {
				return s, err
			}
			return s, plugin.Errorf(plugin.CodeInvalidInput, "%s:%d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return s, plugin.Errorf(plugin.CodeInvalidInput, "%s:%d: %w", name, n+1, err)
	}
	return s, nil
}

// Try puts requests to the policies in force, and to those that would be in force with
// documents in the place of the files that the configuration names. Nothing is put into
// force. Of a caller who was authenticated it takes the right to configure mortise.policies,
// as [Policies.Suppose] does.
func (p Policies) Try(ctx context.Context, documents []PolicyDocument, requests io.Reader, name string) (Simulation, error) {
	if p.caller != nil {
		if err := p.may(ctx, "simulate", "files"); err != nil {
			return Simulation{}, err
		}
	}
	other, err := p.others(documents)
	if err != nil {
		return Simulation{}, plugin.Errorf(plugin.CodeInvalidInput, "%w", err)
	}
	return p.Simulate(ctx, other, requests, name)
}

// ReadPolicies reads the policies in files, and in the *.cedar files of directories.
func ReadPolicies(files ...string) ([]PolicyDocument, error) {
	paths := make([]string, len(files))
	for i, file := range files {
		var err error
		if paths[i], err = filepath.Abs(file); err != nil {
			return nil, err
		}
	}
	documents, err := policy.Files(".", paths...)()
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%w", err)
	}
	return documents, nil
}

// compare puts one request to both.
func (p Policies) compare(ctx context.Context, s *Simulation, other *policy.Engine, line int, raw []byte) error {
	var request PolicyRequest
	if err := json2.Unmarshal(raw, &request, json2.RejectUnknownMembers(true)); err != nil {
		return err
	}
	q, err := p.question(ctx, request)
	if err != nil {
		return err
	}
	s.Requests++
	now, then := p.g.Policy.Ask(q), other.Ask(q)
	if now.Verdict == then.Verdict {
		return nil
	}
	what := q.Target.Manifest.Name
	if q.Target.Operation != nil && q.Action != policy.Configure {
		what = q.Target.Name()
	}
	s.Differences = append(s.Differences, PolicyDifference{line, principal.Name(q.Call.Principal), q.Action, what, now, then})
	return nil
}
