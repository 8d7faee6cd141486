package service

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// echo answers with what it was asked.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	raw, _ := json.Marshal(map[string]any{"method": r.Method, "host": r.Host, "uri": r.RequestURI, "header": r.Header, "body": string(body), "length": r.ContentLength})
	_, _ = w.Write(raw)
}

func TestWhatIsSent(t *testing.T) {
	t.Parallel()
	s := newScene(t).serve(echo)
	for _, c := range []struct {
		name string
		args []any
		want map[string]any
	}{
		{"nothing but a URL", nil, map[string]any{"method": "GET", "host": "api.example.com", "uri": "/a?b=c", "body": ""}},
		{"parameters", []any{"params", map[string]any{"q": "a b&c", "flag": true, "n": 1.5, "list": []any{1, "x", false}, "none": nil}},
			map[string]any{"uri": "/a?b=c&flag=true&list=1&list=x&list=false&n=1.5&q=a+b%26c"}},
		{"JSON", []any{"method", "post", "json", map[string]any{"a": []int{1}}}, map[string]any{"method": "POST", "body": `{"a":[1]}`}},
		{"text", []any{"method", "PUT", "body", "hé"}, map[string]any{"method": "PUT", "body": "hé"}},
		{"bytes", []any{"method", "PATCH", "body_base64", base64.StdEncoding.EncodeToString([]byte("raw"))}, map[string]any{"body": "raw"}},
		{"an empty body", []any{"method", "POST", "body", ""}, map[string]any{"body": "", "length": 0.0}},
		{"a POST without a body", []any{"method", "POST"}, map[string]any{"method": "POST", "length": 0.0}},
		{"nulls", []any{"json", nil, "body", nil, "body_base64", nil, "headers", nil, "params", nil, "timeout_seconds", nil, "max_bytes", nil, "follow_redirects", nil},
			map[string]any{"method": "GET", "body": ""}},
	} {
		res := s.must("http://api.example.com/a?b=c#part", c.args...)
		got := res["json"].(map[string]any)
		for key, want := range c.want {
			if !reflect.DeepEqual(got[key], want) {
				t.Errorf("%s: %s is %v, want %v", c.name, key, got[key], want)
			}
		}
		if res["url"] == "" || res["status_code"] != 200.0 || res["truncated"] != false {
			t.Errorf("%s: %v", c.name, res)
		}
	}
}

func TestHeadersThatAreSent(t *testing.T) {
	t.Parallel()
	s := newScene(t).serve(echo)
	header := func(args ...any) map[string]any {
		return s.must("http://api.example.com/", args...)["json"].(map[string]any)["header"].(map[string]any)
	}
	if got, want := header(), (map[string]any{"User-Agent": []any{"mortise/0.1.0 (sample)"}, "Accept-Encoding": []any{"gzip"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	got := header("method", "POST", "json", []int{}, "headers", map[string]any{"authorization": "Bearer x", "User-Agent": "mine", "accept-encoding": "br", "X-A": " a\tb "})
	want := map[string]any{"User-Agent": []any{"mine"}, "Accept-Encoding": []any{"gzip"}, "Authorization": []any{"Bearer x"}, "X-A": []any{"a\tb"},
		"Content-Type": []any{"application/json"}, "Content-Length": []any{"2"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if got := header("method", "POST", "json", 1, "headers", map[string]any{"content-type": "application/x"}); got["Content-Type"].([]any)[0] != "application/x" {
		t.Errorf("got %v", got)
	}
}

func TestArgumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	headers := func(pairs ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return map[string]any{"headers": m}
	}
	many := map[string]any{}
	for i := range 70 {
		many["X-"+strings.Repeat("a", i+1)] = "x"
	}
	cases := []map[string]any{
		{"method": "CONNECT"}, {"method": "TRACE"}, {"method": "GET /"}, {"method": "FOO"}, {"method": 1},
		{"as": "json"}, {"timeout_seconds": 0}, {"timeout_seconds": -1}, {"timeout_seconds": "1"},
		{"max_bytes": 0}, {"max_bytes": 16<<20 + 1}, {"max_bytes": 1.5},
		{"json": 1}, {"body": "x"}, {"method": "HEAD", "body_base64": ""}, {"method": "POST", "json": 1, "body": "x"}, {"method": "POST", "body_base64": "%%%"}, {"method": "POST", "body_base64": "YQ"},
		{"params": map[string]any{"a": map[string]any{}}}, {"params": map[string]any{"a": []any{[]any{}}}}, {"params": "a=b"},
		{"retries": 3}, {"retries": -1}, {"retries": "1"}, {"verify": false}, {"URL": "x"}, {"follow_redirects": "no"},
		headers("A:", "x"), headers("", "x"), headers("A B", "x"), headers("X", "a\r\nY: b"), headers("X", "a\x00"), headers("x-a", "1", "X-A", "2"), headers("X", 1),
		headers("X", strings.Repeat("x", 17<<10)), {"headers": many},
	}
	for _, name := range egress.RefusedHeaders() {
		cases = append(cases, headers(name, "x"), headers(strings.ToLower(name), "x"))
	}
	for _, c := range cases {
		args := map[string]any{"url": "http://api.example.com/"}
		for name, value := range c {
			args[name] = value
		}
		raw, err := json2.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.fail(fetchName, string(raw)); plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), fetchName) {
			t.Errorf("%.100s: %v", raw, err)
		}
	}
	if err := s.fail(fetchName, `{"url":"http://api.example.com/","url":"http://b"}`); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Error(err)
	}
	if s.connections() != 0 || len(s.refusals) != 0 {
		t.Error("something was sent, or reported")
	}
}

func TestWhatComesBack(t *testing.T) {
	t.Parallel()
	s := newScene(t).serve(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		_, _ = io.WriteString(w, r.URL.Query().Get("body"))
	})
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	for _, c := range []struct {
		kind, body, as string
		key            string
		want           any
	}{
		{"application/json", `{"a":[1,null]}`, "", "json", map[string]any{"a": []any{1.0, nil}}},
		{"application/json; charset=utf-8", `"x"`, "auto", "json", "x"},
		{"application/problem+json", `false`, "", "json", false},
		{"application/json", ` {"n":12345678901234567890} `, "text", "body", ` {"n":12345678901234567890} `},
		{"application/json", `{"a":1}`, "bytes", "body_base64", "eyJhIjoxfQ=="},
		{"application/json", `{"a":1,"a":2}`, "", "body", `{"a":1,"a":2}`},
		{"application/json", `{"a":1}{}`, "", "body", `{"a":1}{}`},
		{"application/json", deep, "", "body", deep},
		{"application/json", ``, "", "body", ``},
		{"text/html", `<p>é</p>`, "", "body", `<p>é</p>`},
		{"text/plain", "\xff\xfe", "", "body_base64", "//4="},
		{"text/plain", "\xff\xfe", "text", "body_base64", "//4="},
		{"text/plain", "", "bytes", "body_base64", ""},
		{"", "{}", "", "body", "{}"},
	} {
		args := []any{"params", map[string]any{"type": c.kind}}
		if c.as != "" {
			args = append(args, "as", c.as)
		}
		res := s.must("http://api.example.com/?body="+urlEscape(c.body), args...)
		present := 0
		for _, key := range []string{"json", "body", "body_base64"} {
			if _, has := res[key]; has {
				present++
			}
		}
		if got, has := res[c.key]; !has || present != 1 || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %q as %q: got %v", c.kind, c.body, c.as, res)
		}
	}
}

func urlEscape(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		b.WriteString("%" + string("0123456789ABCDEF"[c>>4]) + string("0123456789ABCDEF"[c&15]))
	}
	return b.String()
}

func TestAnyStatusIsAnAnswer(t *testing.T) {
	t.Parallel()
	s := newScene(t).serve(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("X-Two", "a")
		w.Header().Add("X-Two", "b")
		w.Header().Set("X-Bytes", "caf\xe9")
		w.Header().Add("Set-Cookie", "a=1; Expires=Wed, 01 Jan 2031 00:00:00 GMT")
		w.Header().Add("Set-Cookie", "b=2")
		if got := r.Header.Get("Cookie"); got != "" {
			t.Errorf("a cookie was kept: %s", got)
		}
		w.WriteHeader(http.StatusTeapot)
	})
	for range 2 {
		res := s.must("http://api.example.com/")
		headers := res["headers"].(map[string]any)
		if res["status_code"] != 418.0 || headers["x-two"] != "a, b" || headers["set-cookie"] != "a=1; Expires=Wed, 01 Jan 2031 00:00:00 GMT\nb=2" || headers["x-bytes"] != "caf\uFFFD" {
			t.Errorf("%v", res)
		}
	}
}

func TestUseIsReported(t *testing.T) {
	t.Parallel()
	s := newScene(t).serve(echo)
	s.must("http://api.example.com/secret?token=x", "method", "POST", "body", "12345")
	if _, err := s.fetch("http://127.0.0.1/"); err == nil {
		t.Fatal("it was answered")
	}
	if len(s.uses) != 1 {
		t.Fatalf("%d uses", len(s.uses))
	}
	u := s.uses[0]
	if u.Request != "POST api.example.com" || u.Effect != httpWrite || u.Outcome != "200" || u.Attempts != 1 || u.Sent != 5 || u.Received == 0 || u.Took <= 0 || u.Call != s.call {
		t.Errorf("%+v", u)
	}
}

// TestOverTLS asks a mapped host: its name, not the address, is what the
// certificate must be for.
func TestOverTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	for host, fits := range map[string]bool{"example.com": true, "other.example.org": false} {
		s := newScene(t)
		s.target.Manifest.HTTP.Hosts = []string{host}
		s.broker.Egress = egress.Grants{Map: map[string]string{host: server.Listener.Addr().String()}}
		s.broker.web.connect = nil
		s.broker.web.tls = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		res, err := s.fetch("https://"+host+"/", "method", "POST", "body", "x")
		if fits && (err != nil || res["json"].(map[string]any)["host"] != host) {
			t.Errorf("%s: %v, %v", host, res, err)
		}
		if e := plugin.AsError(err); !fits && (e == nil || e.Code != plugin.CodeUnavailable || e.Retryable || !strings.Contains(e.Message, "certificate")) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestConnectionsAreKeptApart(t *testing.T) {
	t.Parallel()
	s := newScene(t).serve(echo)
	ask := func(tenant, name string) {
		s.call.Tenant, s.target.Manifest.Name = tenant, name
		s.must("http://api.example.com/")
	}
	for range 3 {
		ask("t", "a")
		ask("t", "b")
		ask("u", "a")
	}
	if n := s.connections(); n != 3 {
		t.Errorf("%d connections", n)
	}
	if err := s.broker.Close(); err != nil {
		t.Fatal(err)
	}
	ask("t", "a")
	if n := s.connections(); n != 4 {
		t.Errorf("%d connections after closing", n)
	}
	for i := range 2 * maxClients {
		s.broker.web.client("t", string(rune('a'+i%26))+strings.Repeat("x", i))
	}
	if n := len(s.broker.web.clients); n != maxClients {
		t.Errorf("%d clients are kept", n)
	}
}
