package service

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/core/placeholder"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// maxCredential is how long an inserted credential may be.
const maxCredential = 8 << 10

// A placed is a header whose value a plugin gave by reference.
type placed struct {
	header, secret, format string
}

// A credential is one value that goes with the requests of a fetch.
type credential struct {
	host          string // the entry of the manifest that it is bound to; "" for the host that the plugin addressed
	header, query string
	value, text   string // what is secret, and what is sent
}

// covers reports whether the credential belongs to a URL.
func (c credential) covers(u *url.URL) bool {
	return c.host == "" || egress.Allow([]string{c.host}, u) == nil
}

// parsePlaced reads a header that is given by reference: {"$secret": name} and,
// where the secret is not all there is to send, "format".
func parsePlaced(header string, ref headerReference) (placed, error) {
	p := placed{header: header, secret: ref.Secret, format: ref.Format}
	switch {
	case p.secret == "":
		return p, invalid("headers: the value of %s is text or {%q: name}", header, placeholder.Reference)
	case p.format != "" && strings.Count(p.format, "{}") != 1:
		return p, invalid("headers: the format of %s has {} once, where the secret stands", header)
	}
	return p, checkHeaderValue(header, p.format)
}

// A headerReference is the value of a header that the host fills in.
type headerReference struct {
	Secret string `json:"$secret"`
	Format string `json:"format"`
}

// insertions refuses what the plugin may not have inserted, before anything is
// sent or put on record.
func (g *grant) insertions(f *fetch) error {
	for _, p := range f.placed {
		if _, err := g.placedScope(p.secret, f.url); err != nil {
			return err
		}
	}
	for _, in := range g.target.Manifest.HTTP.Inject {
		if !bound(in, f.url) {
			continue
		}
		given := in.Header != "" && (f.header.Get(in.Header) != "" ||
			slices.ContainsFunc(f.placed, func(p placed) bool { return strings.EqualFold(p.header, in.Header) }))
		switch {
		case given:
			return invalid("headers: %s is for the host to insert into requests to %s, as http: inject in the manifest says; leave it out", in.Header, in.Host)
		case in.Query != "" && hasParam(f.url.RawQuery, in.Query):
			return invalid("the parameter %s is for the host to insert into requests to %s, as http: inject in the manifest says; leave it out", in.Query, in.Host)
		}
	}
	return nil
}

// bound reports whether a credential belongs to a URL.
func bound(in plugin.Injection, u *url.URL) bool { return egress.Allow([]string{in.Host}, u) == nil }

// placedScope returns the scope in which a secret may be sent in a header that
// the plugin names: one that the manifest binds to the host, or else one that the
// plugin could as well read.
func (g *grant) placedScope(name string, u *url.URL) (string, error) {
	for _, in := range g.target.Manifest.HTTP.Inject {
		if in.Secret == name && bound(in, u) {
			return scopeOr(in.AllowedScope), nil
		}
	}
	if !slices.Contains(g.target.Manifest.Capabilities, secretsName) {
		return "", plugin.Errorf(plugin.CodeServiceDenied,
			"%s: %s may not send the secret %.128q to %s; bind it to the host in the manifest, http: {inject: [{host: %s, secret: %.128s}]}", fetchName, g.target.Name(), name, u.Host, u.Host, name)
	}
	return g.secretScope(fetchName, name)
}

// credentials returns what is inserted into the requests of a fetch.
func (g *grant) credentials(ctx context.Context, f *fetch) ([]credential, error) {
	var all []credential
	hidden := map[string]string{} // by name of the secret, so that each is looked up once
	lookUp := func(name, scope string) (string, bool, error) {
		if value, known := hidden[name+" "+scope]; known {
			return value, true, nil
		}
		if g.broker.Secrets == nil {
			return "", false, nowhere(fetchName)
		}
		value, found, err := g.secret(ctx, name, scope)
		if found {
			hidden[name+" "+scope] = value
		}
		return value, found, err
	}
	for _, p := range f.placed {
		scope, err := g.placedScope(p.secret, f.url)
		if err != nil {
			return nil, err
		}
		value, found, err := lookUp(p.secret, scope)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, g.notThere(p.secret)
		}
		all = append(all, credential{header: p.header, value: value, text: formatted(p.format, value)})
	}
	for _, in := range g.target.Manifest.HTTP.Inject {
		if !bound(in, f.url) || in.Header == "" && in.Query == "" {
			continue
		}
		var value string
		var found bool
		var err error
		if in.Account != "" {
			value, found, err = g.token(ctx, in.Account)
		} else {
			value, found, err = lookUp(in.Secret, scopeOr(in.AllowedScope))
		}
		switch {
		case err != nil:
			return nil, err
		case !found && in.Account == "" && !in.Optional:
			return nil, g.notThere(in.Secret)
		case found:
			all = append(all, credential{host: in.Host, header: in.Header, query: in.Query, value: value, text: formatted(in.Format, value)})
		}
	}
	for _, c := range all {
		if len(c.text) > maxCredential || checkHeaderValue("", c.text) != nil {
			return nil, plugin.Errorf(plugin.CodeUnavailable, "%s: a credential for %s cannot be sent: it is longer than %d bytes or holds a control character; set it again", fetchName, f.url.Host, maxCredential)
		}
	}
	return all, nil
}

// token returns the token of the account that the call acts with, if it has one.
func (g *grant) token(ctx context.Context, provider string) (string, bool, error) {
	if g.broker.Accounts == nil {
		return "", false, nowhere(fetchName)
	}
	g.confided.Store(true)
	answer, err := g.broker.Accounts.Resolve(ctx, g.target, g.call, AccountAsk{Provider: provider})
	if err != nil || answer.Token == nil {
		return "", false, err
	}
	return *answer.Token, true, nil
}

func (g *grant) notThere(name string) error {
	return plugin.Errorf(plugin.CodeMissingSecrets, "%s: %s sends the secret %s, which is not set; 'mortise secrets set %s --plugin %s' sets one",
		fetchName, g.target.Name(), name, name, g.target.Manifest.Name)
}

// formatted puts a value into the place that a format has for it.
func formatted(format, value string) string {
	if format == "" {
		return value
	}
	return strings.Replace(format, "{}", value, 1)
}

// credited adds the credentials to a request that is about to be sent. None goes
// where a redirect to another host, port or scheme has led.
func (x *exchange) credited(req *http.Request) error {
	if x.left {
		return nil
	}
	for _, c := range x.credentials {
		if !c.covers(x.url) {
			continue
		}
		if x.url.Scheme != "https" && !x.inside() {
			return plugin.Errorf(plugin.CodeEgressDenied, "a credential for %s is sent over https alone, or to a host that an administrator mapped; ask for https://%s", x.url.Host, x.url.Host)
		}
		if c.header != "" {
			req.Header.Set(c.header, c.text)
			continue
		}
		// The request's own URL: the exchange keeps the one without.
		own := *req.URL
		own.RawQuery = withoutParam(own.RawQuery, c.query)
		if own.RawQuery != "" {
			own.RawQuery += "&"
		}
		own.RawQuery += url.QueryEscape(c.query) + "=" + url.QueryEscape(c.text)
		req.URL = &own
	}
	return nil
}

// inside reports whether the way to the host does not leave what the
// administrator answers for.
func (x *exchange) inside() bool {
	name, _ := egress.Endpoint(x.url)
	addr, err := netip.ParseAddr(name)
	return x.grants.Mapped(name) || x.local && (name == "localhost" || err == nil && addr.IsLoopback())
}

// carried makes the place to which a redirect leads free of credentials that
// were inserted into the query, and refuses one that takes a credential
// elsewhere.
func (x *exchange) carried(next *url.URL) error {
	for _, c := range x.credentials {
		if c.query != "" && c.covers(x.url) {
			next.RawQuery = withoutParam(next.RawQuery, c.query)
		}
	}
	if text := next.String(); x.hidden.Text(text) != text && !sameOrigin(x.url, next) {
		return denied("it takes a credential to another host")
	}
	return nil
}

// secretive returns what takes the credentials out of answers; nil where there
// are none.
func secretive(credentials []credential) *secret.Scrubber {
	if len(credentials) == 0 {
		return nil
	}
	s := secret.NewScrubber()
	for _, c := range credentials {
		if s.Know(c.value) != nil {
			s.HideAll()
		}
	}
	return s
}

func hasParam(query, name string) bool { return withoutParam(query, name) != query }

// withoutParam returns a query without the parameter of that name, and everything
// else as it was spelled.
func withoutParam(query, name string) string {
	if query == "" {
		return ""
	}
	kept := slices.DeleteFunc(strings.Split(query, "&"), func(pair string) bool {
		key, _, _ := strings.Cut(pair, "=")
		unescaped, err := url.QueryUnescape(key)
		return err == nil && unescaped == name
	})
	return strings.Join(kept, "&")
}

func denied(format string, args ...any) error {
	return &plugin.Error{Code: plugin.CodeEgressDenied, Message: fmt.Sprintf(format, args...)}
}
