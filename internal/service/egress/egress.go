// Package egress says what of the network a plugin may reach, and is the one
// way to reach it.
//
// Three things must agree before a connection is made: the plugin's manifest
// names the host ([ParseHost]), the URL is written in the one plain way
// ([ParseURL]), and every address behind the name is one of the public Internet
// ([Refusal]). The last is checked by the [Dialer] after resolving, and again on
// the very address that is dialled. What an administrator allows beyond that is
// in [Grants].
package egress

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

// Grants are an administrator's exceptions (mortise.yaml, egress).
type Grants struct {
	// Loopback names the plugins that may reach this machine itself.
	Loopback []string `yaml:"loopback" json:"loopback"`
	// Map leads a host name to one address: ip:port, whatever port was asked for,
	// or ip alone. It opens nothing: the manifest must still declare the host, and
	// TLS still asks for its name.
	Map map[string]string `yaml:"map" json:"map"`
	// CAFile has certificates, in PEM, of authorities that mapped hosts may be
	// vouched for by, beside those that the system trusts.
	CAFile string `yaml:"ca_file" json:"ca_file,omitempty"`
	// Hosts are those that a plugin may reach beside the ones of its manifest,
	// for contracts whose manifests cannot name any.
	Hosts map[string][]string `yaml:"hosts" json:"hosts,omitempty"`
}

// HostsOf returns the hosts that a plugin may reach, given those that it declares.
func (g Grants) HostsOf(name string, declared []string) []string {
	if len(g.Hosts[name]) == 0 {
		return declared
	}
	return slices.Concat(declared, g.Hosts[name])
}

var pluginName = pattern.New(`^[A-Za-z][A-Za-z0-9_.-]{0,127}$`)

// Check refuses what cannot be meant, all of it at once.
func (g Grants) Check() error {
	var errs []error
	for _, name := range g.Loopback {
		if !pluginName.MatchString(name) {
			errs = append(errs, fmt.Errorf("egress.loopback: %q is no name of a plugin", name))
		}
	}
	for name, hosts := range g.Hosts {
		if !pluginName.MatchString(name) {
			errs = append(errs, fmt.Errorf("egress.hosts: %q is no name of a plugin", name))
		}
		for _, host := range hosts {
			if _, err := ParseHost(host); err != nil {
				errs = append(errs, fmt.Errorf("egress.hosts of %s: %w", name, err))
			}
		}
	}
	for host, address := range g.Map {
		if h, err := ParseHost(host); err != nil {
			errs = append(errs, fmt.Errorf("egress.map: %w", err))
		} else if h.suffix || h.port != 0 {
			errs = append(errs, fmt.Errorf("egress.map: %q is not the plain name of one host", host))
		}
		if _, err := parseTarget(address, 443); err != nil {
			errs = append(errs, fmt.Errorf("egress.map: %s leads to %q, which is not of the form 127.0.0.1:9443 or 127.0.0.1", host, address))
		}
	}
	if g.CAFile != "" && len(g.Map) == 0 {
		errs = append(errs, errors.New("egress.ca_file: it vouches for the hosts of egress.map alone, and there is none"))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// parseTarget reads where a host is led, given the port that it is asked on.
func parseTarget(text string, port uint16) (netip.AddrPort, error) {
	to, err := netip.ParseAddrPort(text)
	if err != nil {
		addr, bare := netip.ParseAddr(text)
		to, err = netip.AddrPortFrom(addr, port), bare
	}
	if err == nil && (to.Port() == 0 || to.Addr().Zone() != "") {
		err = fmt.Errorf("%q is no address and port", text)
	}
	return to, err
}

// to returns where name is led on a port, if it is.
func (g Grants) to(name string, port uint16) (netip.AddrPort, bool) {
	address, mapped := g.Map[name]
	if !mapped {
		return netip.AddrPort{}, false
	}
	to, err := parseTarget(address, port)
	return to, err == nil
}

// Mapped reports whether a host, written as [ParseURL] writes it, is led
// somewhere by the administrator.
func (g Grants) Mapped(name string) bool {
	_, mapped := g.Map[name]
	return mapped
}

// Roots returns the authorities that may vouch for mapped hosts; nil for those
// that the system trusts.
func (g Grants) Roots() (*x509.CertPool, error) {
	if g.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(g.CAFile)
	if err != nil {
		return nil, fmt.Errorf("egress.ca_file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("egress.ca_file: %s holds no certificate in PEM", g.CAFile)
	}
	return pool, nil
}

func denied(format string, args ...any) *plugin.Error {
	return plugin.Errorf(plugin.CodeEgressDenied, format, args...)
}

// Inside reports whether the way to u does not leave what an administrator answers for: the host
// is mapped, or it is this machine and the plugin was granted that.
func (g Grants) Inside(name string, u *url.URL) bool {
	host, _ := Endpoint(u)
	addr, err := netip.ParseAddr(host)
	local := slices.Contains(g.Loopback, name) && (host == "localhost" || err == nil && addr.IsLoopback())
	return g.Mapped(host) || local
}
