package host

import (
	"net/url"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/host/config"
)

// A Provider is one with whom people sign in with a browser.
type Provider struct {
	Issuer string
	Groups map[string][]string // what its groups claim may say, with the groups that this gives
}

// Providers returns those with whom people sign in, as a configuration names them.
func Providers(c config.Config) (all []Provider) {
	for _, p := range c.Server.SignIn {
		all = append(all, Provider{p.Issuer, p.Groups})
	}
	return all
}

// saidPrefix stands before each value of a groups claim in the row of a session, which once had
// the names of groups there: those give nothing.
const saidPrefix = "claim:"

func givenBy(said []string) (given []string) {
	for _, text := range said {
		given = append(given, saidPrefix+text)
	}
	return given
}

// providerOf returns the provider of the account that a session is signed in with; nil where
// the configuration has none any more, or where it is no account of a provider.
func (g *Guard) providerOf(row *browserRow) *Provider {
	all := g.now().providers
	i := slices.IndexFunc(all, func(p Provider) bool { return strings.HasPrefix(row.Asker, oidcPrefix+url.PathEscape(p.Issuer)+"/") })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// signsIn reports whether the configuration, as it is now, has what a session was signed in
// with: a provider that it no longer names signs no one in, before and after.
func (g *Guard) signsIn(row *browserRow) bool {
	return g.Divided || !strings.HasPrefix(row.Asker, oidcPrefix) || g.providerOf(row) != nil
}

// given returns the groups that the sign-in of a session gives, as the configuration maps them
// now. They are groups of the site: in another tenant they give nothing.
func (g *Guard) given(row *browserRow) []string {
	p := g.providerOf(row)
	if g.Divided || p == nil {
		return nil
	}
	var said []string
	for _, text := range row.Given {
		if value, is := strings.CutPrefix(text, saidPrefix); is {
			said = append(said, value)
		}
	}
	return groupsFor(said, p.Groups)
}
