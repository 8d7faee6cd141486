package service

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// TestAMappedHost is asked where the administrator leads it, must be who it says,
// and leads nowhere that is not mapped itself.
func TestAMappedHost(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	location := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if location != "" {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		}
	}))
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	_, port, _ := strings.Cut(address, ":")
	for name, c := range map[string]struct {
		url, location string
		roots         *x509.CertPool
		code          plugin.Code
		says          string
	}{
		"with its authority":              {"https://example.com/", "", roots, "", ""},
		"without it":                      {"https://example.com/", "", nil, plugin.CodeUnavailable, "certificate"},
		"a certificate for another name":  {"https://wrong.example.net/", "", roots, plugin.CodeUnavailable, "certificate"},
		"a redirect to itself":            {"https://example.com/", "https://example.com/next", roots, plugin.CodeUnavailable, "redirects"},
		"a redirect to a private name":    {"https://example.com/", "https://inner.example.org:" + canary.port + "/", roots, plugin.CodeEgressDenied, "loopback"},
		"a redirect to a private address": {"https://example.com/", "https://127.0.0.1:" + canary.port + "/", roots, plugin.CodeEgressDenied, "loopback"},
		"an address without a port":       {"https://plain.example.com:" + port + "/", "", roots, "", ""},
	} {
		s := newScene(t)
		location = c.location
		s.broker.web.connect, s.broker.web.own = nil, nil
		s.broker.Roots = c.roots
		s.broker.Egress = egress.Grants{Map: map[string]string{"example.com": address, "wrong.example.net": address, "plain.example.com": "127.0.0.1"}}
		s.names["inner.example.org"] = addresses("127.0.0.1")
		s.target.Manifest.HTTP.Hosts = []string{"example.com", "wrong.example.net", ".example.org:" + canary.port, "127.0.0.1:" + canary.port, "plain.example.com:" + port}
		services := s.services()
		_, err := services.Serve(t.Context(), fetchName, fmt.Appendf(nil, `{"url":%q}`, c.url))
		if plugin.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		host, _, _ := strings.Cut(strings.TrimPrefix(c.url, "https://"), "/")
		host, _, _ = strings.Cut(host, ":")
		if got := services.(interface{ Metrics() plugin.Metrics }).Metrics()["http_mapped"]; got != host {
			t.Errorf("%s: the record says %v", name, got)
		}
	}
	if n := canary.count(); n != 0 {
		t.Errorf("%d connections came", n)
	}
}
