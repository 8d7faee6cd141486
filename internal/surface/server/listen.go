package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of connections. Those of requests are in [Options].
const (
	maxConnections = 2048 // half of them may be streams
	headerTime     = 5 * time.Second
	readTime       = 15 * time.Second
	writeTime      = time.Minute
	idleTime       = time.Minute
	maxHeader      = 16 << 10
	leaveTime      = time.Second // for what was told to end
)

// Listen opens an address, host:port; port 0 is any that is free. An address that other
// machines can reach is refused unless its traffic is encrypted, or insecure explicitly
// permits plain text.
func Listen(ctx context.Context, address string, encrypted, insecure bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%q is no address to listen on; write one like 127.0.0.1:8080", address)
	}
	// Resolved once: what was judged is what is listened on.
	to, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%q is no address to listen on: %w", address, err)
	}
	if !to.IP.IsLoopback() && !encrypted && !insecure {
		if host == "" {
			address = "every address of this machine, " + address + ","
		}
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s can be reached by other machines, and what they send could be read and changed on its way: "+
			"give a certificate by server: {tls_cert, tls_key} in mortise.yaml, or listen on 127.0.0.1 behind something that has one, or say --insecure-listen", address)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", to.String())
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, plugin.Errorf(plugin.CodeUnavailable, "%s is in use by another process; listen on another port, or on port 0 for any that is free: %w", address, err)
	case err != nil:
		return nil, plugin.Errorf(plugin.CodeUnavailable, "%s cannot be listened on: %w", address, err)
	}
	return l, nil
}

// Serve answers requests on a listener until ctx ends. Then it takes no more,
// waits for those that are being answered until the time to drain is over, ends
// them, and closes what is left. Where there is a certificate, all is encrypted with it.
func Serve(ctx context.Context, l net.Listener, h http.Handler, cert *Certificate, drain time.Duration, log *slog.Logger) error {
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	s := &http.Server{
		Handler: h, BaseContext: func(net.Listener) context.Context { return work },
		ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true, ErrorLog: slog.NewLogLogger(quieter{log.Handler()}, slog.LevelDebug),
	}
	l = netutil.LimitListener(l, maxConnections)
	ended := make(chan error, 1)
	go func() {
		if cert == nil {
			ended <- s.Serve(l)
			return
		}
		s.TLSConfig = &tls.Config{GetCertificate: cert.Get, MinVersion: tls.VersionTLS12}
		ended <- s.ServeTLS(l, "", "")
	}()
	select {
	case err := <-ended:
		return plugin.Errorf(plugin.CodeUnavailable, "nothing is listened to any more on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	patience, stop := context.WithTimeout(work, max(drain, leaveTime))
	defer stop()
	err := s.Shutdown(patience)
	<-ended
	if err != nil {
		end() // a call that is on record is answered with where it is found
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		defer stop()
		if s.Shutdown(last) != nil {
			log.Warn("requests that were still being answered were cut off", "drain", drain)
			return s.Close()
		}
	}
	return nil
}

// quieter leaves out of the log what every scanner of the network causes.
type quieter struct{ slog.Handler }

// Handle implements [slog.Handler].
func (q quieter) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "http: TLS handshake error") {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}
