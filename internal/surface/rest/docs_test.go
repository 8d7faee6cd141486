package rest_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/exchange"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// Every exchange that docs/api.md shows is so.
func TestTheExchangesOfThePage(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	all, err := exchange.Read("../../../docs/api.md")
	if err != nil || len(all) < 10 {
		t.Fatalf("the page has %d exchanges, %v", len(all), err)
	}
	known := exchange.Values{} // of the last answers that have one
	for _, e := range all {
		token := "mrt_ann"
		if strings.HasPrefix(e.Path, "/api/v1/agents") || strings.HasPrefix(e.Path, "/api/v1/policies/") || e.Method+e.Path == "POST/api/v1/tokens" {
			token = "mrt_root" // who may configure them
		}
		for i := range e.Headers {
			e.Headers[i] = known.Fill(e.Headers[i])
		}
		a := b.ask(token, e.Method, known.Fill(e.Path), e.Body, e.Headers...)
		for name, made := range map[string]any{"CALL": a.at("call_id"), "ID": a.at("id"), "VERSION": a.at("version")} {
			if is, has := made.(string); has && (name != "VERSION" || e.Method == "GET") {
				known[name] = is
			}
		}
		if made := a.header.Get("ETag"); made != "" {
			known["TAG"] = made
		}
		if at := known.Differs(e, a.status, a.header.Values, a.text); at != "" {
			t.Errorf("docs/api.md:%d: %s: %s", e.Line, at, a)
		}
	}
}
