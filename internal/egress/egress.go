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
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// Grants are an administrator's exceptions (mortise.yaml, egress).
type Grants struct {
	// Loopback names the plugins that may reach this machine itself.
	Loopback []string `yaml:"loopback" json:"loopback"`
	// Map leads a host name to one address, ip:port, whatever port was asked
	// for. It opens nothing: the manifest must still declare the host, and TLS
	// still asks for its name.
	Map map[string]string `yaml:"map" json:"map"`
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

var pluginName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,127}$`)

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
		if to, err := netip.ParseAddrPort(address); err != nil || to.Port() == 0 || to.Addr().Zone() != "" {
			errs = append(errs, fmt.Errorf("egress.map: %s leads to %q, which is not of the form 127.0.0.1:9443", host, address))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// to returns where name is led, if it is.
func (g Grants) to(name string) (netip.AddrPort, bool) {
	address, mapped := g.Map[name]
	if !mapped {
		return netip.AddrPort{}, false
	}
	to, err := netip.ParseAddrPort(address)
	return to, err == nil
}

func denied(format string, args ...any) *plugin.Error {
	return plugin.Errorf(plugin.CodeEgressDenied, format, args...)
}
