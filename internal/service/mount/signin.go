package mount

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mortise-dev/mortise/internal/service/mount/oauth"
	"github.com/mortise-dev/mortise/plugin"
)

// renewTime is the deadline of a renewal, for all calls that wait for it.
const renewTime = 30 * time.Second

// Grants keep what signing in to the servers of plugins resulted in, as [oauth.Parse] reads it.
type Grants interface {
	Grant(ctx context.Context, tenant, plugin string) (text string, found bool, err error)

	// Keep keeps one in place of was, unless that was removed or replaced meanwhile.
	Keep(ctx context.Context, tenant, plugin, was, text string) (kept bool, err error)

	// Hide has values taken out of everything that the host says from then on.
	Hide(values ...string) error

	// Lock makes the caller the only one who renews a grant, among all hosts of the data.
	Lock(ctx context.Context, tenant, plugin string) (release func(), err error)
}

// signIn says that a person has to sign in.
func (s *server) signIn(why string) error {
	return s.unsignedBy(plugin.Errorf(plugin.CodeUnavailable, "%s; sign in: mortise mcp sign-in %s", why, s.manifest.Name))
}

// unsignedBy keeps why someone has to sign in.
func (s *server) unsignedBy(err *plugin.Error) error {
	s.unsigned.Store(err)
	return err
}

// grant returns what signing in to the server resulted in, if that is of use.
func (s *server) grant(ctx context.Context) (*oauth.Grant, error) {
	grants := s.runner.opts.Grants
	if grants == nil {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "this host signs no one in to servers")
	}
	text, found, err := grants.Grant(ctx, s.tenant, s.manifest.Name)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, s.signIn("its server takes a token of who signed in, and no one did")
	}
	g, err := oauth.Parse(text)
	switch {
	case err != nil:
		return nil, s.signIn("what is kept of a sign-in cannot be read")
	case g.URL != s.manifest.Runner.URL:
		return nil, s.signIn("the token that is kept is for the server at " + clip(g.URL, 200))
	case g.Gone != "":
		return nil, s.signIn(g.Gone)
	}
	return g, grants.Hide(g.Hidden()...)
}

// token returns a token for the server, renewed where that is due or the server refused the one
// before. One caller at a time renews; the others use what came of it.
func (s *server) token(ctx context.Context, refused string) (*oauth.Grant, error) {
	g, err := s.grant(ctx)
	if err != nil || !g.Due(refused) {
		return g, err
	}
	release, err := s.runner.opts.Grants.Lock(ctx, s.tenant, s.manifest.Name)
	if err != nil {
		return nil, err
	}
	defer release()
	if g, err = s.grant(ctx); err != nil || !g.Due(refused) { // another call may have renewed it
		return g, err
	}
	// An authorization server that gives out another refresh token has taken the old one back:
	// what was begun is brought to its end for the calls to come.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	defer cancel()
	return s.renew(ctx, g)
}

// renew renews a grant and keeps what came of it. The caller has the lock.
func (s *server) renew(ctx context.Context, g *oauth.Grant) (*oauth.Grant, error) {
	var known string
	if name := s.manifest.Runner.OAuth.ClientSecret; name != "" {
		var err error
		if known, err = s.secret(ctx, name); err != nil {
			return nil, err
		}
	}
	client := oauth.Client(s.manifest.Name, s.runner.opts.Egress, s.runner.opts.Roots)
	next, err := oauth.Refresh(ctx, client, *g, known)
	if err != nil {
		return nil, err
	}
	grants := s.runner.opts.Grants
	if err := grants.Hide(next.Hidden()...); err != nil {
		return nil, err
	}
	was, err := g.Text()
	var text string
	if err == nil {
		text, err = next.Text()
	}
	var kept bool
	if err == nil {
		kept, err = grants.Keep(ctx, s.tenant, s.manifest.Name, was, text)
	}
	if err != nil {
		s.runner.opts.Log.Error("a token for a mounted server was renewed and could not be kept", "plugin", s.manifest.Name, "cause", err.Error())
		return nil, plugin.Errorf(plugin.CodeUnavailable, "the token for its server was renewed and could not be kept: %w", err)
	}
	switch {
	case !kept: // someone signed out meanwhile, or in again
		return s.grant(ctx)
	case next.Gone != "":
		return nil, s.signIn(next.Gone)
	}
	return &next, nil
}

// signed sends a request with a token, and once more with another one where the server refuses
// that. A request that a server refuses so was not carried out.
func (o *outgoing) signed(req *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	s := o.server
	if req.URL.Scheme != "https" && !o.inside(req.URL) {
		return nil, &fate{plugin.Errorf(plugin.CodeEgressDenied, "a token for %s is sent over https alone, or to a host that an administrator mapped", req.URL.Host), false}
	}
	refused := ""
	for {
		g, err := s.token(req.Context(), refused)
		if err != nil {
			return nil, &fate{err, false}
		}
		req.Header.Set("Authorization", "Bearer "+g.Access)
		resp, err := send(req)
		if err != nil {
			return nil, err
		}
		scopes, lacking := wanted(resp)
		switch {
		case resp.StatusCode == http.StatusUnauthorized && refused == "" && g.Refresh != "" && (req.Body == nil || req.GetBody != nil):
			_ = resp.Body.Close()
			refused = g.Access
			if req.GetBody != nil {
				if req.Body, err = req.GetBody(); err != nil {
					return nil, &fate{err, false}
				}
			}
			continue
		case resp.StatusCode == http.StatusUnauthorized:
			_ = resp.Body.Close()
			return nil, &fate{s.signIn("its server no longer takes the token"), false}
		case lacking:
			_ = resp.Body.Close()
			all := slices.Concat(g.Scopes, scopes)
			slices.Sort(all)
			why := "its server wants more than the token is for: " + clip(strings.Join(scopes, " "), 500)
			return nil, &fate{s.unsignedBy(plugin.Errorf(plugin.CodeUnavailable, "%s; sign in: mortise mcp sign-in %s --scopes '%s'", why, s.manifest.Name, clip(strings.Join(slices.Compact(all), " "), maxMessage/2))), false}
		}
		return resp, nil
	}
}

// wanted returns the scopes that a server asks for in place of an answer (RFC 6750, 3.1).
func wanted(resp *http.Response) (scopes []string, lacking bool) {
	if resp.StatusCode != http.StatusForbidden {
		return nil, false
	}
	challenges, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil, false
	}
	for _, c := range challenges {
		if c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope" {
			return slices.DeleteFunc(strings.Fields(c.Params["scope"]), func(scope string) bool { return !oauth.IsScope(scope) }), true
		}
	}
	return nil, false
}
