package native

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/internal/service/mount"
	"github.com/mortise-dev/mortise/internal/service/mount/oauth"
	"github.com/mortise-dev/mortise/plugin"
)

// EffectMCPCall is the effect of a tool of a mounted server that the manifest says nothing of.
const EffectMCPCall = "mcp_call"

// variableName is the form of names of variables of an environment.
var variableName = pattern.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// reserved are variables that the host sets itself, or that change which code a program runs.
var reserved = pattern.New(`^(PATH|HOME|TMPDIR|LD_.*|DYLD_.*)$`)

// maxVariables is how many variables of an environment a manifest sets.
const maxVariables = 64

// serverOf reads how a server that speaks the Model Context Protocol is reached: a program that
// the host starts, or a URL.
func serverOf(v contract.Value) plugin.Runner {
	runner := plugin.Runner{Kind: contract.MCPRunner, Protocol: "2"}
	for _, key := range []string{"entry", "protocol", "secret"} {
		if place := v.Get(key); place.There {
			place.Problem("a runner of kind %s has no such key", contract.MCPRunner)
		}
	}
	command, at, env, signs := v.Get("command"), v.Get("url"), v.Get("env"), v.Get("oauth")
	switch {
	case command.There == at.There:
		v.Problem("give either the command that starts the server or its url")
	case command.There:
		runner.Command, runner.Env = commandOf(command), environmentOf(env)
		if signs.There {
			signs.Problem("someone signs in to a server at a url, and to no command")
		}
	default:
		runner.URL, runner.OAuth = addressOf(at), oauthOf(signs)
		if env.There {
			env.Problem("a server at a url has no environment here: http.inject says which credential it gets")
		}
	}
	return runner
}

// oauthOf reads how someone signs in to a server.
func oauthOf(v contract.Value) *plugin.OAuth {
	if !v.There || !v.Mapping("client_id", "client_secret", "scopes") {
		return nil
	}
	o := &plugin.OAuth{ClientID: v.Get("client_id").Word(), Scopes: v.Get("scopes").Words()}
	if len(o.ClientID) > 512 || strings.HasPrefix(o.ClientID, "http:") {
		v.Get("client_id").Problem("it is the id of a client, or the https address of its metadata")
	}
	for _, scope := range o.Scopes {
		if !oauth.IsScope(scope) {
			v.Get("scopes").Problem("%q is no scope", contract.Clip(scope))
		}
	}
	if s := v.Get("client_secret"); s.There && s.Mapping("secret") {
		o.ClientSecret = s.Get("secret").Required().Word()
		if o.ClientID == "" || strings.HasPrefix(o.ClientID, "https:") {
			s.Problem("a secret is of a client that was registered beforehand: give its client_id")
		}
	}
	return o
}

// environmentOf reads the variables that a program gets: texts, or {secret: name}.
func environmentOf(v contract.Value) map[string]plugin.Variable {
	if !v.There || !v.Mapping() {
		return nil
	}
	if len(v.Keys()) > maxVariables {
		v.Problem("it has more than %d variables", maxVariables)
		return nil
	}
	env := map[string]plugin.Variable{}
	for _, name := range v.Keys() {
		place := v.Get(name)
		switch {
		case !variableName.MatchString(name):
			place.Problem("%q is no name of a variable", contract.Clip(name))
		case reserved.MatchString(name):
			place.Problem("%s is the host's to set", name)
		default:
			if text, isText := place.Is.(string); isText {
				env[name] = plugin.Variable{Text: text}
			} else if place.Mapping("secret") {
				env[name] = plugin.Variable{Secret: place.Get("secret").Required().Word()}
			}
		}
	}
	return env
}

// mounted completes the manifest of a mounted server. Its operations are the tools that the
// host has pinned; the manifest classifies them.
func mounted(top contract.Value, m *plugin.Manifest) *plugin.Manifest {
	for _, key := range []string{"capabilities", "feed", "hooks", "requires"} {
		if place := top.Get(key); place.There {
			place.Problem("a mounted server has tools and nothing else")
		}
	}
	m.Capabilities = nil
	checkReach(top, m)
	secrets := secretsOf(m)
	classes := top.Get("operations")
	known := map[string]bool{}
	for _, t := range pinned(top) {
		known[t.Name] = true
		op := classified(classes.Get(t.Name))
		op.Name, op.Title, op.Description, op.Input, op.Output = t.Name, t.Title, t.Description, t.Input, t.Output
		op.NoCache, op.Secrets, op.Hints = true, secrets, hints(t)
		if op.Output == nil {
			op.MCP = &plugin.MCP{Content: true}
		}
		m.Operations = append(m.Operations, op)
	}
	if classes.There && classes.Mapping() {
		for _, name := range classes.Keys() {
			if place := classes.Get(name); len(known) == 0 {
				classified(place) // what is wrong with it is said before the server is asked
			} else if !known[name] {
				place.Note("the server has no tool of that name")
			}
		}
	}
	contract.SortOperations(m.Operations)
	return m
}

// serverHosts returns the host of a mounted server's URL.
func serverHosts(top contract.Value, r plugin.Runner) []string {
	if r.Kind != contract.MCPRunner || r.URL == "" {
		return nil
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil // addressOf says so
	}
	if _, err := egress.ParseHost(u.Host); err != nil {
		top.Get("runner").Get("url").Problem("%v", err)
		return nil
	}
	return []string{u.Host}
}

// checkReach refuses what a mounted server cannot have of http.
func checkReach(top contract.Value, m *plugin.Manifest) {
	for _, in := range m.HTTP.Inject {
		if in.Header == "" || in.Secret == "" {
			top.Get("http").Get("inject").Problem("a mounted server gets a secret in a header")
		}
	}
	if m.Runner.OAuth != nil && slices.ContainsFunc(m.HTTP.Inject, func(in plugin.Injection) bool { return strings.EqualFold(in.Header, "Authorization") }) {
		top.Get("http").Get("inject").Problem("a server that someone signs in to gets its token in Authorization, and nothing else there")
	}
	if m.Runner.URL == "" && len(m.HTTP.Inject)+len(m.HTTP.Idempotency) > 0 {
		top.Get("http").Problem("of a server that the host starts, http has hosts alone: runner.env gives it a secret")
	}
}

// secretsOf returns the secrets that a mounted server gets: a call is refused while one is missing.
func secretsOf(m *plugin.Manifest) map[string]plugin.SecretNeed {
	needs := map[string]plugin.SecretNeed{}
	for _, value := range m.Runner.Env {
		if value.Secret != "" {
			needs[value.Secret] = plugin.SecretNeed{AllowedScope: plugin.SecretOfSystem}
		}
	}
	for _, in := range m.HTTP.Inject {
		if in.Secret != "" {
			needs[in.Secret] = plugin.SecretNeed{AllowedScope: plugin.SecretOfSystem, Optional: in.Optional}
		}
	}
	if o := m.Runner.OAuth; o != nil && o.ClientSecret != "" {
		needs[o.ClientSecret] = plugin.SecretNeed{AllowedScope: plugin.SecretOfSystem}
	}
	if len(needs) == 0 {
		return nil
	}
	return needs
}

// classified reads what the manifest says of one tool: without a word of it the tool is an
// operator with the effect mcp_call.
func classified(v contract.Value) *plugin.Operation {
	op := &plugin.Operation{Kind: plugin.Operator, Effects: []string{EffectMCPCall}, Labels: []string{plugin.Untrusted}, Timeout: contract.Timeouts["medium"]}
	if !v.There || !v.Mapping("kind", "effects", "policy_tags", "permissions", "timeout", "hidden", "labels", "tags", "facets") {
		return op
	}
	op.Kind = plugin.Kind(v.Get("kind").OneOf(string(plugin.Operator), string(plugin.Operator), string(plugin.Tool)))
	if effects := v.Get("effects"); effects.There {
		op.Effects = effects.Words()
	} else if op.Kind == plugin.Tool {
		op.Effects = nil
	}
	Fitting(v.Get("effects"), op)
	op.PolicyTags, op.Permissions = v.Get("policy_tags").Words(), v.Get("permissions").Words()
	op.Timeout, op.Hidden = v.Get("timeout").Timeout(contract.Timeouts["medium"]), v.Get("hidden").Truth()
	op.Tags, op.Facets = v.Get("tags").Words(), v.Get("facets").Words()
	for _, label := range v.Get("labels").List() {
		label.OneOf(plugin.Untrusted, contract.TaintLabels...)
	}
	op.Labels = plugin.Labels(op.Labels, v.Get("labels").Words())
	return op
}

// pinned returns the tools that the host has pinned, none before it has.
func pinned(top contract.Value) []mount.Tool {
	raw, err := top.Page.Files.Read(mount.File, mount.MaxBytes*2)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		top.Problem("%s: %v", mount.File, err)
		return nil
	}
	d, err := mount.Parse(raw)
	if err != nil {
		top.Problem("%v", err)
		return nil
	}
	return d.Tools
}

// hints returns what a server says of a tool beside its texts and schemas, nil for nothing.
func hints(t mount.Tool) json.RawMessage {
	said := map[string]json.RawMessage{}
	for key, value := range map[string]json.RawMessage{"annotations": t.Annotations, "icons": t.Icons, "_meta": t.Meta} {
		if len(value) > 0 {
			said[key] = value
		}
	}
	if len(said) == 0 {
		return nil
	}
	raw, err := json.Marshal(said)
	if err != nil {
		return nil
	}
	return raw
}
