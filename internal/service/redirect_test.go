package service

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

func TestRedirectsThatAreNotFollowed(t *testing.T) {
	t.Parallel()
	for location, code := range map[string]plugin.Code{
		"http://169.254.169.254/latest/meta-data/":            plugin.CodeEgressDenied,
		"http://metadata.example.org/":                        plugin.CodeEgressDenied, // declared, and link-local
		"//127.0.0.1/":                                        plugin.CodeEgressDenied,
		"http://undeclared.example.net/":                      plugin.CodeEgressDenied,
		"http://api.example.com:22/":                          plugin.CodeEgressDenied,
		"http://user:pass@api.example.com/":                   plugin.CodeEgressDenied,
		"http://0x7f.1/":                                      plugin.CodeEgressDenied,
		"file:///etc/passwd":                                  plugin.CodeEgressDenied,
		"gopher://api.example.com/":                           plugin.CodeEgressDenied,
		"http:/\\127.0.0.1/":                                  plugin.CodeInvalidInput,
		"http://api.example.com/\u00e9":                       plugin.CodeInvalidInput,
		"http://[::1/":                                        plugin.CodeInvalidInput,
		"/again":                                              plugin.CodeUnavailable, // for ever
		"http://api.example.com/" + strings.Repeat("x", 9000): plugin.CodeInvalidInput,
	} {
		for _, method := range []string{"GET", "POST"} {
			s := newScene(t).serve(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", location)
				w.WriteHeader(http.StatusFound)
			})
			s.names["metadata.example.org"] = addresses("169.254.169.254")
			_, err := s.fetch("http://api.example.com/", "method", method)
			if plugin.CodeOf(err) != code {
				t.Errorf("%s %.60s: %v", method, location, err)
				continue
			}
			if e := plugin.AsError(err); e.Retryable || (method == "POST") != strings.Contains(e.Message, "the request itself was answered with 302") {
				t.Errorf("%s %.60s: %+v", method, location, e)
			}
			if n := len(s.refusals); n != 0 != (code == plugin.CodeEgressDenied) {
				t.Errorf("%s %.60s: %d refusals reported", method, location, n)
			}
			res := s.must("http://api.example.com/", "follow_redirects", false, "method", method)
			if res["status_code"] != 302.0 {
				t.Errorf("%s %.60s: %v", method, location, res)
			}
		}
	}
}

func TestRedirectsUpToFive(t *testing.T) {
	t.Parallel()
	s := newScene(t).serve(func(w http.ResponseWriter, r *http.Request) {
		if left := r.URL.Query().Get("left"); left != "" {
			http.Redirect(w, r, "/?left="+left[1:], http.StatusFound)
		}
	})
	if res := s.must("http://api.example.com/?left=xxxxx"); res["url"] != "http://api.example.com/?left=" {
		t.Errorf("%v", res)
	}
	if _, err := s.fetch("http://api.example.com/?left=xxxxxx"); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Error(err)
	}
}

func TestANameThatChangesOnARedirect(t *testing.T) {
	t.Parallel()
	s := newScene(t).serve(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/next")
		w.Header().Set("Connection", "close") // so that the name is looked up again
		w.WriteHeader(http.StatusFound)
	})
	first := true
	s.names["api.example.com"] = func(ctx context.Context) ([]netip.Addr, error) {
		if first {
			first = false
			return addresses("93.184.215.14")(ctx)
		}
		return addresses("127.0.0.1")(ctx)
	}
	if _, err := s.fetch("http://api.example.com/"); plugin.CodeOf(err) != plugin.CodeEgressDenied || s.connections() != 1 {
		t.Errorf("%v, %d connections", err, s.connections())
	}
}

func TestMethodsOnARedirect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status       int
		method, then string
		body         string
	}{
		{301, "POST", "GET", ""}, {302, "POST", "GET", ""}, {303, "POST", "GET", ""}, {307, "POST", "POST", "x"}, {308, "POST", "POST", "x"},
		{302, "PUT", "GET", ""}, {303, "DELETE", "GET", ""}, {307, "PUT", "PUT", "x"},
		{301, "HEAD", "HEAD", ""}, {303, "HEAD", "HEAD", ""}, {302, "GET", "GET", ""}, {308, "GET", "GET", ""},
		{304, "GET", "", ""}, {300, "GET", "", ""}, {201, "POST", "", ""},
	} {
		then, body, kind := "", "", ""
		s := newScene(t).serve(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				w.Header().Set("Location", "/next")
				w.WriteHeader(c.status)
				return
			}
			raw, _ := io.ReadAll(r.Body)
			then, body, kind = r.Method, string(raw), r.Header.Get("Content-Type")
		})
		args := []any{"method", c.method, "headers", map[string]any{"Content-Type": "text/x"}}
		if c.method != "GET" && c.method != "HEAD" {
			args = append(args, "body", "x")
		}
		s.must("http://api.example.com/", args...)
		if then != c.then || body != c.body || (kind == "") == (c.body != "") && c.then != "HEAD" && c.method == "POST" {
			t.Errorf("%d after %s: %s %q %q", c.status, c.method, then, body, kind)
		}
	}
}

func TestCredentialsStayWithTheirHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		to   string
		kept bool
	}{
		{"/next", true}, {"http://API.example.com:80/next", true},
		{"http://api.example.com:8443/next", false}, {"http://other.example.org/next", false},
	} {
		var got http.Header
		s := newScene(t).serve(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, c.to, http.StatusTemporaryRedirect)
				return
			}
			got = r.Header.Clone()
		})
		s.must("http://api.example.com/", "headers", map[string]any{
			"Authorization": "Bearer x", "Cookie": "a=1", "X-Api-Key": "k", "Private-Token": "t", "Accept": "text/x", "User-Agent": "mine",
		})
		for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "Private-Token"} {
			if kept := got.Get(name) != ""; kept != c.kept {
				t.Errorf("%s: %s was kept: %v", c.to, name, kept)
			}
		}
		if got.Get("Accept") != "text/x" || got.Get("User-Agent") != "mine" {
			t.Errorf("%s: %v", c.to, got)
		}
	}
}

func TestNoWayBackFromTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://example.com/", http.StatusFound)
	}))
	t.Cleanup(server.Close)
	s := newScene(t)
	s.target.Manifest.HTTP.Hosts = []string{"example.com"}
	s.broker.Egress = egress.Grants{Map: map[string]string{"example.com": server.Listener.Addr().String()}}
	s.broker.web.connect = nil
	s.broker.web.tls = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	if _, err := s.fetch("https://example.com/"); plugin.CodeOf(err) != plugin.CodeEgressDenied || !strings.Contains(err.Error(), "from https to http") {
		t.Error(err)
	}
}
