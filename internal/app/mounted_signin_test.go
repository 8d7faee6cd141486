package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/internal/service/mount/oauth"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// An authority is an authorization server that gives out another refresh token at each renewal,
// and in front of a server of tools the check of its tokens.
type authority struct {
	*httptest.Server
	tools *toolServer
	mcp   *httptest.Server

	asked, renewed atomic.Int32

	mu      sync.Mutex
	n       int
	issued  []string        // every token and refresh token that there ever was
	access  map[string]bool // tokens that are good
	refresh string          // the one refresh token that is good; "" for none
	expires int             // seconds, of the next token
	lacks   string          // the scope that the server asks for in place of answering
	name    string          // the issuer that the server names, where it is another
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	s := &authority{tools: newToolServer(t, false), access: map[string]bool{}, expires: 3600}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "registration_endpoint": s.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
		})
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		answer(w, map[string]any{"client_id": "client-1", "token_endpoint_auth_method": "none", "redirect_uris": []string{"http://127.0.0.1/callback"}})
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("code_challenge_method") != "S256" || q.Get("resource") != s.mcp.URL+"/mcp" {
			t.Errorf("the page was asked for with %v", q)
		}
		http.Redirect(w, r, q.Get("redirect_uri")+"?code=the-code&state="+q.Get("state"), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.FormValue("resource") != s.mcp.URL+"/mcp" || r.FormValue("client_id") != "client-1" {
			t.Errorf("a token was asked for with %v", r.Form)
		}
		if r.FormValue("grant_type") == "refresh_token" {
			s.renewed.Add(1)
			if s.refresh == "" || r.FormValue("refresh_token") != s.refresh {
				w.WriteHeader(http.StatusBadRequest)
				answer(w, map[string]any{"error": "invalid_grant", "error_description": "it was " + r.FormValue("refresh_token")})
				return
			}
		}
		s.n++
		token := fmt.Sprintf("access-token-number-%d-of-it", s.n)
		s.refresh = fmt.Sprintf("refresh-token-number-%d-of-it", s.n)
		s.access[token] = true
		s.issued = append(s.issued, token, s.refresh)
		answer(w, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": s.expires, "refresh_token": s.refresh})
		s.expires = 3600
	})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.asked.Add(1); mux.ServeHTTP(w, r) }))
	s.mcp = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		name, good, lacks := s.name, s.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")], s.lacks
		s.mu.Unlock()
		if name == "" {
			name = s.URL
		}
		switch {
		case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource"):
			answer(w, map[string]any{"resource": s.mcp.URL + "/mcp", "authorization_servers": []string{name}, "scopes_supported": []string{"notes:read"}})
		case !good:
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.mcp.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
		case lacks != "" && r.Header.Get("Mcp-Method") == "tools/call":
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+lacks+`"`)
			w.WriteHeader(http.StatusForbidden)
		default:
			s.tools.Config.Handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { s.mcp.CloseClientConnections(); s.mcp.Close(); s.Close() })
	return s
}

// with changes what the servers do.
func (s *authority) with(do func()) { s.mu.Lock(); defer s.mu.Unlock(); do() }

// revoke takes back what was given out: the tokens, and the refresh token too where all is true.
func (s *authority) revoke(all bool) {
	s.with(func() {
		s.access = map[string]bool{}
		if all {
			s.refresh = ""
		}
	})
}

// signIn signs in, with a browser that the authorization server sends back at once.
func (s *authority) signIn(t *testing.T, name string, confirm func(issuer string) error) (*oauth.Grant, error) {
	t.Helper()
	client := oauth.Client(name, egress.Grants{Loopback: []string{"notes", "other"}}, nil)
	return oauth.SignIn{
		Plugin: name, URL: s.mcp.URL + "/mcp", Client: client, Hide: func(...string) error { return nil },
		Confirm: func(_ context.Context, issuer string) error { return confirm(issuer) },
		Open: func(address string) {
			go func() {
				if resp, err := http.Get(address); err == nil { //nolint:noctx // a browser
					_ = resp.Body.Close()
				}
			}()
		},
	}.Run(t.Context())
}

// keep signs in to notes and has the host keep it.
func (s *authority) keep(t *testing.T, a *app.App, name string) *oauth.Grant {
	t.Helper()
	g, err := s.signIn(t, name, func(issuer string) error {
		if issuer != s.URL {
			t.Errorf("a person is asked about %s", issuer)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := keepGrant(t, a, name, *g); err != nil {
		t.Fatal(err)
	}
	return g
}

func keepGrant(t *testing.T, a *app.App, name string, g oauth.Grant) error {
	t.Helper()
	text, err := g.Text()
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.As(a.Principal).Secrets().Set(t.Context(), host.SignInTo(name), text)
	return err
}

func (s *authority) manifest(name string) string {
	return fmt.Sprintf("name: %s\nversion: 1.0.0\nowner: test\ndescription: Notes.\nrunner: {kind: mcp, url: %q, oauth: {}}\n", name, s.mcp.URL+"/mcp")
}

// Someone signs in to a server once; the calls of its plugin have the token, and nothing that
// the host says or keeps in the clear has.
func TestASignInToAMountedServer(t *testing.T) {
	t.Parallel()
	s := newAuthority(t)
	a := mountHome(t)
	refusedMount(t, a, s.manifest("notes"), "sign in: mortise mcp sign-in notes")
	s.keep(t, a, "notes")
	mount(t, a, s.manifest("notes"))
	s.tools.answer = func(_ context.Context, call *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: call.Extra.Header.Get("Authorization")}}}, nil
	}
	res, err := call(t, a, "notes/write", "{}")
	if err != nil || !strings.Contains(string(res.Data), "Bearer ") || strings.Contains(string(res.Data), "access-token") {
		t.Errorf("it returned %s, %v", res.Data, err)
	}
	// The same server mounted under another name has no part in it.
	refusedMount(t, a, s.manifest("other"), "sign in: mortise mcp sign-in other")
	// Neither a manifest nor a person reaches what is kept by its name.
	if infos, err := a.As(a.Principal).Secrets().List(t.Context()); err != nil || strings.Contains(fmt.Sprint(infos), ":mounts") {
		t.Errorf("the secrets are %v, %v", infos, err)
	}
	if _, err := a.As(a.Principal).Secrets().Set(t.Context(), host.SignInTo("notes"), "x"); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("a text that is no sign-in was kept: %v", err)
	}
	set := 0
	for e, err := range a.Store.Entries(t.Context(), store.EntryFilter{Tenant: "local"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == plugin.EntrySecretSet && strings.Contains(string(e.Body), ":mounts") {
			set++
		}
	}
	if set != 1 {
		t.Errorf("the ledger has %d entries of the sign-in", set)
	}
	if _, err := a.As(a.Principal).Secrets().Delete(t.Context(), host.SignInTo("notes")); err != nil {
		t.Error(err)
	}
	if _, err := call(t, a, "notes/write", "{}"); plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), "mortise mcp sign-in notes") {
		t.Errorf("a call after the sign-out: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	err = filepath.WalkDir(a.Home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, token := range s.issued {
			if strings.Contains(string(text), token) {
				t.Errorf("%s has a token", path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A token is renewed once for all calls that wait for it, and what came of it is kept before it
// is used; one that the server refuses is renewed too, and what cannot be renewed is said.
func TestTheTokenOfAMountedServerIsRenewed(t *testing.T) {
	t.Parallel()
	s := newAuthority(t)
	a := mountHome(t)
	s.with(func() { s.expires = 1 })
	s.keep(t, a, "notes")
	mount(t, a, s.manifest("notes"))
	if n := s.renewed.Load(); n != 1 {
		t.Errorf("a token that ends at once was renewed %d times", n)
	}
	s.revoke(false) // the tokens, and not what renews them
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := call(t, a, "notes/write", "{}"); err != nil {
				t.Errorf("a call with a token that the server refuses: %v", err)
			}
		})
	}
	all.Wait()
	if renewed, called := s.renewed.Load(), s.tools.calls.Load(); renewed != 2 || called != 8 {
		t.Errorf("8 calls renewed the token %d times, and called the server %d times", renewed-1, called)
	}
	s.with(func() { s.lacks = "notes:write" })
	if _, err := call(t, a, "notes/write", "{}"); plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), "--scopes 'notes:read notes:write'") {
		t.Errorf("a call that needs another scope: %v", err)
	}
	s.with(func() { s.lacks = "" })
	s.revoke(true)
	for i := range 2 {
		_, err := call(t, a, "notes/write", "{}")
		if plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), "sign in: mortise mcp sign-in notes") || strings.Contains(err.Error(), "-token-number-") {
			t.Errorf("call %d after all was taken back: %v", i, err)
		}
	}
	if renewed, called := s.renewed.Load(), s.tools.calls.Load(); renewed != 3 || called != 8 {
		t.Errorf("what is of no use was renewed %d times; the server was called %d times", renewed-2, called)
	}
	s.keep(t, a, "notes")
	// A renewal that ends once someone signed out, or in again, brings nothing back.
	name := store.SecretName{Tenant: "local", Owner: oauth.SecretOwner, Scope: "system", Name: "notes"}
	if kept, err := a.Vault.Replace(t.Context(), name, "an earlier one", "another", secret.By{Principal: "mortise"}); kept || err != nil {
		t.Errorf("what was kept meanwhile was replaced: %t, %v", kept, err)
	}
	name.Name = "none"
	if kept, err := a.Vault.Replace(t.Context(), name, "an earlier one", "another", secret.By{Principal: "mortise"}); kept || err != nil {
		t.Errorf("what was removed meanwhile is there again: %t, %v", kept, err)
	}
	if _, err := call(t, a, "notes/write", "{}"); err != nil {
		t.Errorf("a call once someone signed in again: %v", err)
	}
}

// Who signs in says by whom, and what was said holds; nothing is asked of an authorization
// server before, nor of one at an address that the plugin may not reach.
func TestTheAuthorizationServerOfAMountedServer(t *testing.T) {
	t.Parallel()
	s := newAuthority(t)
	a := mountHome(t)
	yes := func(string) error { return nil }
	no := plugin.Errorf(plugin.CodeCancelled, "no")
	if _, err := s.signIn(t, "notes", func(string) error { return no }); plugin.CodeOf(err) != plugin.CodeCancelled || s.asked.Load() != 0 {
		t.Errorf("one that was not confirmed was asked %d times: %v", s.asked.Load(), err)
	}
	if _, err := s.signIn(t, "ungranted", yes); plugin.CodeOf(err) != plugin.CodeEgressDenied {
		t.Errorf("a plugin that may not reach this machine: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waiting := oauth.SignIn{
		Plugin: "notes", URL: s.mcp.URL + "/mcp", Client: oauth.Client("notes", egress.Grants{Loopback: []string{"notes"}}, nil),
		Confirm: func(context.Context, string) error { return nil }, Open: func(string) { cancel() }, Hide: func(...string) error { return nil },
	}
	if _, err := waiting.Run(ctx); plugin.CodeOf(err) != plugin.CodeCancelled {
		t.Errorf("a person who gives up: %v", err)
	}
	g := *s.keep(t, a, "notes")
	mount(t, a, s.manifest("notes"))
	changed := g
	changed.Issuer = "https://evil.example.com"
	if err := keepGrant(t, a, "notes", changed); plugin.CodeOf(err) != plugin.CodeConflict || !strings.Contains(err.Error(), "mortise mcp sign-out notes") {
		t.Errorf("another authorization server: %v", err)
	}
	elsewhere := g
	elsewhere.URL = "https://elsewhere.example.com/mcp"
	if err := keepGrant(t, a, "notes", elsewhere); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, a, "notes/write", "{}"); plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), "elsewhere.example.com") {
		t.Errorf("a token for another address: %v", err)
	}

	for _, issuer := range []string{"https://169.254.169.254", "http://login.example.com"} {
		s.with(func() { s.name = issuer })
		if g, err := s.signIn(t, "notes", yes); plugin.CodeOf(err) != plugin.CodeUnavailable {
			t.Errorf("%s: %+v, %v", issuer, g, err)
		}
	}
	for name, handle := range map[string]http.HandlerFunc{
		"one that sends elsewhere": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, s.URL+r.URL.Path, http.StatusFound) },
		"one that says too much": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"issuer":"`+strings.Repeat("x", 2<<20)+`"}`)
		},
	} {
		other := httptest.NewServer(handle)
		s.with(func() { s.name = other.URL })
		if g, err := s.signIn(t, "notes", yes); err == nil {
			t.Errorf("%s signed someone in: %s", name, g.Issuer)
		}
		other.Close()
	}
}

// What a manifest cannot say of signing in.
func TestManifestsOfServersThatSignIn(t *testing.T) {
	t.Parallel()
	a := mountHome(t)
	for runner, want := range map[string]string{
		"{kind: mcp, command: [sh], oauth: {}}":                                                                                               "to no command",
		"{kind: mcp, url: 'https://mcp.example.com', oauth: {client_secret: {secret: X}}}":                                                    "give its client_id",
		"{kind: mcp, url: 'https://mcp.example.com', oauth: {client_id: 'http://x.example.com/c'}}":                                           "https address",
		"{kind: mcp, url: 'https://mcp.example.com', oauth: {scopes: [\"a'b\"]}}":                                                             "no scope",
		"{kind: mcp, url: 'https://mcp.example.com', oauth: {token: x}}":                                                                      "token",
		"{kind: webhook, url: 'https://mcp.example.com', secret: x, oauth: {}}":                                                               "oauth",
		"{kind: mcp, url: 'https://mcp.example.com', oauth: {}}\nhttp: {inject: [{host: mcp.example.com, header: authorization, secret: X}]}": "gets its token in Authorization",
	} {
		dir := t.TempDir()
		write(t, dir, "manifest.yaml", "name: notes\nversion: 1.0.0\nowner: test\ndescription: Notes.\nrunner: "+runner+"\n")
		_, err := a.Registry.Register(t.Context(), dir, registry.RegisterOptions{Enable: true})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", runner, err)
		}
	}
}
