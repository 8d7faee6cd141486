package rest_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/ratelimit"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// Calls of limited that each tenant may make in a day, and tries.
const (
	dailyCalls = 5
	triedCalls = 8
)

// limits has each tenant pass its limits, all at once: each has the whole of its own.
func (c *crossing) limits(all []*party) {
	var doing sync.WaitGroup
	for _, p := range all {
		doing.Go(func() {
			passed := 0
			for n := range triedCalls {
				a := c.ask(p.token, "POST", "/api/v1/operations/shared/limited:execute", fmt.Sprintf(`{"input":{"text":"%d"}}`, n))
				after, _ := strconv.Atoi(a.header.Get("Retry-After"))
				switch {
				case a.status == 200 && a.at("data", "word") == p.word:
					passed++
				case a.status != 429 || a.at("code") != "budget_exceeded" || after < 1:
					c.fault("%s at its limit is answered %s, %v", p.word, a, a.header)
				}
				p.made(a)
			}
			if passed != dailyCalls {
				c.fault("%s makes %d calls of the %d that it has in a day", p.word, passed, dailyCalls)
			}
			for _, take := range []struct {
				cost    string
				allowed bool
			}{{"60", true}, {"59", false}} { // all that a bucket holds, and a minute's worth more
				a := c.ask(p.token, "POST", "/api/v1/operations/shared/pace:execute", `{"input":{"cost":`+take.cost+`},"fresh":true}`)
				if a.status != 200 || a.at("data", "allowed") != take.allowed {
					c.fault("%s takes %s from its bucket and is answered %s", p.word, take.cost, a)
				}
				p.made(a)
			}
		})
	}
	doing.Wait()
}

// metrics holds the series of each tenant against what it did. No tenant sees any.
func (c *crossing) metrics(all []*party) {
	got := c.is(c.ask("mrt_root", "GET", "/metrics", ""), 200, "")
	for _, p := range all {
		name := p.app.Config.Tenant
		for _, want := range []string{
			fmt.Sprintf(`mortise_calls_total{gen_ai_tool_name="shared/limited",mortise_tenant=%q,outcome="succeeded"} %d`, name, dailyCalls),
			fmt.Sprintf(`mortise_calls_total{gen_ai_tool_name="shared/limited",mortise_tenant=%q,outcome="budget_exceeded"} %d`, name, triedCalls-dailyCalls),
			fmt.Sprintf(`mortise_calls_total{gen_ai_tool_name="shared/pace",mortise_tenant=%q,outcome="succeeded"} 2`, name),
			fmt.Sprintf(`mortise_calls_waiting{mortise_status="queued",mortise_tenant=%q}`, name),
		} {
			if !strings.Contains(got.text, want) {
				c.fault("there is no %s", want)
			}
		}
		if a := c.ask(p.token, "GET", "/metrics", ""); a.status != 403 || a.at("code") != "policy_denied" {
			c.fault("a tenant sees metrics: %s", a)
		}
	}
	if strings.Contains(got.text, "-word") || strings.Contains(got.text, "otel_metric_overflow") {
		c.fault("the metrics have what they should not: %s", got.text)
	}
}

// A tenant that does as much as it may, with as many tokens as it likes, leaves room for
// another: of requests that are answered at a time, of requests a second and of streams.
func TestATenantAtItsLimitsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	rates := ratelimit.New[string](1.0/3600, 12, 1000) // no request comes back while the test runs
	b := beginWith(t, rest.Options{Share: 2, Rates: rates, Streams: 4, PerToken: 2}, "", app.Options{})
	all := b.parties(2)
	busy, calm := all[0], all[1]
	_, second, err := busy.app.As(busy.app.Principal).Tokens().Create(t.Context(), host.NewToken{Name: "second", Scopes: host.Scopes})
	if err != nil {
		t.Fatal(err)
	}
	say := func(token string) answer {
		return b.ask(token, "POST", "/api/v1/operations/shared/say:execute", `{"input":{"text":"one"},"fresh":true}`)
	}
	b.is(say(calm.token), 200, "succeeded") // its process runs

	end := filepath.Join(t.TempDir(), "end")
	var held sync.WaitGroup
	refused := make(chan answer, 8)
	for n := range 6 { // three have room: two of a token, and one more of the tenant
		held.Go(func() {
			token := []string{busy.token, second}[n%2]
			if a := b.ask(token, "POST", "/api/v1/operations/shared/hold:execute", fmt.Sprintf(`{"input":{"file":%q},"fresh":true}`, end)); a.status != 200 {
				refused <- a
			}
		})
	}
	ofTenant := 0
	for range 3 {
		a := b.is(<-refused, 429, "rate_limited")
		if strings.Contains(a.text, "a tenant has at most 3 requests") {
			ofTenant++
		}
	}
	if ofTenant == 0 {
		t.Error("the tokens of a tenant have no bound together")
	}
	b.is(say(calm.token), 200, "succeeded") // while the calls of the busy tenant last
	b.write(end, "now")
	held.Wait()
	if len(refused) > 0 {
		t.Errorf("it is refused %s", <-refused)
	}

	var open []interface{ leave() }
	for _, token := range []string{busy.token, second} {
		open = append(open, b.followed(token, "GET", "/api/v1/events", ""))
	}
	if a := b.ask(second, "GET", "/api/v1/events", ""); a.status != 429 || !strings.Contains(a.text, "the tenant has as many streams") {
		t.Errorf("a tenant opens more than half of all streams: %s", a)
	}
	for range 2 {
		open = append(open, b.followed(calm.token, "GET", "/api/v1/events", ""))
	}
	for _, f := range open {
		f.leave()
	}

	many := 0
	for range 30 { // more than a bucket has
		if a := say(busy.token); a.status == 429 {
			many++
		}
	}
	if many == 0 {
		t.Error("a token has no bound")
	}
	b.is(say(calm.token), 200, "succeeded")
}
