package dialect

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// native reads a manifest of our own contract.
func (p *page) native(top value) *plugin.Manifest {
	top.mapping("name", "version", "display_name", "owner", "description", "runner", "isolation",
		"capabilities", "http", "feed", "operations", "hooks", "requires", "observability")
	m := p.common(top, Native)
	m.Hooks = top.get("hooks").hooks()
	if m.Runner.Kind == webhookRunner {
		return p.webhook(top, m)
	}
	m.Feed = top.get("feed").feed()

	operations := top.get("operations")
	if operations.mapping() && len(operations.keys()) == 0 {
		operations.problem("no operation stands here: name one, or leave the key out for the code to name them")
	}
	folded := map[string]string{}
	for _, name := range operations.keys() {
		place := operations.get(name)
		if !ValidName(name) {
			place.problem("%q is no name: %s", clip(name), nameRule)
		}
		if other, taken := folded[strings.ToLower(name)]; taken {
			place.problem("it differs from %s in letter case only", other)
		}
		folded[strings.ToLower(name)] = name
		if op := place.operation(name, m.Runner.Protocol); op != nil {
			m.Operations = append(m.Operations, op)
		}
	}
	sortOperations(m.Operations)
	if len(m.Operations) > 0 {
		top.get("http").get("inject").accounts(m)
	}
	if m.Runner.Protocol == "1" && len(m.Hooks) > 0 {
		top.get("hooks").problem("a plugin of protocol 1 hears nothing but calls")
	}
	if m.Runner.Protocol == "1" && !operations.there {
		operations.problem("it is missing: a plugin of protocol 1 cannot describe its operations itself")
	}
	return m
}

// common reads the keys that both contracts have.
func (p *page) common(top value, dialect string) *plugin.Manifest {
	m := &plugin.Manifest{
		Name:         top.get("name").required().name(),
		Version:      top.get("version").required().version(),
		DisplayName:  top.get("display_name").text(),
		Owner:        top.get("owner").text(),
		Description:  top.get("description").text(),
		Dialect:      dialect,
		Runner:       top.get("runner").runner(),
		Capabilities: top.get("capabilities").words(),
		HTTP:         top.get("http").http(),
		Requires:     top.get("requires").requires(),
	}
	if granted := slices.Contains(m.Capabilities, "http"); granted && m.HTTP.IsZero() {
		top.get("capabilities").note("it asks for http and names no host: add http: {hosts: [api.example.com]}, or nothing can be reached")
	} else if !granted && !m.HTTP.IsZero() {
		top.get("http").note("capabilities does not ask for http, so these hosts cannot be reached")
	}
	m.Isolation = top.get("isolation").isolation(m.Runner.Protocol)
	if o := top.get("observability"); o.mapping("log_level", "emit_samples") {
		m.Observability.LogLevel = o.get("log_level").oneOf("", "debug", "info", "warning", "error")
		m.Observability.EmitSamples = o.get("emit_samples").truth()
	}
	return m
}

// feed reads what may be scheduled.
func (v value) feed() plugin.Feed {
	if !v.mapping("default", "allowed") {
		return plugin.Feed{}
	}
	f := plugin.Feed{Default: v.get("default").word(), Allowed: v.get("allowed").words()}
	if f.Default != "" && len(f.Allowed) > 0 && !slices.Contains(f.Allowed, f.Default) {
		v.get("default").problem("%s is none of allowed", clip(f.Default))
	}
	return f
}

// requires reads what a plugin needs of others.
func (v value) requires() plugin.Requires {
	if !v.mapping("tools", "capabilities", "context_fields") {
		return plugin.Requires{}
	}
	v.get("tools").references()
	return plugin.Requires{
		Tools:         v.get("tools").words(),
		Capabilities:  v.get("capabilities").words(),
		ContextFields: v.get("context_fields").words(),
	}
}

// http reads which hosts may be asked, and how.
func (v value) http() plugin.HTTP {
	if !v.mapping("hosts", "idempotency", "inject") {
		return plugin.HTTP{}
	}
	hosts := v.get("hosts")
	for _, host := range hosts.list() {
		text, isText := host.is.(string)
		if !isText || badWord(text) != "" {
			continue // words says so
		}
		if _, err := egress.ParseHost(text); err != nil {
			host.problem("%v", err)
		}
	}
	declared := hosts.words()
	return plugin.HTTP{Hosts: declared, Idempotency: v.get("idempotency").idempotency(declared), Inject: v.get("inject").injections(declared)}
}

// idempotency reads in which header each of some hosts takes a key.
func (v value) idempotency(hosts []string) map[string]string {
	if !v.there || !v.mapping() {
		return nil
	}
	headers := map[string]string{}
	for _, host := range v.keys() {
		place := v.get(host)
		header := place.word()
		switch {
		case !slices.Contains(hosts, host):
			place.problem("%s is none of hosts", clip(host))
		case header == "": // the problem is noted
		case !isToken(header):
			place.problem("%q is no name of a header", clip(header))
		case egress.RefusedHeader(header):
			place.problem("the header %s is not a plugin's to send", header)
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

// isolation reads how widely a process may be shared. Protocol 1 is one
// process for each call, so nothing else can be asked of it.
func (v value) isolation(protocol string) plugin.Isolation {
	def := plugin.IsolationTenant
	if protocol == "1" {
		def = plugin.IsolationCall
	}
	text := v.oneOf(string(def), "call", "session", "agent", "tenant", "shared")
	if text == "shared" { // the contract's word for it
		text = string(plugin.IsolationTenant)
	}
	if protocol == "1" && text != string(plugin.IsolationCall) {
		v.problem("a plugin of protocol 1 has a process for each call: %s cannot be had", text)
	}
	return plugin.Isolation(text)
}

func sortOperations(ops []*plugin.Operation) {
	slices.SortFunc(ops, func(a, b *plugin.Operation) int { return strings.Compare(a.Name, b.Name) })
}
