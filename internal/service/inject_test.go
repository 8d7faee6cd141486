package service

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

const credentialValue = "s3cr3t-token-0123456789"

// holding is a scene of its own tenant whose user has set api_key, and whose
// server is reached by TLS under every name that is declared.
func holding(t *testing.T, handler http.HandlerFunc) *scene {
	s := keeping(t)
	s.target.Operation.Effects = append(s.target.Operation.Effects, httpWrite)
	s.target.Operation.Secrets = nil
	s.server = httptest.NewTLSServer(handler)
	t.Cleanup(s.server.Close)
	s.broker.web.tls = s.server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	s.broker.web.tls.InsecureSkipVerify = true // the certificate names example.com; who is asked is not what is tested here
	s.broker.web.connect = s.connectTo(s.server.Listener.Addr().String())
	s.set("api_key", credentialValue)
	return s
}

func (s *scene) set(name, value string) {
	s.t.Helper()
	err := oneVault().Put(s.t.Context(), store.SecretName{Tenant: s.call.Tenant, Owner: s.target.Manifest.Name, Scope: secret.User, Subject: secret.Subject(s.call.Principal), Name: name}, value, secret.By{Principal: "ada"})
	if err != nil {
		s.t.Fatal(err)
	}
}

// repeat answers with all that it was asked.
func repeat(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Echo", r.Header.Get("Authorization"))
	body, _ := io.ReadAll(r.Body)
	_ = json.NewEncoder(w).Encode(map[string]any{"url": r.URL.String(), "headers": r.Header, "body": string(body)})
}

func (s *scene) inject(list ...plugin.Injection) { s.target.Manifest.HTTP.Inject = list }

func TestTheHostInsertsACredential(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   plugin.Injection
		args []any
		got  func(r *http.Request) string
		want string
	}{
		"as it is":       {plugin.Injection{Header: "X-Api-Key", Secret: "api_key"}, nil, func(r *http.Request) string { return r.Header.Get("X-Api-Key") }, credentialValue},
		"in a format":    {plugin.Injection{Header: "Authorization", Format: "Bearer {}", Secret: "api_key"}, nil, func(r *http.Request) string { return r.Header.Get("Authorization") }, "Bearer " + credentialValue},
		"in the query":   {plugin.Injection{Query: "key", Secret: "api_key"}, []any{"params", map[string]any{"q": "a b"}}, func(r *http.Request) string { return r.URL.RawQuery }, "q=a+b&key=" + credentialValue},
		"by reference":   {plugin.Injection{Secret: "api_key"}, []any{"headers", map[string]any{"X-Mine": map[string]any{"$secret": "api_key", "format": "t={}"}}}, func(r *http.Request) string { return r.Header.Get("X-Mine") }, "t=" + credentialValue},
		"with an effect": {plugin.Injection{Header: "Authorization", Format: "Bearer {}", Secret: "api_key"}, []any{"method", "POST", "json", 1}, func(r *http.Request) string { return r.Header.Get("Authorization") }, "Bearer " + credentialValue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			s := holding(t, func(w http.ResponseWriter, r *http.Request) {
				got = c.got(r)
				repeat(w, r)
			})
			c.in.Host = "api.example.com"
			s.inject(c.in)
			res := s.must("https://api.example.com/x", c.args...)
			if got != c.want {
				t.Errorf("the server got %q, want %q", got, c.want)
			}
			if text := fmt.Sprint(res); strings.Contains(text, credentialValue) || !strings.Contains(text, secret.Mark) {
				t.Errorf("the plugin got %s", text)
			}
		})
	}
}

// TestACredentialIsOfItsHostAlone counts where a credential arrives.
func TestACredentialIsOfItsHostAlone(t *testing.T) {
	t.Parallel()
	var seen []string
	location := ""
	s := holding(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RawQuery+fmt.Sprint(r.Header), credentialValue) {
			seen = append(seen, r.Host+r.URL.Path)
		}
		if r.URL.Path == "/go" {
			w.Header().Set("Location", strings.ReplaceAll(location, "KEY", url.QueryEscape(r.URL.Query().Get("key"))))
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
	})
	s.inject(
		plugin.Injection{Host: "api.example.com", Header: "Authorization", Format: "Bearer {}", Secret: "api_key"},
		plugin.Injection{Host: "api.example.com", Query: "key", Secret: "api_key"},
		plugin.Injection{Host: "api.example.com:8443", Header: "X-Other", Secret: "api_key"},
	)
	for _, c := range []struct {
		ask, location, want string
		code                plugin.Code
	}{
		{"https://api.example.com/a", "", "api.example.com/a", ""},
		{"https://other.example.org/a", "", "", ""},
		{"https://api.example.com:8443/a", "", "api.example.com:8443/a", ""},
		{"https://api.example.com/go", "/next", "api.example.com/go api.example.com/next", ""},
		{"https://api.example.com/go", "/next?key=KEY&a=b", "api.example.com/go api.example.com/next", ""},
		{"https://api.example.com/go", "https://other.example.org/next", "api.example.com/go", ""},
		{"https://api.example.com/go", "https://api.example.com:8443/next", "api.example.com/go", ""},
		{"https://api.example.com/go", "https://other.example.org/next?k=KEY", "api.example.com/go", plugin.CodeEgressDenied},
		{"https://api.example.com/go", "https://other.example.org/KEY", "api.example.com/go", plugin.CodeEgressDenied},
		{"https://other.example.org/go", "https://api.example.com/next", "", ""}, // a stranger has nothing sent in the caller's name
		{"http://api.example.com/a", "", "", plugin.CodeEgressDenied},
	} {
		seen, location = nil, c.location
		res, err := s.fetch(c.ask)
		if got := strings.Join(seen, " "); plugin.CodeOf(err) != c.code || got != c.want {
			t.Errorf("%s to %s: %q, %v, want %q", c.ask, c.location, got, err, c.want)
		}
		if strings.Contains(fmt.Sprint(res, err), credentialValue) {
			t.Errorf("%s to %s: the plugin got %v, %v", c.ask, c.location, res, err)
		}
	}
}

// TestAServerThatEchoesACredential repeats it in every way that there is, cut
// wherever a plugin may have a body cut.
func TestAServerThatEchoesACredential(t *testing.T) {
	t.Parallel()
	said := []string{
		"got " + credentialValue, base64.StdEncoding.EncodeToString([]byte("Bearer " + credentialValue)), fmt.Sprintf("%x", credentialValue), url.QueryEscape(credentialValue),
		strings.Repeat("x", 3000) + credentialValue + "y", `{"a":["` + credentialValue + `"],"b":"\u0073` + credentialValue[1:] + `"}`,
	}
	n := 0
	s := holding(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "a="+credentialValue)
		if strings.HasPrefix(said[n], "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = io.WriteString(w, said[n])
	})
	s.inject(plugin.Injection{Host: "api.example.com", Header: "Authorization", Format: "Bearer {}", Secret: "api_key"})
	for ; n < len(said); n++ {
		res := s.must("https://api.example.com/x")
		if text := fmt.Sprint(res); strings.Contains(text, credentialValue) || strings.Count(text, secret.Mark) < 2 {
			t.Errorf("%.60q: the plugin got %.300s", said[n], text)
		}
		for cut := 1; cut < len(said[n]); cut += 1 + len(said[n])/200 {
			res := s.must("https://api.example.com/x", "max_bytes", cut, "as", "text")
			body, _ := res["body"].(string)
			for size := 8; size <= len(credentialValue); size++ {
				if strings.Contains(body, credentialValue[:size]) {
					t.Fatalf("%.60q cut at %d: the plugin got %q", said[n], cut, body[max(0, len(body)-60):])
				}
			}
		}
	}
}

func TestWhatMayNotBeInserted(t *testing.T) {
	t.Parallel()
	rule := plugin.Injection{Host: "api.example.com", Header: "Authorization", Secret: "api_key"}
	inQuery := plugin.Injection{Host: "api.example.com", Query: "key", Secret: "api_key"}
	ref := func(name string) []any {
		return []any{"headers", map[string]any{"X-A": map[string]any{"$secret": name}}}
	}
	for name, c := range map[string]struct {
		rules []plugin.Injection
		url   string
		args  []any
		code  plugin.Code
	}{
		"a header that is the host's":            {[]plugin.Injection{rule}, "https://api.example.com/", []any{"headers", map[string]any{"authorization": "mine"}}, plugin.CodeInvalidInput},
		"the same by reference":                  {[]plugin.Injection{rule}, "https://api.example.com/", []any{"headers", map[string]any{"authorization": map[string]any{"$secret": "api_key"}}}, plugin.CodeInvalidInput},
		"a parameter that is the host's":         {[]plugin.Injection{inQuery}, "https://api.example.com/?a=b&ke%79=c", nil, plugin.CodeInvalidInput},
		"a secret that is not declared":          {nil, "https://api.example.com/", ref("api_key"), plugin.CodeServiceDenied},
		"a secret that is bound to another host": {[]plugin.Injection{rule}, "https://other.example.org/", ref("api_key"), plugin.CodeServiceDenied},
		"a secret that is not set":               {[]plugin.Injection{{Host: "api.example.com", Secret: "none"}}, "https://api.example.com/", ref("none"), plugin.CodeMissingSecrets},
		"one to insert that is not set":          {[]plugin.Injection{{Host: "api.example.com", Header: "X-A", Secret: "none"}}, "https://api.example.com/", nil, plugin.CodeMissingSecrets},
		"a reference without a name":             {[]plugin.Injection{rule}, "https://api.example.com/", ref(""), plugin.CodeInvalidInput},
		"a reference and more":                   {[]plugin.Injection{rule}, "https://api.example.com/", []any{"headers", map[string]any{"X-A": map[string]any{"$secret": "api_key", "x": 1}}}, plugin.CodeInvalidInput},
		"a format without a place":               {[]plugin.Injection{rule}, "https://api.example.com/", []any{"headers", map[string]any{"X-A": map[string]any{"$secret": "api_key", "format": "x"}}}, plugin.CodeInvalidInput},
		"a header that is a number":              {nil, "https://api.example.com/", []any{"headers", map[string]any{"X-A": 7}}, plugin.CodeInvalidInput},
		"a secret with a line break":             {[]plugin.Injection{{Host: "api.example.com", Header: "X-A", Secret: "broken"}}, "https://api.example.com/", nil, plugin.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			s := holding(t, func(http.ResponseWriter, *http.Request) { asked++ })
			s.set("broken", "a secret\r\nX-Injected: yes")
			s.target.Manifest.Capabilities = []string{"http"}
			s.inject(c.rules...)
			res, err := s.fetch(c.url, c.args...)
			if plugin.CodeOf(err) != c.code || asked != 0 {
				t.Errorf("%v, %v; %d requests", res, err, asked)
			}
			if err != nil && strings.Contains(err.Error(), credentialValue) {
				t.Errorf("the error tells: %v", err)
			}
		})
	}
	s := holding(t, repeat)
	s.inject(plugin.Injection{Host: "api.example.com", Header: "X-A", Secret: "none", Optional: true})
	if res := s.must("https://api.example.com/"); strings.Contains(fmt.Sprint(res), "X-A") {
		t.Errorf("an optional one that is not set: %v", res)
	}
	s.target.Operation.Secrets = map[string]plugin.SecretNeed{"api_key": {}}
	if res := s.must("https://other.example.org/", ref("api_key")...); !strings.Contains(fmt.Sprint(res), secret.Mark) {
		t.Errorf("one that the plugin could read as well: %v", res)
	}
}

// TestNothingTellsTheCredential looks at what the host says of a request to its
// log, whatever the secret is at the time.
func TestNothingTellsTheCredential(t *testing.T) {
	t.Parallel()
	args := json.RawMessage(`{"url":"https://api.example.com/x","method":"POST","headers":{"X-A":{"$secret":"api_key","format":"Bearer {}"}}}`)
	s := holding(t, repeat)
	s.inject(plugin.Injection{Host: "api.example.com", Secret: "api_key"}, plugin.Injection{Host: "api.example.com", Header: "Authorization", Secret: "api_key"})
	for _, value := range []string{credentialValue, "another-value-0123456789"} {
		s.set("api_key", value)
		services := s.services()
		raw, err := services.Serve(t.Context(), fetchName, args)
		if err != nil || strings.Contains(string(raw), value) {
			t.Errorf("%s, %v", raw, err)
		}
		if !services.(interface{ Used() bool }).Used() {
			t.Error("the call's entry need not be on the disk")
		}
	}
	for _, u := range s.uses {
		if text := fmt.Sprintf("%+v", u); strings.Contains(text, "0123456789") {
			t.Errorf("the log has %s", text)
		}
	}
	if len(s.uses) != 2 {
		t.Errorf("%d uses", len(s.uses))
	}
}

func TestAnAccountsTokenIsInserted(t *testing.T) {
	t.Parallel()
	got := ""
	s := holding(t, func(w http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization"); repeat(w, r) })
	s.inject(plugin.Injection{Host: "api.example.com", Header: "Authorization", Format: "Bearer {}", Account: "google"})
	token := "ya29.token-of-an-account"
	s.broker.Accounts = tokens{&token}
	if res := s.must("https://api.example.com/"); got != "Bearer "+token || strings.Contains(fmt.Sprint(res), token) {
		t.Errorf("the server got %q, the plugin %v", got, res)
	}
	s.broker.Accounts = tokens{}
	if s.must("https://api.example.com/"); got != "" {
		t.Errorf("an account that is not chosen: %q", got)
	}
}

// tokens answer with one token.
type tokens struct{ token *string }

func (o tokens) Resolve(context.Context, *plugin.Target, *plugin.Call, AccountAsk) (AccountToken, error) {
	return AccountToken{Token: o.token}, nil
}

func (tokens) Connected(context.Context, *plugin.Call) ([]ConnectedAccount, error) { return nil, nil }

// TestACredentialOverPlainHTTP goes to a mapped host, and to this machine where
// that was granted, and nowhere else.
func TestACredentialOverPlainHTTP(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(repeat))
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	for host, grants := range map[string]egress.Grants{
		"api.example.com": {Map: map[string]string{"api.example.com": address}},
		address:           {Loopback: []string{"sample"}},
	} {
		s := holding(t, repeat)
		s.broker.web.connect = nil
		s.broker.Egress = grants
		s.target.Manifest.HTTP.Hosts = []string{host}
		s.inject(plugin.Injection{Host: host, Header: "Authorization", Secret: "api_key"})
		if res := s.must("http://" + host + "/"); !strings.Contains(fmt.Sprint(res), secret.Mark) {
			t.Errorf("%s: %v", host, res)
		}
	}
}
