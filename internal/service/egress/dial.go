package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// connectTimeout is how long one address may take to answer.
const connectTimeout = 5 * time.Second

// maxAddresses is how many addresses of one name are tried.
const maxAddresses = 8

// A Resolver finds the addresses of a name. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// A ConnectFunc connects to one address, after asking check about the very
// address that the socket is about to be connected to.
type ConnectFunc func(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error)

// A Dialer connects to what one plugin may reach. It is safe for concurrent
// use; its fields are not changed after the first connection.
type Dialer struct {
	Plugin   string
	Grants   Grants
	Resolver Resolver            // net.DefaultResolver where it is nil
	Connect  ConnectFunc         // [Connect] where it is nil
	Own      func() []netip.Addr // this machine's addresses; asked of the system where it is nil
}

// DialContext connects to host:port. The name is resolved once; every address
// must be allowed, because one answer of several may be a trap; and they are
// dialled as addresses, so that no second answer can take their place.
func (d *Dialer) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	name, digits, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return nil, err
	}
	if to, mapped := d.Grants.to(name, uint16(port)); mapped {
		return d.connect(ctx, to, func(dialled netip.AddrPort) error {
			if dialled != to {
				return denied("%s is not the address that %s is mapped to", dialled, name)
			}
			return nil
		})
	}
	addrs, err := d.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	own := d.own()
	check := func(dialled netip.AddrPort) error {
		if dialled.Port() != uint16(port) {
			return denied("%s was about to be asked on another port", name)
		}
		return d.check(name, dialled.Addr(), own)
	}
	for _, addr := range addrs {
		if err := check(netip.AddrPortFrom(addr, uint16(port))); err != nil {
			return nil, err
		}
	}
	var failed error
	for _, addr := range addrs[:min(len(addrs), maxAddresses)] {
		conn, err := d.connect(ctx, netip.AddrPortFrom(addr, uint16(port)), check)
		if err == nil {
			return conn, nil
		}
		failed = err
		if ctx.Err() != nil || plugin.CodeOf(err) == plugin.CodeEgressDenied {
			break
		}
	}
	return nil, failed
}

// resolve returns the addresses of a name, an IPv4 address always as such.
func (d *Dialer) resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{addr.Unmap()}, nil
	}
	var r Resolver = net.DefaultResolver
	if d.Resolver != nil {
		r = d.Resolver
	}
	found, err := r.LookupNetIP(ctx, "ip", name)
	var dns *net.DNSError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &dns) && dns.IsTimeout:
		return nil, &plugin.Error{Code: plugin.CodeTimeout, Message: "looking up " + name + " took too long", Retryable: true, Err: err}
	case errors.As(err, &dns) && dns.IsNotFound, err == nil && len(found) == 0:
		return nil, &plugin.Error{Code: plugin.CodeUnavailable, Message: "there is no host " + name, Err: err}
	case err != nil:
		return nil, &plugin.Error{Code: plugin.CodeUnavailable, Message: "looking up " + name + " failed", Retryable: true, Err: err}
	}
	addrs := make([]netip.Addr, 0, len(found))
	for _, addr := range found {
		if addr = addr.Unmap(); !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	return addrs, nil
}

// check refuses an address. The message does not say which it is: a plugin has
// no business with how a network behind the host is laid out.
func (d *Dialer) check(name string, addr netip.Addr, own []netip.Addr) error {
	what := Refusal(addr)
	ours := addr.Unmap().IsLoopback() || slices.Contains(own, addr.Unmap())
	switch {
	case ours && slices.Contains(d.Grants.Loopback, d.Plugin):
		return nil
	case ours:
		return denied("%s leads to this machine (loopback); an administrator may allow it with egress: {loopback: [%s]} in mortise.yaml", name, d.Plugin)
	case what != "":
		return denied("%s leads to an address that is %s; an administrator may lead it elsewhere with egress.map in mortise.yaml", name, what)
	}
	return nil
}

func (d *Dialer) connect(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
	if d.Connect != nil {
		return d.Connect(ctx, to, check)
	}
	return Connect(ctx, to, check)
}

func (d *Dialer) own() []netip.Addr {
	if d.Own != nil {
		return d.Own()
	}
	return own()
}

// Connect is the [ConnectFunc] that uses the network.
func Connect(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
	dialer := net.Dialer{
		Timeout: connectTimeout,
		Control: func(_, address string, _ syscall.RawConn) error {
			dialled, err := netip.ParseAddrPort(address)
			if err != nil {
				return denied("an address that cannot be read was about to be dialled")
			}
			return check(dialled)
		},
	}
	return dialer.DialContext(ctx, "tcp", to.String())
}

// own returns the addresses of this machine's interfaces: a listener on a
// public one of them is as much its own as one on loopback.
func own() []netip.Addr {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var addrs []netip.Addr
	for _, i := range interfaces {
		if prefix, err := netip.ParsePrefix(i.String()); err == nil {
			addrs = append(addrs, prefix.Addr().Unmap())
		}
	}
	return addrs
}
