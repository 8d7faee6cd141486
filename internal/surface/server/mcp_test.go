package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/server"
)

// Who is to give a client its token is said to everyone, where there are providers, and what is
// asked of /mcp goes to the API.
func TestWhereClientsOfTheProtocolAreSent(t *testing.T) {
	t.Parallel()
	var issuers []string
	h := server.New(server.Options{
		API:     http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "api "+r.URL.Path) }),
		Issuers: func() (string, []string) { return "https://mortise.example.com", issuers },
	})
	ask := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Code, w.Body.String()
	}
	if status, said := ask("POST", "/mcp"); status != 200 || said != "api /mcp" {
		t.Errorf("/mcp is answered %d %s", status, said)
	}
	if status, _ := ask("GET", server.MetadataPath); status != 404 {
		t.Errorf("without providers: %d", status)
	}
	issuers = []string{"https://login.example.com"}
	for _, path := range []string{server.MetadataPath, server.MetadataPath + "/mcp"} {
		status, said := ask("GET", path)
		if status != 200 || !strings.Contains(said, `"authorization_servers":["https://login.example.com"]`) || !strings.Contains(said, `"resource":"https://mortise.example.com"`) {
			t.Errorf("%s: %d %s", path, status, said)
		}
	}
	if status, _ := ask("POST", server.MetadataPath); status != 405 {
		t.Errorf("it takes a POST: %d", status)
	}
}
