package agent_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/plugin"
)

// One who has no secret does not learn by the time that a refusal takes whether there
// is a channel: with whatever headers, for whatever scheme, the body is hashed once.
func TestARefusalTakesAsLongWhetherThereIsAChannelOrNot(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	all := map[string]agent.Channel{}
	for _, scheme := range webhook.Schemes() {
		all[string(scheme)] = agent.Channel{Scheme: scheme, Secret: "s"}
	}
	d.hire("shop", agent.Settings{Channels: all})
	body := []byte(`{"text":"` + strings.Repeat("x", webhook.MaxBody-20) + `"}`)
	now := time.Now().Unix()
	headers := map[string]http.Header{
		"none":     {},
		"standard": {"Webhook-Id": {"m"}, "Webhook-Timestamp": {time.Unix(now, 0).Format("2006")}, "Webhook-Signature": {"v1,AAAA"}},
		"odd time": {"Webhook-Id": {"m"}, "Webhook-Timestamp": {"-1"}, "Webhook-Signature": {"v1,AAAA"}, "X-Slack-Request-Timestamp": {"-1"}, "X-Slack-Signature": {"v0=aa"}},
		"others":   {"X-Slack-Request-Timestamp": {"1"}, "X-Slack-Signature": {"v0=aa"}, "X-Github-Delivery": {"1"}, "X-Hub-Signature-256": {"sha256=aa"}, "X-Telegram-Bot-Api-Secret-Token": {"x"}},
	}
	type way struct{ at, header string }
	fastest := map[way]time.Duration{}
	rounds := 15
	if testing.Short() { // without the measure below, one round tests the answers
		rounds = 1
	}
	for range rounds { // the least of many says what it takes, however busy the machine is
		for _, at := range append([]string{"nowhere", "missing"}, string(webhook.Standard), string(webhook.Slack), string(webhook.GitHub), string(webhook.Telegram)) {
			for name, header := range headers {
				id := "shop"
				if at == "missing" {
					id = "missing"
				}
				begun := time.Now()
				_, err := d.Receive(context.Background(), "t", id, at, header, body, nil)
				took := time.Since(begun)
				if plugin.CodeOf(err) != plugin.CodeUnauthenticated {
					t.Fatalf("%s with headers %s: %v", at, name, err)
				}
				if had, measured := fastest[way{at, name}]; !measured || took < had {
					fastest[way{at, name}] = took
				}
			}
		}
	}
	if testing.Short() {
		t.Skip("make test-long: the time of a refusal with and without a channel")
	}
	var took []time.Duration
	for _, least := range fastest {
		took = append(took, least)
	}
	if slices.Min(took)*10 < slices.Max(took) { // without the hash it is sixty times
		t.Errorf("a refusal takes from %s to %s: %v", slices.Min(took), slices.Max(took), fastest)
	}
}
