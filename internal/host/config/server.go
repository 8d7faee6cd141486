package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/mortise-dev/mortise/internal/base/clientaddr"
)

// Server says what the host answers on the network. Where it listens on nothing,
// that is nothing.
type Server struct {
	Listen  string `yaml:"listen" json:"listen"`     // host:port
	TLSCert string `yaml:"tls_cert" json:"tls_cert"` // in PEM, with those that vouch for it; relative ones are beside the configuration file
	TLSKey  string `yaml:"tls_key" json:"tls_key"`

	Rate  int `yaml:"rate" json:"rate"`   // requests that one API token may make a second
	Burst int `yaml:"burst" json:"burst"` // and so many at once

	PublicURL string    `yaml:"public_url" json:"public_url,omitempty"`   // at which browsers reach the host, https://HOST; that of listen where it is not written
	SignIn    []SignIn  `yaml:"sign_in" json:"sign_in,omitempty"`         // with whom people sign in
	Machines  []Machine `yaml:"machines" json:"machines,omitempty"`       // whose tokens programs present
	SignInAge Duration  `yaml:"sign_in_age" json:"sign_in_age,omitempty"` // of a browser, for approvals and changes of rights; 15 minutes where it is not written

	// TrustedProxies are the networks of reverse proxies, in CIDR notation, whose X-Forwarded-For
	// names the client. No one is believed by default.
	TrustedProxies []string `yaml:"trusted_proxies" json:"trusted_proxies,omitempty"`
}

// Names returns the name by which browsers reach the host, where one is written. It is what
// a proxy on this machine passes on.
func (s Server) Names() []string {
	if u, err := url.Parse(s.PublicURL); err == nil && u.Host != "" {
		return []string{u.Host}
	}
	return nil
}

// Proxies returns the reverse proxies whose word about the address of a client is taken.
func (s Server) Proxies() (clientaddr.Proxies, error) {
	proxies, err := clientaddr.ParseProxies(s.TrustedProxies)
	if err != nil {
		return nil, fmt.Errorf("server.trusted_proxies: %w", err)
	}
	return proxies, nil
}

// Encrypted reports whether there is a certificate.
func (s Server) Encrypted() bool { return s.TLSCert != "" }

func (s *Server) complete(dir string) {
	for _, file := range []*string{&s.TLSCert, &s.TLSKey} {
		if *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(dir, *file)
		}
	}
	s.completeSignIns(dir)
}

// check refuses what cannot be meant. owner is the principal of the configuration, and groups are
// those that it names.
func (s Server) check(owner string, groups map[string][]string) []error {
	var errs []error
	if _, _, err := net.SplitHostPort(s.Listen); s.Listen != "" && err != nil {
		errs = append(errs, fmt.Errorf("server.listen is %q; it is an address and a port, like 127.0.0.1:8080", s.Listen))
	}
	if (s.TLSCert == "") != (s.TLSKey == "") {
		errs = append(errs, errors.New("server: tls_cert and tls_key go together"))
	}
	for key, n := range map[string]int{"rate": s.Rate, "burst": s.Burst} {
		if n < 1 || n > 1_000_000 {
			errs = append(errs, fmt.Errorf("server.%s is %d; it is 1 to 1000000", key, n))
		}
	}
	if _, err := s.Proxies(); err != nil {
		errs = append(errs, err)
	}
	return slices.Concat(errs, s.checkSignIns(groups), s.checkMachines(owner, groups))
}
