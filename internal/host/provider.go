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

// saidPrefix begins each value of a groups claim in the row of a session. Earlier releases stored
// names of groups in this column. Those have no prefix and are ignored.
const saidPrefix = "claim:"

func givenBy(said []string) (given []string) {
	for _, text := range said {
		given = append(given, saidPrefix+text)
	}
	return given
}

// providerOf returns the provider that signed a session in. It is nil if the configuration does not
// name that provider any more, or if the session was not begun by a provider.
func (g *Guard) providerOf(row *browserRow) *Provider {
	all := g.now().providers
	i := slices.IndexFunc(all, func(p Provider) bool { return strings.HasPrefix(row.Asker, oidcPrefix+url.PathEscape(p.Issuer)+"/") })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// signsIn reports whether a session may continue: the current configuration must name its provider.
func (g *Guard) signsIn(row *browserRow) bool {
	return g.Divided || !strings.HasPrefix(row.Asker, oidcPrefix) || g.providerOf(row) != nil
}

// given returns the groups of a session's sign-in, mapped by the current configuration. They are
// groups of the site, so a session of another tenant has none.
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
