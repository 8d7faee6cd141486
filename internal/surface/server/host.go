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
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/rest"
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

// Run does what [app.App.Work] does and, where l is not nil, answers requests there.
// When ctx ends nothing more is taken, and nothing more is begun; what is under
// way has as long as the configuration says.
func Run(ctx context.Context, a *app.App, l net.Listener) error {
	if l == nil {
		return a.Work(ctx)
	}
	defer l.Close()
	var cert *tls.Certificate
	if a.Config.Server.Encrypted() {
		pair, err := tls.LoadX509KeyPair(a.Config.Server.TLSCert, a.Config.Server.TLSKey)
		if err != nil {
			return &setup.Error{Err: fmt.Errorf("server: the certificate cannot be used: %w", err)}
		}
		cert = &pair
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		defer stop() // if the server ends, the workers end too
		ended <- Serve(ctx, l, Handler(a), cert, time.Duration(a.Config.Drain), a.Log())
	}()
	err := a.Work(ctx)
	stop()
	return errors.Join(err, <-ended)
}

// Handler is what answers requests to a host.
func Handler(a *app.App) http.Handler {
	api := rest.New(rest.Options{
		Host: a.Host, Authenticate: a.Host.Authenticator().Token, Log: a.Log(), Telemetry: a.Telemetry,
		Rate: a.Config.Server.Rate, Burst: a.Config.Server.Burst,
	})
	return New(Options{Agents: Deliveries{a.Agents}, Tenant: a.Config.Tenant, Log: a.Log(), Health: a.Healthy, API: api})
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
