package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// Policies are all documents of the policies in force.
type Policies struct {
	Policies []PolicyText `json:"policies" nullable:"false"`
	Version  string       `json:"version" doc:"Of the whole set; the ETag has it too."`
}

// A PolicyText is one document of the policies in force.
type PolicyText struct {
	Name     string    `json:"name"`
	Source   string    `json:"source" enum:"file,stored,configuration"`
	Policies int       `json:"policies" doc:"How many are in it."`
	By       string    `json:"by,omitzero" doc:"Who stored it."`
	At       time.Time `json:"at,omitzero"`
}

// A PolicyNamed is a stored policy that is meant, and the set that it is changed in.
type PolicyNamed struct {
	Name  string `path:"name" maxLength:"64"`
	Match string `header:"If-Match" maxLength:"256" doc:"The ETag of GET policies, which the change was written for. A request without it is answered 428."`
}

// A PolicySet is the set of policies after a change of it.
type PolicySet struct {
	Name     string `json:"name"`
	Policies int    `json:"policies" doc:"How many are in the text."`
	Version  string `json:"version" doc:"Of the whole set; the ETag has it too."`
}

// A PolicyQuestion is whether a principal may do something.
type PolicyQuestion struct {
	Principal string          `json:"principal,omitzero" maxLength:"256" doc:"The caller where it is left out. About another it takes the right to configure mortise.policies."`
	Tenant    string          `json:"tenant,omitzero" maxLength:"256"`
	Groups    []string        `json:"groups,omitzero" maxItems:"256" nullable:"false" doc:"In place of those that the principal is in; roles and consent likewise."`
	Roles     []string        `json:"roles,omitzero" maxItems:"256" nullable:"false"`
	Consent   []string        `json:"consent,omitzero" maxItems:"256" nullable:"false"`
	Scopes    []string        `json:"scopes,omitzero" maxItems:"256" nullable:"false"`
	Action    string          `json:"action,omitzero" enum:"execute,list,approve,configure" doc:"execute where it is left out."`
	Operation string          `json:"operation,omitzero" maxLength:"256" doc:"plugin/operation@versions, or a plugin for configure."`
	Resource  *PolicyResource `json:"resource,omitzero" doc:"In place of an operation that is installed."`
	Input     json.RawMessage `json:"input,omitzero"`
	Origin    string          `json:"origin,omitzero" maxLength:"64" doc:"api where it is left out."`
	Actor     string          `json:"actor,omitzero" maxLength:"256"`
	Agent     string          `json:"agent,omitzero" maxLength:"256"`
	Depth     int             `json:"depth,omitzero" minimum:"0" maximum:"1000"`
	Labels    []string        `json:"labels,omitzero" maxItems:"64" nullable:"false"`
}

// A PolicyResource is an operation that need not be installed.
type PolicyResource struct {
	Plugin      string   `json:"plugin" maxLength:"256"`
	Operation   string   `json:"operation,omitzero" maxLength:"256"`
	Version     string   `json:"version,omitzero" maxLength:"256"`
	Dialect     string   `json:"dialect,omitzero" maxLength:"64"`
	Kind        string   `json:"kind,omitzero" enum:"agent,operator,tool,adapter"`
	Effects     []string `json:"effects,omitzero" maxItems:"64" nullable:"false"`
	Tags        []string `json:"tags,omitzero" maxItems:"64" nullable:"false"`
	Permissions []string `json:"permissions,omitzero" maxItems:"64" nullable:"false"`
}

// A PolicyFile is a file of policies.
type PolicyFile struct {
	Name string `json:"name" maxLength:"4096" doc:"What its problems are said to be in."`
	Text string `json:"text" maxLength:"1048576" doc:"Policies in the language Cedar."`
}

// request is the question as the host takes it.
func (p *PolicyQuestion) request() (r host.PolicyRequest, err error) {
	raw, err := json2.Marshal(p)
	if err == nil {
		err = json2.Unmarshal(raw, &r)
	}
	return r, err
}

// maxPolicy is the longest text of policies that is stored, in bytes.
const maxPolicy = 1 << 20

func (r *registry) policies() {
	add(r, route{method: "GET", path: "policies", id: "list-policies", scope: host.ScopeRead, about: "The documents of the policies in force, with the version of the set"}, r.listPolicies)
	add(r, route{method: "PUT", path: "policies/{name}", id: "put-policy", scope: host.ScopeConfigure, about: "Store a text of policies and put it into force, if the set is still that of If-Match"}, r.putPolicy)
	add(r, route{method: "DELETE", path: "policies/{name}", id: "delete-policy", scope: host.ScopeConfigure, about: "Take a stored text of policies out of force, if the set is still that of If-Match"}, r.deletePolicy)
	add(r, route{method: "POST", path: "policies:ask", id: "ask-policy", scope: host.ScopeRead, about: "What the policies decide about a request; nothing is done"}, r.askPolicy)
	add(r, route{method: "POST", path: "policies:explain", id: "explain-policy", scope: host.ScopeRead, about: "Which policies decide about a request, and what would change it"}, r.explainPolicy)
	add(r, route{method: "POST", path: "policies:simulate", id: "simulate-policy", scope: host.ScopeRead, about: "What would be decided otherwise if a text of policies were stored; nothing is stored"}, r.simulatePolicy)
}

func (r *registry) listPolicies(ctx context.Context, q *request, _ *struct{}) (*struct {
	ETag string `header:"ETag"`
	Body Policies
}, error) {
	version := q.api.Policies().Version() // before the list: a change in between makes the ETag the older one
	listed, err := q.api.Policies().List(ctx)
	if err != nil {
		return nil, err
	}
	out := new(struct {
		ETag string `header:"ETag"`
		Body Policies
	})
	out.ETag, out.Body = policyTag(version), Policies{[]PolicyText{}, version}
	for _, p := range listed {
		text := PolicyText{Name: p.Name, Source: p.Source, Policies: p.Policies, By: p.By}
		if p.At != nil {
			text.At = *p.At
		}
		out.Body.Policies = append(out.Body.Policies, text)
	}
	return out, nil
}

func policyTag(version string) string { return `"` + version + `"` }

// matched returns the version that a change was written for: that of the set in force, which
// If-Match has to name. The host compares it, in the transaction of the change. Any set, *,
// is none: a change of policies has seen what it changes.
func matched(q *request) (string, error) {
	given := q.Header.Values("If-Match")
	if len(given) == 0 {
		return "", refused(http.StatusPreconditionRequired, plugin.CodeConflict, "a change of policies says which set it was written for",
			Place{Pointer: "If-Match", Detail: "it is missing; GET policies answers with the ETag"})
	}
	version := q.api.Policies().Version()
	if strings.TrimSpace(strings.Join(given, ",")) == "*" || !names(given, policyTag(version), false) {
		return "none", nil // which no set has: the host refuses it where it would not refuse the caller
	}
	return version, nil
}

// A policyChanged is the answer to a change.
type policyChanged struct {
	ETag string `header:"ETag"`
	Body PolicySet
}

func (r *registry) putPolicy(ctx context.Context, q *request, in *struct {
	PolicyNamed
	Body struct {
		Text string `json:"text" maxLength:"1048576" doc:"Policies in the language Cedar."`
	} `nameHint:"PutPolicy"`
}) (*policyChanged, error) {
	was, err := matched(q)
	if err != nil {
		return nil, err
	}
	if len(in.Body.Text) > maxPolicy {
		return nil, refused(0, plugin.CodeInputTooLarge, "a text of policies has at most 1 MiB")
	}
	done, err := q.api.Policies().Put(ctx, in.Name, []byte(in.Body.Text), was)
	if err != nil {
		return nil, err
	}
	return &policyChanged{policyTag(done.Version), PolicySet{in.Name, done.Policies, done.Version}}, nil
}

func (r *registry) deletePolicy(ctx context.Context, q *request, in *PolicyNamed) (*policyChanged, error) {
	was, err := matched(q)
	if err != nil {
		return nil, err
	}
	done, err := q.api.Policies().Delete(ctx, in.Name, was)
	if err != nil {
		return nil, unlessMissing(err, "policy", in.Name)
	}
	return &policyChanged{policyTag(done.Version), PolicySet{in.Name, 0, done.Version}}, nil
}

func (r *registry) askPolicy(ctx context.Context, q *request, in *struct{ Body PolicyQuestion }) (*struct{ Body plugin.Decision }, error) {
	asked, err := in.Body.request()
	if err != nil {
		return nil, err
	}
	d, err := q.api.Policies().Ask(ctx, asked)
	if err != nil {
		return nil, err
	}
	return &struct{ Body plugin.Decision }{d}, nil
}

func (r *registry) explainPolicy(ctx context.Context, q *request, in *struct{ Body PolicyQuestion }) (*struct{ Body host.PolicyExplanation }, error) {
	asked, err := in.Body.request()
	if err != nil {
		return nil, err
	}
	x, err := q.api.Policies().Explain(ctx, asked)
	if err != nil {
		return nil, err
	}
	return &struct{ Body host.PolicyExplanation }{x}, nil
}

func (r *registry) simulatePolicy(ctx context.Context, q *request, in *struct {
	Body struct {
		Name     string           `json:"name,omitzero" maxLength:"64" doc:"Under which it would be stored; a text that has the name is left out."`
		Text     string           `json:"text,omitzero" maxLength:"1048576" doc:"Policies in the language Cedar."`
		Files    []PolicyFile     `json:"documents,omitzero" maxItems:"1000" nullable:"false" doc:"Policies in the place of the files that the configuration names, and of name and text."`
		Requests []PolicyQuestion `json:"requests" minItems:"1" maxItems:"1000" nullable:"false"`
	} `nameHint:"SimulatePolicy"`
}) (*struct{ Body host.Simulation }, error) {
	if len(in.Body.Text) > maxPolicy {
		return nil, refused(0, plugin.CodeInputTooLarge, "a text of policies has at most 1 MiB")
	}
	var lines bytes.Buffer
	for i := range in.Body.Requests {
		if err := json2.MarshalWrite(&lines, &in.Body.Requests[i]); err != nil {
			return nil, err
		}
		lines.WriteByte('\n')
	}
	if len(in.Body.Files) > 0 {
		var documents []host.PolicyDocument
		for _, f := range in.Body.Files {
			documents = append(documents, host.PolicyDocument{Name: f.Name, Text: []byte(f.Text)})
		}
		return simulated(q.api.Policies().Try(ctx, documents, &lines, "requests"))
	}
	other, err := q.api.Policies().Suppose(ctx, in.Body.Name, []byte(in.Body.Text))
	if err != nil {
		return nil, err
	}
	return simulated(q.api.Policies().Simulate(ctx, other, &lines, "requests"))
}

func simulated(s host.Simulation, err error) (*struct{ Body host.Simulation }, error) {
	if err != nil {
		return nil, err
	}
	return &struct{ Body host.Simulation }{s}, nil
}
