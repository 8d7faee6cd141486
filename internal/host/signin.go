package host

import (
	"context"
	"net/http"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/service/mount/oauth"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// SignInsPlugin is for whom it is kept what signing in to mounted servers resulted in: secrets
// of the system, each under the name of its plugin.
const SignInsPlugin = oauth.SecretOwner

// A ServerSignIn signs a person in to a mounted server, in a browser on the machine of the process.
type ServerSignIn = oauth.SignIn

// SignInClient returns the client of a sign-in to the server of a plugin, under the rules of
// egress that the configuration has.
func SignInClient(name string, c *config.Config) (*http.Client, error) {
	roots, err := c.Egress.Roots()
	if err != nil {
		return nil, err
	}
	return oauth.Client(name, c.Egress, roots), nil
}

// IsScope reports whether a text has the form of a scope.
func IsScope(text string) bool { return oauth.IsScope(text) }

// SignInTo returns the place of what signing in to the server of a plugin resulted in.
func SignInTo(name string) SecretPlace {
	return SecretPlace{Name: name, Plugin: SignInsPlugin, System: true}
}

// ClientSecret returns a secret of the system that a plugin's server has as the secret of its
// client: for a sign-in that this process makes, by a principal with the right to configure
// secrets.
func (s Secrets) ClientSecret(ctx context.Context, of, name string) (string, error) {
	if err := s.may(ctx, "read for a sign-in", name); err != nil {
		return "", err
	}
	value, found, err := s.vault.Find(ctx, secret.Need{Tenant: s.g.Tenant, Plugin: of, Name: name, Scope: plugin.SecretOfSystem})
	if err == nil && !found {
		err = plugin.Errorf(plugin.CodeMissingSecrets, "the secret %s, which its authorization server takes, is not set; 'mortise secrets set %s --system --plugin %s' sets it", name, name, of)
	}
	return value, err
}

// checkSignIn refuses what is no result of a sign-in, and one of another authorization server
// than the one before: a person ends that one first.
func (s Secrets) checkSignIn(ctx context.Context, n secretName, value string) error {
	g, err := oauth.Parse(value)
	if err != nil {
		return err
	}
	if err := s.vault.Learn(g.Hidden()...); err != nil {
		return err
	}
	text, found, err := s.vault.Find(ctx, secret.Need{Tenant: n.Tenant, Plugin: n.Owner, Name: n.Name, Scope: secret.Own})
	if err != nil || !found {
		return err
	}
	before, err := oauth.Parse(text)
	if err != nil || before.Issuer == g.Issuer {
		return nil // what cannot be read is replaced
	}
	return plugin.Errorf(plugin.CodeConflict, "%s was signed in by %.200s, and now its server names %.200s: if that is right, 'mortise mcp sign-out %s' first", n.Name, before.Issuer, g.Issuer, n.Name)
}
