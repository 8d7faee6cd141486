package llm

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// A round is judged by the errors of all models that were asked in it: it comes
// again where one of them says that it may succeed in a while, whichever was asked
// last, after the shortest of their waits; models that cannot help are not asked again.
func TestARoundIsJudgedByAllItsErrors(t *testing.T) {
	t.Parallel()
	refuse := func(w *wire, status int, after string) func(http.ResponseWriter) {
		return func(out http.ResponseWriter) {
			if after != "" {
				out.Header().Set("Retry-After", after)
			}
			w.refuse(out, status, map[int]string{402: "billing_error", 429: "rate_limit_error", 503: "overloaded_error", 400: "invalid_request_error", 401: "authentication_error"}[status], "no")
		}
	}
	waits := map[int]bool{429: true, 503: true} // what may succeed in a while
	for _, first := range []int{429, 402} {
		for _, second := range []int{429, 402} {
			for _, third := range []int{429, 402, 503, 400, 401} {
				name := fmt.Sprint(first, second, third)
				a, b, c := newWire(t, "anthropic"), newWire(t, "anthropic"), newWire(t, "anthropic")
				a.script(refuse(a, first, ""), a.ok())
				b.script(refuse(b, second, ""), b.ok())
				c.script(refuse(c, third, ""), c.ok())
				d := newDesk(t, nil, a.model("a", Light), b.model("b", Light), c.model("c", Heavy))
				got := d.ask(Query{})
				again := waits[first] || waits[second] || waits[third]
				if got.OK != again || len(d.waits) != map[bool]int{true: 1}[again] {
					t.Errorf("%s: ok %t, %v, after %v", name, got.OK, got.Err, d.waits)
				}
				if want := map[bool]string{true: "a"}[first == 429]; want != "" && got.Model != want {
					t.Errorf("%s: answered by %s", name, got.Model)
				}
			}
		}
	}

	a, b := newWire(t, "anthropic"), newWire(t, "openai")
	a.script(refuse(a, 429, "30"), a.ok())
	b.script(refuse(b, 429, "3"), b.no(402, "insufficient_quota"))
	d := newDesk(t, nil, a.model("a", Light), b.model("b", Heavy))
	got := d.ask(Query{})
	if !got.OK || got.Model != "a" || !slices.Equal(d.waits, []time.Duration{3 * time.Second, 27 * time.Second}) || len(a.requests()) != 2 {
		t.Errorf("the shortest wait first, and each model after its own: %+v after %v, %d requests", got, d.waits, len(a.requests()))
	}

	a, b = newWire(t, "anthropic"), newWire(t, "openai")
	a.script(refuse(a, 429, "3600"))
	b.script(b.no(402, "insufficient_quota"))
	d = newDesk(t, nil, a.model("a", Light), b.model("b", Heavy))
	if got = d.ask(Query{}); got.OK || got.Err.Kind != Pace || got.Err.RetryAfter != time.Hour || !strings.Contains(got.Err.Message, "too late") {
		t.Errorf("it says which wait is too long: %+v", got.Err)
	}
}
