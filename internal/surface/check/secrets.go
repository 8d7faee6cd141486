package check

import (
	"fmt"
	keys "maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// missing returns the secrets that an operation cannot do without, by its manifest, and that the
// options give no value of, sorted. op may be nil.
func (c *checker) missing(m *plugin.Manifest, op *plugin.Operation) []string {
	needed := map[string]bool{}
	for _, in := range m.HTTP.Inject {
		needed[in.Secret] = needed[in.Secret] || !in.Optional
	}
	for _, variable := range m.Runner.Env {
		needed[variable.Secret] = true
	}
	if op != nil {
		for name, need := range op.Secrets {
			needed[name] = needed[name] || !need.Optional
		}
	}
	delete(needed, "")
	return slices.DeleteFunc(slices.Sorted(keys.Keys(needed)), func(name string) bool {
		_, given := c.options.Secrets[name]
		return given || !needed[name]
	})
}

// unset says that a check stopped for want of secrets, and what gives them.
func unset(names []string, err error) string {
	return fmt.Sprintf("it needs the secret %s, and a check has none of yours: --secret %s takes the value of the environment variable of that name (%s)",
		strings.Join(names, ", "), names[0], messageOf(err))
}
