package rest_test

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// A host whose store cannot be used answers no request with a fault of its own: what the store is
// needed for is unavailable, and says when to come again. Every route of the document is asked.
func TestAnOutageOfTheStoreIsUnavailable(t *testing.T) {
	t.Parallel()
	a, err := app.Open(t.Context(), app.Options{Home: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() }) // it cannot record that it ends
	h := rest.New(rest.Options{Host: a.Host, Authenticate: authenticate, Rate: 1e6, Burst: 1e6, WorkTime: testwait.Limit, Recheck: time.Hour, Beat: time.Hour})
	if err := a.Store.Close(); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(rest.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\{[a-z_]+\}`)
	unavailable := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for method := range doc.Paths[path] {
			where := parameter.ReplaceAllString(path, "00000000-0000-7000-8000-000000000000")
			var body *strings.Reader
			if method = strings.ToUpper(method); method == http.MethodGet {
				body = strings.NewReader("")
			} else {
				body = strings.NewReader(bodies[method+" "+path])
			}
			r := httptest.NewRequest(method, "http://localhost"+where, body)
			if body.Len() > 0 {
				r.Header.Set("Content-Type", "application/json")
			}
			r.RemoteAddr = "127.0.0.1:1000"
			r.Header.Set("Authorization", "Bearer mrt_site")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code == http.StatusInternalServerError {
				t.Errorf("%s %s is answered %d %s", method, path, w.Code, w.Body)
			}
			if w.Code == http.StatusServiceUnavailable {
				if w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"code":"unavailable"`) {
					t.Errorf("%s %s is answered %v %s, want unavailable and when to come again", method, path, w.Header(), w.Body)
				}
				unavailable[method+" "+path] = true
			}
		}
	}
	for _, wanted := range []string{
		"GET /api/v1/calls", "GET /api/v1/calls/{id}", "GET /api/v1/approvals", "GET /api/v1/plans", "GET /api/v1/sessions", "GET /api/v1/ledger/entries", "POST /api/v1/sessions",
		"GET /api/v1/users", "GET /api/v1/tokens", "POST /api/v1/tokens", "GET /api/v1/secrets",
	} {
		if !unavailable[wanted] {
			t.Errorf("%s is not answered unavailable, of %d routes that are", wanted, len(unavailable))
		}
	}
}

// bodies are of routes that need one to get as far as the store.
var bodies = map[string]string{
	"POST /api/v1/sessions": `{}`, "POST /api/v1/tokens": `{"name":"t"}`,
}

// While PostgreSQL restarts, requests that read, change and execute are answered as unavailable,
// with a time after which to come again, and after it as before.
func TestARestartOfPostgreSQLIsUnavailable(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	url := server.Open(t)
	b := beginWith(t, rest.Options{WorkTime: time.Second, Wait: time.Second, MaxWait: time.Second}, "", app.Options{Database: url})
	requests := []struct{ method, path, body string }{
		{"GET", "/api/v1/calls", ""}, {"GET", "/api/v1/approvals", ""}, {"GET", "/api/v1/sessions", ""}, {"POST", "/api/v1/sessions", `{}`},
		{"POST", line, `{"input":{"text":"a"}}`}, {"POST", "/api/v1/operations/desk/upper:execute", `{"input":{"text":"a"},"fresh":true}`},
	}
	ask := func(i int) answer { return b.ask("mrt_ann", requests[i].method, requests[i].path, requests[i].body) }
	for _, mode := range []string{"fast", "immediate"} {
		server.Stop(t, mode)
		outages := 0
		for range 2 {
			for i, r := range requests {
				a := ask(i)
				if a.status == 500 || a.status == 504 {
					t.Errorf("stopped %s, %s %s is answered %s", mode, r.method, r.path, a)
				}
				if a.status == 503 {
					if outages++; a.at("code") != "unavailable" || a.header.Get("Retry-After") == "" {
						t.Errorf("stopped %s, %s %s is answered %s %v, want unavailable and when to come again", mode, r.method, r.path, a, a.header)
					}
				}
			}
		}
		if outages < 6 {
			t.Errorf("stopped %s, %d requests are answered 503, want at least those that read", mode, outages)
		}
		server.Start(t)
		for i, r := range requests {
			testwait.Until(t, r.method+" "+r.path+" is answered again", func() bool { return ask(i).status == 200 })
		}
	}
}
