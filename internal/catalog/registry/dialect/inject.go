package dialect

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// maxInjections is how many credentials one manifest may ask for.
const maxInjections = 32

// injections reads which credentials the host puts into requests.
func (v value) injections(hosts []string) []plugin.Injection {
	items := v.list()
	if len(items) > maxInjections {
		v.problem("there are %d; at most %d are inserted", len(items), maxInjections)
		return nil
	}
	var all []plugin.Injection
	for _, item := range items {
		in, fine := item.injection(hosts)
		if !fine {
			continue
		}
		if slices.ContainsFunc(all, func(other plugin.Injection) bool { return samePlace(in, other) }) {
			item.problem("another one is sent to %s in the same place", in.Host)
			continue
		}
		all = append(all, in)
	}
	return all
}

// samePlace reports whether two credentials would stand in one header or one
// parameter.
func samePlace(a, b plugin.Injection) bool {
	switch {
	case a.Host != b.Host:
		return false
	case a.Header == "" && a.Query == "" && b.Header == "" && b.Query == "":
		return a.Secret == b.Secret
	}
	return strings.EqualFold(a.Header, b.Header) && a.Query == b.Query
}

func (v value) injection(hosts []string) (in plugin.Injection, fine bool) {
	if !v.mapping("host", "header", "query", "format", "secret", "allowed_scope", "optional", "account") {
		return in, false
	}
	in = plugin.Injection{
		Host: v.get("host").required().word(), Header: v.get("header").word(), Query: v.get("query").word(), Format: v.get("format").text(),
		Secret: v.get("secret").word(), Account: v.get("account").word(), Optional: v.get("optional").truth(),
	}
	if in.Secret != "" {
		in.AllowedScope = v.get("allowed_scope").oneOf(plugin.SecretOfSystemOrUser, secretScopes...)
	}
	if in.Account != "" && in.Header == "" && in.Query == "" {
		in.Header = "Authorization"
	}
	if in.Account != "" && in.Format == "" && in.Header != "" {
		in.Format = "Bearer {}"
	}
	switch {
	case in.Host == "":
	case !slices.Contains(hosts, in.Host):
		v.get("host").problem("%s is none of hosts", clip(in.Host))
	case (in.Secret == "") == (in.Account == ""):
		v.problem("it names one credential: a secret, or the provider of an account")
	case in.Account != "" && (v.has("allowed_scope") || v.has("optional")):
		v.problem("an operation says under auth whose account it is and whether it does without")
	case in.Header != "" && in.Query != "":
		v.problem("a credential is sent in one place: header or query")
	case in.Header != "" && !isToken(in.Header):
		v.get("header").problem("%q is no name of a header", clip(in.Header))
	case in.Header != "" && egress.RefusedHeader(in.Header):
		v.get("header").problem("the header %s is the host's own to write", in.Header)
	case in.Format != "" && in.Header == "" && in.Query == "":
		v.get("format").problem("without header or query the plugin says how it is sent")
	case in.Format != "" && strings.Count(in.Format, "{}") != 1:
		v.get("format").problem("it has {} once, where the credential stands: Bearer {}")
	case len(in.Format) > 200 || strings.ContainsFunc(in.Format, func(r rune) bool { return r < ' ' || r > '~' }):
		v.get("format").problem("it is at most 200 printable ASCII characters")
	default:
		return in, true
	}
	return in, false
}

// accounts refuses an account that no operation declares.
func (v value) accounts(m *plugin.Manifest) {
	for _, in := range m.HTTP.Inject {
		declared := slices.ContainsFunc(m.Operations, func(op *plugin.Operation) bool { return op.Auth != nil && op.Auth.Provider == in.Account })
		if in.Account != "" && !declared {
			v.problem("no operation declares that it acts with %s: auth: {provider: %s, mode: user}", clip(in.Account), clip(in.Account))
		}
	}
}
