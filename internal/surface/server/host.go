package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host/setup"
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
// says. first is of [FirstRun]. The configuration is read again at each of hangups, which
// may be nil.
func Run(ctx context.Context, a *app.App, l net.Listener, first *signin.Setup, hangups <-chan os.Signal) error {
	if l != nil {
		defer l.Close()
	}
	f, err := newFront(a)
	if err != nil {
		return err
	}
	return f.run(ctx, l, first, hangups)
}

// run is [Run]. A background host takes no more once its time is over, too.
func (f *front) run(ctx context.Context, l net.Listener, first *signin.Setup, hangups <-chan os.Signal) (err error) {
	a := f.app
	if l != nil {
		if a.Config.Server.Encrypted() {
			if f.cert, err = OpenCertificate(a.Config.Server.TLSCert, a.Config.Server.TLSKey, a.Log()); err != nil {
				return &setup.Error{Err: fmt.Errorf("server: %w", err)}
			}
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var public http.Handler
	if l != nil {
		if public, err = f.public(ctx, l.Addr(), first); err != nil {
			return err
		}
	}
	own, err := ListenOwner(a.Home)
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	serve := func(l net.Listener, h http.Handler, cert *Certificate) {
		defer stop() // if a server ends, the workers end too
		ended <- Serve(ctx, l, h, cert, time.Duration(a.Config.Drain), a.Log())
	}
	servers := 1
	go serve(own, f.owner(ctx), nil)
	if l != nil {
		servers++
		go serve(l, public, f.cert)
	}
	var hearing sync.WaitGroup
	hearing.Go(func() { f.hear(ctx, hangups) })
	if f.back != nil {
		hearing.Go(func() { defer stop(); f.back.stay(ctx, own) })
	}
	err = a.Work(ctx)
	stop()
	hearing.Wait()
	for range servers {
		err = errors.Join(err, <-ended)
	}
	return err
}

// Handler is what answers requests to a host that listens at an address. People sign in
// where it is known how browsers reach it. Streams end with ctx.
func Handler(ctx context.Context, a *app.App, at net.Addr, first *signin.Setup) (http.Handler, error) {
	f, err := newFront(a)
	if err != nil {
		return nil, err
	}
	return f.public(ctx, at, first)
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

// Deliveries takes in for a server what channels deliver to agents.
type Deliveries struct{ Agents *agent.Agents }

// Receive implements [Receiver].
func (d Deliveries) Receive(ctx context.Context, tenant, id, namespace string, header http.Header, body []byte, proved func() error) (Received, error) {
	got, err := d.Agents.Receive(ctx, tenant, id, namespace, header, body, proved)
	if errors.Is(err, agent.ErrMalformed) {
		err = Malformed(err)
	}
	return Received(got), err
}
