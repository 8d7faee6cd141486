// Package native reads manifests of the contract of Mortise itself.
package native

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// Name is the name of the contract.
const Name = "native"

// Contract is the contract of Mortise itself.
type Contract struct{}

var (
	_ contract.Reader       = Contract{}
	_ contract.SourceReader = Contract{}
)

// Name implements [contract.Contract].
func (Contract) Name() string { return Name }

// Form implements [contract.Reader].
func (Contract) Form() string { return "of Mortise itself (name, with operations or runner)" }

// Recognizes implements [contract.Reader].
func (Contract) Recognizes(top contract.Value) bool {
	return top.Has("operations") || top.Has("runner")
}

// ReadSource implements [contract.SourceReader]: all but how to run the file is for
// its code to say.
func (Contract) ReadSource(name string) *plugin.Manifest {
	return &plugin.Manifest{
		Dialect:   Name,
		Runner:    plugin.Runner{Kind: contract.ProcessRunner, Entry: name, Protocol: "2"},
		Isolation: plugin.IsolationTenant,
	}
}

// Read implements [contract.Reader].
func (Contract) Read(top contract.Value) *plugin.Manifest {
	top.Mapping("name", "version", "display_name", "owner", "description", "runner", "isolation",
		"pillar", "capabilities", "http", "feed", "operations", "hooks", "requires", "observability")
	m := Common(top, Name)
	m.Pillar = top.Get("pillar").Word()
	m.Hooks = hooksOf(top.Get("hooks"))
	if m.Runner.Kind == contract.WebhookRunner {
		return webhook(top, m)
	}
	if m.Runner.Kind == contract.MCPRunner {
		return mounted(top, m)
	}
	m.Feed = feedOf(top.Get("feed"))

	operations := top.Get("operations")
	if operations.Mapping() && len(operations.Keys()) == 0 {
		operations.Problem("no operation stands here: name one, or leave the key out for the code to name them")
	}
	folded := map[string]string{}
	for _, name := range operations.Keys() {
		place := operations.Get(name)
		if !contract.ValidName(name) {
			place.Problem("%q is no name: %s", contract.Clip(name), contract.NameRule)
		}
		if other, taken := folded[strings.ToLower(name)]; taken {
			place.Problem("it differs from %s in letter case only", other)
		}
		folded[strings.ToLower(name)] = name
		if op := operationOf(place, name, m.Runner.Protocol); op != nil {
			m.Operations = append(m.Operations, op)
		}
	}
	contract.SortOperations(m.Operations)
	if len(m.Operations) > 0 {
		CheckAccounts(top.Get("http").Get("inject"), m)
	}
	if m.Runner.Protocol == "1" && len(m.Hooks) > 0 {
		top.Get("hooks").Problem("a plugin of protocol 1 hears nothing but calls")
	}
	if m.Runner.Protocol == "1" && !operations.There {
		operations.Problem("it is missing: a plugin of protocol 1 cannot describe its operations itself")
	}
	return m
}

// Common reads the keys that a manifest of the kernel contract has too, for the
// contract of that name.
func Common(top contract.Value, name string) *plugin.Manifest {
	m := &plugin.Manifest{
		Name:         top.Get("name").Required().Name(),
		Version:      top.Get("version").Required().Version(),
		DisplayName:  top.Get("display_name").Text(),
		Owner:        top.Get("owner").Text(),
		Description:  top.Get("description").Text(),
		Dialect:      name,
		Runner:       runnerOf(top.Get("runner")),
		Capabilities: top.Get("capabilities").Words(),
		Requires:     requiresOf(top.Get("requires")),
	}
	m.HTTP = httpOf(top.Get("http"), serverHosts(top, m.Runner))
	// What a plugin requires of the host (kernel contracts, 5.1.1), it asks for.
	for _, name := range m.Requires.Capabilities {
		if !slices.Contains(m.Capabilities, name) {
			m.Capabilities = append(m.Capabilities, name)
		}
	}
	if granted := slices.Contains(m.Capabilities, "http"); m.Runner.Kind == contract.MCPRunner {
		// The host itself asks its server.
	} else if granted && m.HTTP.IsZero() {
		top.Get("capabilities").Note("it asks for http and names no host: add http: {hosts: [api.example.com]}, or nothing can be reached")
	} else if !granted && !m.HTTP.IsZero() {
		top.Get("http").Note("capabilities does not ask for http, so these hosts cannot be reached")
	}
	m.Isolation = isolationOf(top.Get("isolation"), m.Runner.Protocol)
	if o := top.Get("observability"); o.Mapping("log_level", "emit_samples") {
		m.Observability.LogLevel = o.Get("log_level").OneOf("", "debug", "info", "warning", "error")
		m.Observability.EmitSamples = o.Get("emit_samples").Truth()
	}
	return m
}

// feedOf reads what may be scheduled.
func feedOf(v contract.Value) plugin.Feed {
	if !v.Mapping("default", "allowed") {
		return plugin.Feed{}
	}
	f := plugin.Feed{Default: v.Get("default").Word(), Allowed: v.Get("allowed").Words()}
	if f.Default != "" && len(f.Allowed) > 0 && !slices.Contains(f.Allowed, f.Default) {
		v.Get("default").Problem("%s is none of allowed", contract.Clip(f.Default))
	}
	return f
}

// requiresOf reads what a plugin needs of others.
func requiresOf(v contract.Value) plugin.Requires {
	if !v.Mapping("tools", "capabilities", "context_fields") {
		return plugin.Requires{}
	}
	checkReferences(v.Get("tools"))
	return plugin.Requires{
		Tools:         v.Get("tools").Words(),
		Capabilities:  v.Get("capabilities").Words(),
		ContextFields: v.Get("context_fields").Words(),
	}
}

// httpOf reads which hosts may be asked, beside those that are asked in any case, and how.
func httpOf(v contract.Value, anyway []string) plugin.HTTP {
	if !v.Mapping("hosts", "idempotency", "inject") {
		return plugin.HTTP{Hosts: anyway}
	}
	hosts := v.Get("hosts")
	for _, host := range hosts.List() {
		text, isText := host.Is.(string)
		if !isText || contract.BadWord(text) != "" {
			continue // words says so
		}
		if _, err := egress.ParseHost(text); err != nil {
			host.Problem("%v", err)
		}
	}
	declared := hosts.Words()
	for _, host := range anyway {
		if !slices.Contains(declared, host) {
			declared = append(declared, host)
		}
	}
	return plugin.HTTP{Hosts: declared, Idempotency: idempotencyOf(v.Get("idempotency"), declared), Inject: injectionsOf(v.Get("inject"), declared)}
}

// idempotencyOf reads in which header each of some hosts takes a key.
func idempotencyOf(v contract.Value, hosts []string) map[string]string {
	if !v.There || !v.Mapping() {
		return nil
	}
	headers := map[string]string{}
	for _, host := range v.Keys() {
		place := v.Get(host)
		header := place.Word()
		switch {
		case !slices.Contains(hosts, host):
			place.Problem("%s is none of hosts", contract.Clip(host))
		case header == "": // the problem is noted
		case !isToken(header):
			place.Problem("%q is no name of a header", contract.Clip(header))
		case egress.RefusedHeader(header):
			place.Problem("the header %s is not a plugin's to send", header)
		default:
			headers[host] = header
		}
	}
	return headers
}

// isToken reports whether text may be the name of a header (RFC 9110, 5.6.2).
func isToken(text string) bool {
	return len(text) <= 128 && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// isolationOf reads how widely a process may be shared. Protocol 1 is one
// process for each call, so nothing else can be asked of it.
func isolationOf(v contract.Value, protocol string) plugin.Isolation {
	def := plugin.IsolationTenant
	if protocol == "1" {
		def = plugin.IsolationCall
	}
	text := v.OneOf(string(def), "call", "session", "agent", "tenant", "shared")
	if text == "shared" { // the contract's word for it
		text = string(plugin.IsolationTenant)
	}
	if protocol == "1" && text != string(plugin.IsolationCall) {
		v.Problem("a plugin of protocol 1 has a process for each call: %s cannot be had", text)
	}
	return plugin.Isolation(text)
}
