package oauth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/internal/service/mount/oauth"
	"github.com/mortise-dev/mortise/plugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world is a server of tools and two authorization servers on loopback, each of which signs
// everyone in. Its fields are what it answers; a function gets how often it was asked before.
type world struct {
	tools, right, wrong *httptest.Server

	place  string                 // path of the metadata of the server of tools
	names  func(asked int) string // the authorization server that those metadata name
	issuer func(asked int) string // that the metadata of the right one name
	iss    func() string          // in its answers; "" for none
	claims bool                   // its metadata say that its answers have iss

	mu    sync.Mutex // guards the rest
	asked map[string]int
	posts []string // requests that may have a credential in them: server and path
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{place: "/about", asked: map[string]int{}}
	server := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true})
	w.right, w.wrong = w.authority("right"), w.authority("wrong")
	w.tools = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == w.place:
			answer(rw, map[string]any{"resource": w.tools.URL + "/mcp", "authorization_servers": []string{w.names(w.count("names"))}})
		case r.Header.Get("Authorization") != "Bearer the-token":
			rw.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+w.tools.URL+w.place+`"`)
			rw.WriteHeader(http.StatusUnauthorized)
		default:
			handler.ServeHTTP(rw, r)
		}
	}))
	w.names = func(int) string { return w.right.URL }
	w.issuer = func(int) string { return w.right.URL }
	w.iss = func() string { return "" }
	t.Cleanup(func() {
		for _, s := range []*httptest.Server{w.tools, w.right, w.wrong} {
			s.CloseClientConnections()
			s.Close()
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return w
}

// count returns how often a document was asked for before.
func (w *world) count(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[what]++
	return w.asked[what] - 1
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (w *world) authority(name string) *httptest.Server {
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.mu.Lock()
			w.posts = append(w.posts, name+r.URL.Path)
			w.mu.Unlock()
		}
		switch r.URL.Path {
		case "/.well-known/oauth-authorization-server":
			issuer := s.URL
			if name == "right" {
				issuer = w.issuer(w.count("issuer"))
			}
			answer(rw, map[string]any{
				"issuer": issuer, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "registration_endpoint": s.URL + "/register",
				"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": w.claims,
			})
		case "/register":
			rw.WriteHeader(http.StatusCreated)
			answer(rw, map[string]any{"client_id": "client", "token_endpoint_auth_method": "none"})
		case "/authorize":
			back := url.Values{"code": {"the-code"}, "state": {r.URL.Query().Get("state")}}
			if iss := w.iss(); iss != "" {
				back.Set("iss", iss)
			}
			http.Redirect(rw, r, r.URL.Query().Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
		case "/token":
			answer(rw, map[string]any{"access_token": "the-token", "token_type": "Bearer", "refresh_token": "the-refresh-token"})
		default:
			http.NotFound(rw, r)
		}
	}))
	return s
}

// signIn signs in, with a browser that follows every redirect. A person confirms the right
// authorization server alone.
func (w *world) signIn(t *testing.T, secret string) (g *oauth.Grant, confirmed []string, err error) {
	t.Helper()
	var browsing sync.WaitGroup
	s := oauth.SignIn{
		Plugin: "notes", URL: w.tools.URL + "/mcp", Client: oauth.Client("notes", egress.Grants{Loopback: []string{"notes"}}, nil),
		Hide: func(...string) error { return nil },
		Confirm: func(_ context.Context, issuer string) error {
			confirmed = append(confirmed, issuer)
			if issuer != w.right.URL {
				return plugin.Errorf(plugin.CodeCancelled, "no")
			}
			return nil
		},
		Open: func(address string) {
			browsing.Go(func() {
				if resp, err := http.Get(address); err == nil { //nolint:noctx // a browser
					_ = resp.Body.Close()
				}
			})
		},
	}
	if secret != "" {
		s.ClientID, s.ClientSecret = "client", secret
	}
	g, err = s.Run(t.Context())
	browsing.Wait()
	return g, confirmed, err
}

// TestTheConfirmedAuthorizationServerIsUsed: whatever the servers answer when they are asked once
// more, and wherever their documents are, what a person confirmed is the only authorization server
// that is asked anything; and one that turns out to be another gets no code and no secret.
func TestTheConfirmedAuthorizationServerIsUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world)
		fails  string // part of the error; "" for a sign-in that works
		posts  string // that were sent until then
	}{
		"all are what they were":             {func(*world) {}, "", "right/token"},
		"documents at the usual places":      {func(w *world) { w.place = "/.well-known/oauth-protected-resource/mcp" }, "", "right/token"},
		"the server names another one later": {func(w *world) { w.names = func(n int) string { return []string{w.right.URL, w.wrong.URL}[min(n, 1)] } }, "", "right/token"},
		"another one later, at the usual place": {func(w *world) {
			w.place = "/.well-known/oauth-protected-resource"
			w.names = func(n int) string { return []string{w.right.URL, w.wrong.URL}[min(n, 1)] }
		}, "", "right/token"},
		"the server names another one":        {func(w *world) { w.names = func(int) string { return w.wrong.URL } }, "no", ""},
		"the metadata are of another issuer":  {func(w *world) { w.issuer = func(int) string { return w.wrong.URL } }, "issuer", ""},
		"of another issuer later":             {func(w *world) { w.issuer = func(n int) string { return []string{w.right.URL, w.wrong.URL}[min(n, 1)] } }, "", "right/token"},
		"the code is of another issuer":       {func(w *world) { w.iss = func() string { return w.wrong.URL } }, "calls itself", ""},
		"the code names no issuer":            {func(w *world) { w.claims = true }, "does not say", ""},
		"the code names the right issuer":     {func(w *world) { w.claims, w.iss = true, func() string { return w.right.URL } }, "", "right/token"},
		"it does without a word of it before": {func(w *world) { w.iss = func() string { return w.right.URL } }, "", "right/token"},
	} {
		for _, secret := range []string{"", "the-secret-of-the-client"} {
			t.Run(fmt.Sprintf("%s, registered before: %t", name, secret != ""), func(t *testing.T) {
				w := newWorld(t)
				if c.change(w); w.place == "/.well-known/oauth-protected-resource" {
					w.tools.Config.Handler = rooted(w)
				}
				g, confirmed, err := w.signIn(t, secret)
				switch {
				case c.fails == "" && (err != nil || g.Issuer != w.right.URL || g.Token != w.right.URL+"/token" || g.Access != "the-token"):
					t.Fatalf("signed in as %+v, %v; want by %s", g, err, w.right.URL)
				case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
					t.Errorf("signed in as %+v, or refused with %v; want an error with %q", g, err, c.fails)
				}
				if len(confirmed) != 1 {
					t.Errorf("a person was asked about %q, want once", confirmed)
				}
				posts := slices.DeleteFunc(w.posts, func(p string) bool { return p == "right/register" })
				if got := strings.Join(posts, " "); got != c.posts {
					t.Errorf("requests with a code or a secret went to %q, want %q", got, c.posts)
				}
			})
		}
	}
}

// rooted gives the server of tools no address for its metadata, which are at the root alone and so
// are of its origin.
func rooted(w *world) http.Handler {
	next := w.tools.Config.Handler
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == w.place:
			answer(rw, map[string]any{"resource": w.tools.URL, "authorization_servers": []string{w.names(w.count("names"))}})
		case r.Header.Get("Authorization") == "" && r.URL.Path == "/mcp":
			rw.WriteHeader(http.StatusUnauthorized)
		case strings.HasPrefix(r.URL.Path, "/.well-known/"):
			http.NotFound(rw, r)
		default:
			next.ServeHTTP(rw, r)
		}
	})
}
