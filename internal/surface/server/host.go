package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/machine"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/internal/surface/signin"
	"github.com/mortise-dev/mortise/plugin"
)

// ListenFor opens the address that a host is to be reached at, for [Run]. The
// configuration has it where address is nil; it is nil where neither says one.
func ListenFor(ctx context.Context, a *app.App, address *string, insecure bool) (net.Listener, error) {
	where := a.Config.Server.Listen
	if address != nil {
		where = *address
	}
	if where == "" {
		return nil, nil
	}
	l, err := Listen(ctx, where, a.Config.Server.Encrypted(), insecure)
	if plugin.CodeOf(err) == plugin.CodeInvalidInput {
		return nil, &setup.Error{Err: errors.New(plugin.AsError(err).Message)}
	}
	return l, err
}

// Run does what [app.App.Work] does, and answers the API meanwhile: its owner on the socket
// of the data directory, and others on l where that is not nil. When ctx ends nothing more
// is taken, and nothing more is begun; what is under way has as long as the configuration
// says. first is of [FirstRun].
func Run(ctx context.Context, a *app.App, l net.Listener, first *signin.Setup) error {
	var cert *tls.Certificate
	if l != nil {
		defer l.Close()
		if a.Config.Server.Encrypted() {
			pair, err := tls.LoadX509KeyPair(a.Config.Server.TLSCert, a.Config.Server.TLSKey)
			if err != nil {
				return &setup.Error{Err: fmt.Errorf("server: the certificate cannot be used: %w", err)}
			}
			cert = &pair
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var public http.Handler
	if l != nil {
		var err error
		if public, err = Handler(ctx, a, l.Addr(), first); err != nil {
			return err
		}
	}
	owner, err := OwnerHandler(ctx, a)
	if err != nil {
		return err
	}
	if l != nil {
		owner = linking(owner, first, a.Config.Server.Base(l.Addr().String()))
	}
	own, err := ListenOwner(a.Home)
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	serve := func(l net.Listener, h http.Handler, cert *tls.Certificate) {
		defer stop() // if a server ends, the workers end too
		ended <- Serve(ctx, l, h, cert, time.Duration(a.Config.Drain), a.Log())
	}
	servers := 1
	go serve(own, owner, nil)
	if l != nil {
		servers++
		go serve(l, public, cert)
	}
	err = a.Work(ctx)
	stop()
	for range servers {
		err = errors.Join(err, <-ended)
	}
	return err
}

// Handler is what answers requests to a host that listens at an address. People sign in
// where it is known how browsers reach it. Streams end with ctx.
func Handler(ctx context.Context, a *app.App, at net.Addr, first *signin.Setup) (http.Handler, error) {
	if a.Config.Server.PublicURL == "" && !onLoopback(at) {
		return answers(ctx, a, nil, nil)
	}
	o := signin.Options{People: a.Host.SignIns(), Base: a.Config.Server.Base(at.String()), Setup: first, Log: a.Log()}
	for _, p := range a.Config.Server.SignIn {
		o.Providers = append(o.Providers, signin.Provider{Name: p.Name, Issuer: p.Issuer, ClientID: p.ClientID, Scopes: p.Scopes, GroupsClaim: p.GroupsClaim, Groups: p.Groups, Secret: func() (string, error) { return a.SignInSecret(p) }})
	}
	s, err := signin.New(o)
	if err != nil {
		return nil, &setup.Error{Err: fmt.Errorf("server: %w", err)}
	}
	return answers(ctx, a, s.Caller, s)
}

// LinkPath is where the owner's socket makes links that sign the owner in.
const LinkPath = "/auth/link"

// linking answers a request of the owner's for such a link, and others by h. Where the host
// does not listen on this machine there is nothing to open with it.
func linking(h http.Handler, setup *signin.Setup, base string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != LinkPath || setup == nil:
			h.ServeHTTP(w, r)
		case only(w, r, http.MethodPost):
			w.Header().Set("Cache-Control", "no-store")
			write(w, http.StatusOK, map[string]any{"link": base + "/auth/setup#" + setup.Link(signin.LinkLife), "expires_in": int(signin.LinkLife.Seconds())})
		}
	})
}

// FirstRun returns what signs the owner in who has no provider, and the link of the first
// time, "" where the host has users. It is nil where the host does not listen on this machine
// alone.
func FirstRun(ctx context.Context, a *app.App, l net.Listener) (first *signin.Setup, link string, err error) {
	if l == nil || !onLoopback(l.Addr()) || a.Config.Server.PublicURL != "" {
		return nil, "", nil
	}
	none, err := a.Host.SignIns().None(ctx)
	if err != nil {
		return nil, "", err
	}
	if first = signin.NewSetup(); none {
		link = a.Config.Server.Base(l.Addr().String()) + "/auth/setup#" + first.Link(signin.SetupLife)
	}
	return first, link, nil
}

func onLoopback(at net.Addr) bool {
	to, is := at.(*net.TCPAddr)
	return is && to.IP.IsLoopback()
}

// OwnerHandler is what answers requests that come over the socket of [ListenOwner]: who
// presents no token there is the owner.
func OwnerHandler(ctx context.Context, a *app.App) (http.Handler, error) {
	return answers(ctx, a, func(*http.Request) (host.Caller, bool, error) { return a.Host.Owner(), true, nil }, nil)
}

func answers(ctx context.Context, a *app.App, identify func(*http.Request) (host.Caller, bool, error), people *signin.Server) (http.Handler, error) {
	auth := a.Host.Authenticator()
	if len(a.Config.Server.Machines) > 0 {
		signed, err := machines(a.Config.Server)
		if err != nil {
			return nil, &setup.Error{Err: fmt.Errorf("server: %w", err)}
		}
		auth.Signed = signed.Verify
	}
	api := rest.New(rest.Options{
		Host: a.Host, Authenticate: auth.Token, Identify: identify, Log: a.Log(), Telemetry: a.Telemetry, Closing: ctx,
		Rate: a.Config.Server.Rate, Burst: a.Config.Server.Burst, Hosts: a.Config.Server.Names(),
	})
	o := Options{Agents: Deliveries{a.Agents}, Tenant: a.Config.Tenant, Log: a.Log(), Health: a.Healthy, API: api}
	if people != nil {
		o.SignIn = people
	}
	return New(o), nil
}

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

// Deliveries takes in for a server what channels deliver to agents.
type Deliveries struct{ Agents *agent.Agents }

// Receive implements [Receiver].
func (d Deliveries) Receive(ctx context.Context, tenant, id, namespace string, header http.Header, body []byte) (Received, error) {
	got, err := d.Agents.Receive(ctx, tenant, id, namespace, header, body)
	if errors.Is(err, agent.ErrMalformed) {
		err = Malformed(err)
	}
	return Received(got), err
}
