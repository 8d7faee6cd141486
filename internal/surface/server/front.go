package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/clientaddr"
	"github.com/mortise-dev/mortise/internal/base/ratelimit"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/reload"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/console"
	"github.com/mortise-dev/mortise/internal/surface/machine"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/internal/surface/signin"
	"github.com/mortise-dev/mortise/plugin"
)

// A front is how one host is reached: what of that the configuration says may change while
// requests are answered, and each request sees one value of it.
type front struct {
	app     *app.App
	rates   *ratelimit.Limiter[string]         // of the requests of each token
	known   []*host.Authenticator              // of the handlers
	cert    *Certificate                       // nil where nothing is encrypted
	names   atomic.Pointer[[]string]           // by which a proxy passes requests on
	in      atomic.Pointer[signin.Server]      // nil where no one signs in
	signs   atomic.Pointer[machine.Verifier]   // of tokens that providers signed
	proxies atomic.Pointer[clientaddr.Proxies] // whose word about the address of a client is taken
	at      net.Addr                           // of the listener; nil where there is none
	first   *signin.Setup
	back    *background // nil where the host serves until it is told not to
}

func newFront(a *app.App) (*front, error) {
	c := a.Now().Server
	signs, err := machines(c)
	if err != nil {
		return nil, &setup.Error{Err: fmt.Errorf("server: %w", err)}
	}
	f := &front{app: a, rates: rest.Rates(c.Rate, c.Burst)}
	proxies, err := c.Proxies()
	if err != nil {
		return nil, &setup.Error{Err: err}
	}
	names := c.Names()
	f.names.Store(&names)
	f.signs.Store(signs)
	f.proxies.Store(&proxies)
	return f, nil
}

// address returns the address of the client that sent a request.
func (f *front) address(r *http.Request) string { return f.proxies.Load().Of(r) }

// machines returns what verifies the tokens of programs that a configuration knows.
func machines(c config.Server) (*machine.Verifier, error) {
	var issuers []machine.Issuer
	for _, m := range c.Machines {
		one := machine.Issuer{Issuer: m.Issuer, Algorithms: m.Algorithms, MaxLife: time.Duration(m.MaxLife), GroupsClaim: m.GroupsClaim, Groups: m.Groups}
		for _, rule := range m.Allow {
			one.Rules = append(one.Rules, machine.Rule(rule))
		}
		issuers = append(issuers, one)
	}
	return machine.New(c.Base(""), issuers)
}

// public is what answers requests to a listener.
func (f *front) public(ctx context.Context, at net.Addr, first *signin.Setup) (http.Handler, error) {
	f.at, f.first = at, first
	people, err := f.people(f.app.Now().Server)
	if err != nil {
		return nil, &setup.Error{Err: fmt.Errorf("server: %w", err)}
	}
	f.in.Store(people)
	identify := func(r *http.Request) (c host.Caller, known bool, err error) {
		if s := f.in.Load(); s != nil {
			return s.Caller(r)
		}
		return c, false, nil
	}
	return f.answers(ctx, identify, func() http.Handler {
		if s := f.in.Load(); s != nil {
			return s
		}
		return nil
	}), nil
}

// owner is what answers requests that come over the socket of [ListenOwner]: who presents
// no token there is the owner, or acts on behalf of whom the owner names.
func (f *front) owner(ctx context.Context) http.Handler {
	api := f.answers(ctx, func(r *http.Request) (host.Caller, bool, error) {
		c, err := f.atSocket(r)
		return c, true, err
	}, nil)
	if f.back != nil {
		return f.back.answers(api)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.EscapedPath(); {
		case path == reloadPath:
			f.answerReload(w, r)
		case path == linkPath && f.first != nil:
			f.answerLink(w, r)
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// atSocket returns who asks on the owner's socket: the owner, or whom the owner acts for.
func (f *front) atSocket(r *http.Request) (host.Caller, error) {
	as := r.Header.Values(rest.AsHeader)
	if len(as) == 0 {
		return f.app.Host.Owner(), nil
	}
	name, err := url.QueryUnescape(as[0])
	if err != nil || len(as) > 1 {
		return host.Caller{}, plugin.Errorf(plugin.CodeInvalidInput, "%s names one principal", rest.AsHeader)
	}
	return f.app.Host.OnBehalf(name)
}

// whole is a path from the root.
func whole(path string) string {
	if from, err := filepath.Abs(path); err == nil {
		return from
	}
	return path
}

func (f *front) answers(ctx context.Context, identify func(*http.Request) (host.Caller, bool, error), people func() http.Handler) http.Handler {
	a, known := f.app, f.app.Host.Authenticator()
	known.Signed = func(ctx context.Context, text string) (host.Machine, error) { return f.signs.Load().Verify(ctx, text) }
	f.known = append(f.known, known)
	api := rest.New(rest.Options{
		Host: a.Host, Authenticate: known.Token, Identify: identify, Log: a.Log(), Telemetry: a.Telemetry, Closing: ctx, Config: whole(a.ConfigPath),
		Address: f.address, MCP: f.tools, Metadata: f.metadataURL, Rates: f.rates, Named: func(name string) bool { return slices.Contains(*f.names.Load(), name) },
	})
	o := Options{Agents: Deliveries{a.Agents}, Tenant: a.Config.Tenant, Log: a.Log(), Health: a.Healthy, API: api, SignIn: people, Issuers: f.issuers, Address: f.address}
	if people != nil {
		o.Console = console.New()
	}
	return New(o)
}

// linkPath is where the owner's socket makes links that sign the owner in.
const linkPath = "/auth/link"

// answerLink makes such a link, for a browser of this machine.
func (f *front) answerLink(w http.ResponseWriter, r *http.Request) {
	if only(w, r, http.MethodPost) {
		w.Header().Set("Cache-Control", "no-store")
		link := f.app.Now().Server.Base(f.at.String()) + "/auth/setup#" + f.first.Link(signin.LinkLife)
		write(w, http.StatusOK, map[string]any{"link": link, "expires_in": int(signin.LinkLife.Seconds())})
	}
}

// people returns what signs people in by a configuration, nil where it is not known how
// browsers reach the host.
func (f *front) people(c config.Server) (*signin.Server, error) {
	if f.at == nil || c.PublicURL == "" && !onLoopback(f.at) {
		return nil, nil
	}
	o := signin.Options{People: f.app.Host.SignIns(), Base: c.Base(f.at.String()), Setup: f.first, Address: f.address, Log: f.app.Log()}
	if console.Built() {
		o.Console = "/"
	}
	for _, p := range c.SignIn {
		o.Providers = append(o.Providers, signin.Provider{Name: p.Name, Issuer: p.Issuer, ClientID: p.ClientID, Scopes: p.Scopes, GroupsClaim: p.GroupsClaim, Groups: p.Groups, Secret: func() (string, error) { return f.app.SignInSecret(p) }})
	}
	return signin.New(o)
}

// reload has the configuration read again and puts in force what of it may change. Requests
// that are being answered go on. A token is looked up again at its next request.
func (f *front) reload() (reload.Report, error) {
	was := f.app.Now().Server
	return f.app.Reload(func(next config.Config) (func(), error) {
		c := next.Server
		people := f.in.Load()
		if was.PublicURL != c.PublicURL || !reflect.DeepEqual(was.SignIn, c.SignIn) {
			var err error
			if people, err = f.people(c); err != nil {
				return nil, err
			}
		}
		signs := f.signs.Load()
		if was.PublicURL != c.PublicURL || !reflect.DeepEqual(was.Machines, c.Machines) {
			var err error
			if signs, err = machines(c); err != nil {
				return nil, fmt.Errorf("server: %w", err)
			}
		}
		proxies, err := c.Proxies()
		if err != nil {
			return nil, err
		}
		if f.cert != nil {
			if _, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err != nil {
				return nil, fmt.Errorf("server: the certificate cannot be used: %w", err)
			}
		}
		return func() {
			f.in.Store(people)
			f.signs.Store(signs)
			f.proxies.Store(&proxies)
			names := c.Names()
			f.names.Store(&names)
			f.rates.Set(float64(c.Rate), float64(c.Burst))
			for _, known := range f.known {
				known.Forget()
			}
			if f.cert == nil {
				return
			}
			if err := f.cert.Use(c.TLSCert, c.TLSKey); err != nil { // it could be a moment ago
				f.app.Log().Error("the certificate before stays in force", "cause", err.Error())
			}
		}, nil
	})
}

// hear reads the configuration again at each signal, until ctx ends. The log has what came
// of it.
func (f *front) hear(ctx context.Context, hangups <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			if _, err := f.reload(); err != nil {
				f.app.Log().Error("the configuration was not read again", "cause", err.Error())
			}
		}
	}
}
