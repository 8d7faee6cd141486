package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/editor"
	"github.com/mortise-dev/mortise/plugin"
)

// signInCommand is what a person runs for a server that wants them to sign in.
const signInCommand = "sign in: mortise mcp sign-in "

// A SigningIn is how someone signs in to a mounted server, in a browser on this machine. All
// fields but Config, Dir, Issuer and Scopes are required.
type SigningIn struct {
	Plugin string
	Home   string   // the data directory
	Config string   // the configuration file, where the caller named one
	Dir    string   // where the manifest is of a plugin that is not registered; mounts/NAME in the data directory where it is ""
	Issuer string   // the authorization server that the server has to name; Confirm is asked about any other where it is ""
	Scopes []string // in place of those of the manifest

	Confirm func(ctx context.Context, issuer string) error
	Open    func(address string)
	Hide    func(values ...string) error
}

// SignedIn is what came of signing in.
type SignedIn struct {
	Plugin string   `json:"plugin"`
	URL    string   `json:"url"`
	Issuer string   `json:"issuer"`
	Scopes []string `json:"scopes"`
	State  string   `json:"state"` // of the plugin, which is registered now
	Tools  int      `json:"tools"`
}

// Run signs in, keeps what came of it with the host, and registers the plugin where it was not.
func (s SigningIn) Run(ctx context.Context, h Host) (SignedIn, error) {
	shown, err := h.Plugins().Show(ctx, s.Plugin)
	registered := err == nil
	if err != nil && plugin.CodeOf(err) != plugin.CodeNotFound {
		return SignedIn{}, err
	}
	url, o := "", (*plugin.OAuth)(nil)
	if registered {
		r := shown.Manifest.Runner
		url, o = r.URL, r.OAuth
	} else if url, o, err = s.manifest(); err != nil {
		return SignedIn{}, err
	}
	if url == "" || o == nil {
		return SignedIn{}, plugin.Errorf(plugin.CodeInvalidInput, "%s mounts no server that someone signs in to: its manifest says runner: {kind: mcp, url: ..., oauth: {}}", s.Plugin)
	}
	conf, _, err := setup.ReadConfig(s.Home, s.Config)
	if err != nil {
		return SignedIn{}, err
	}
	asks, err := host.SignInClient(s.Plugin, &conf)
	if err != nil {
		return SignedIn{}, &setup.Error{Err: err}
	}
	flow := host.ServerSignIn{
		Plugin: s.Plugin, URL: url, Client: asks, ClientID: o.ClientID, Scopes: o.Scopes,
		Confirm: s.confirm, Open: s.Open, Hide: s.Hide,
	}
	if len(s.Scopes) > 0 {
		flow.Scopes = s.Scopes
	}
	if i := slices.IndexFunc(flow.Scopes, func(scope string) bool { return !host.IsScope(scope) }); i >= 0 {
		return SignedIn{}, plugin.Errorf(plugin.CodeInvalidInput, "%.200q is no scope", flow.Scopes[i])
	}
	if o.ClientSecret != "" {
		if flow.ClientSecret, err = clientSecret(ctx, h, s.Plugin, o.ClientSecret); err != nil {
			return SignedIn{}, err
		}
	}
	g, err := flow.Run(ctx)
	if err != nil {
		return SignedIn{}, err
	}
	text, err := g.Text()
	if err != nil {
		return SignedIn{}, err
	}
	if _, err := h.Secrets().Set(ctx, host.SignInTo(s.Plugin), text); err != nil {
		return SignedIn{}, err
	}
	done := SignedIn{Plugin: s.Plugin, URL: url, Issuer: g.Issuer, Scopes: append([]string{}, g.Scopes...)}
	if registered {
		done.State, done.Tools = string(shown.State), len(shown.Operations)
		return done, nil
	}
	one := Mounted{Plugin: s.Plugin, Dir: s.dir()}
	_, err = one.register(ctx, h, true)
	done.State, done.Tools = one.State, one.Tools
	return done, err
}

// confirm asks about an authorization server, unless the caller named one.
func (s SigningIn) confirm(ctx context.Context, issuer string) error {
	switch s.Issuer {
	case "":
		return s.Confirm(ctx, issuer)
	case issuer:
		return nil
	}
	return plugin.Errorf(plugin.CodeConflict, "the server of %s names the authorization server %.200s, and not %.200s", s.Plugin, issuer, s.Issuer)
}

func (s SigningIn) dir() string {
	if s.Dir != "" {
		return s.Dir
	}
	home, err := filepath.Abs(s.Home)
	if err != nil {
		home = s.Home
	}
	return filepath.Join(home, "mounts", s.Plugin)
}

// manifest reads how someone signs in to the server of a plugin that is not registered.
func (s SigningIn) manifest() (string, *plugin.OAuth, error) {
	file := filepath.Join(s.dir(), "manifest.yaml")
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, plugin.Errorf(plugin.CodeNotFound, "no plugin is called %.200s, and there is no %s; 'mortise mcp mount %s --url URL --oauth' makes one", s.Plugin, file, s.Plugin)
	}
	if err != nil {
		return "", nil, err
	}
	m, err := editor.ReadSignedIn(raw)
	if err != nil {
		return "", nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", file, err)
	}
	if m.Name != s.Plugin {
		return "", nil, plugin.Errorf(plugin.CodeInvalidInput, "%s is the manifest of %.200s, and not of %s", file, m.Name, s.Plugin)
	}
	if m.Runner.OAuth == nil {
		return m.Runner.URL, nil, nil
	}
	return m.Runner.URL, &plugin.OAuth{ClientID: m.Runner.OAuth.ClientID, ClientSecret: m.Runner.OAuth.ClientSecret.Secret, Scopes: m.Runner.OAuth.Scopes}, nil
}

// clientSecret returns the secret of a client that was registered beforehand, which no host
// gives to another process.
func clientSecret(ctx context.Context, h Host, of, name string) (string, error) {
	e, here := h.(embedded)
	if !here {
		return "", plugin.Errorf(plugin.CodeInvalidInput, "the secret %s of the client is given to no other process: add --embedded, and the host that serves uses what came of it", name)
	}
	return e.API.Secrets().ClientSecret(ctx, of, name)
}

// SignOut takes away what signing in to the server of a plugin resulted in.
func SignOut(ctx context.Context, h Host, name string) error {
	_, err := h.Secrets().Delete(ctx, host.SignInTo(name))
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		return plugin.Errorf(plugin.CodeNotFound, "no one is signed in to the server of %.200s", name)
	}
	return err
}

// String says what came of it in a line.
func (s SignedIn) String() string {
	return fmt.Sprintf("%s is signed in by %s; it is %s with %d tools", s.Plugin, s.Issuer, s.State, s.Tools)
}
