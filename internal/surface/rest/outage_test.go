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
