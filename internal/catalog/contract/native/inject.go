package native

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// maxInjections is how many credentials one manifest may ask for.
const maxInjections = 32

// injectionsOf reads which credentials the host puts into requests.
func injectionsOf(v contract.Value, hosts []string) []plugin.Injection {
	items := v.List()
	if len(items) > maxInjections {
		v.Problem("there are %d; at most %d are inserted", len(items), maxInjections)
		return nil
	}
	var all []plugin.Injection
	for _, item := range items {
		in, fine := injectionOf(item, hosts)
		if !fine {
			continue
		}
		if slices.ContainsFunc(all, func(other plugin.Injection) bool { return samePlace(in, other) }) {
			item.Problem("another one is sent to %s in the same place", in.Host)
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

func injectionOf(v contract.Value, hosts []string) (in plugin.Injection, fine bool) {
	if !v.Mapping("host", "header", "query", "format", "secret", "allowed_scope", "optional", "account") {
		return in, false
	}
	in = plugin.Injection{
		Host: v.Get("host").Required().Word(), Header: v.Get("header").Word(), Query: v.Get("query").Word(), Format: v.Get("format").Text(),
		Secret: v.Get("secret").Word(), Account: v.Get("account").Word(), Optional: v.Get("optional").Truth(),
	}
	if in.Secret != "" {
		in.AllowedScope = v.Get("allowed_scope").OneOf(plugin.SecretOfSystemOrUser, contract.SecretScopes...)
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
		v.Get("host").Problem("%s is none of hosts", contract.Clip(in.Host))
	case (in.Secret == "") == (in.Account == ""):
		v.Problem("it names one credential: a secret, or the provider of an account")
	case in.Account != "" && (v.Has("allowed_scope") || v.Has("optional")):
		v.Problem("an operation says under auth whose account it is and whether it does without")
	case in.Header != "" && in.Query != "":
		v.Problem("a credential is sent in one place: header or query")
	case in.Header != "" && !isToken(in.Header):
		v.Get("header").Problem("%q is no name of a header", contract.Clip(in.Header))
	case in.Header != "" && egress.RefusedHeader(in.Header):
		v.Get("header").Problem("the header %s is the host's own to write", in.Header)
	case in.Format != "" && in.Header == "" && in.Query == "":
		v.Get("format").Problem("without header or query the plugin says how it is sent")
	case in.Format != "" && strings.Count(in.Format, "{}") != 1:
		v.Get("format").Problem("it has {} once, where the credential stands: Bearer {}")
	case len(in.Format) > 200 || strings.ContainsFunc(in.Format, func(r rune) bool { return r < ' ' || r > '~' }):
		v.Get("format").Problem("it is at most 200 printable ASCII characters")
	default:
		return in, true
	}
	return in, false
}

// CheckAccounts refuses an account that no operation declares.
func CheckAccounts(v contract.Value, m *plugin.Manifest) {
	for _, in := range m.HTTP.Inject {
		declared := slices.ContainsFunc(m.Operations, func(op *plugin.Operation) bool { return op.Auth != nil && op.Auth.Provider == in.Account })
		if in.Account != "" && !declared {
			v.Problem("no operation declares that it acts with %s: auth: {provider: %s, mode: user}", contract.Clip(in.Account), contract.Clip(in.Account))
		}
	}
}
