package policy_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// TestAKeptDecisionIsTheOneThatWouldBeMade asks one engine many questions that differ in few
// ways, and holds each answer against that of an engine that was never asked before.
func TestAKeptDecisionIsTheOneThatWouldBeMade(t *testing.T) {
	t.Parallel()
	const standing = `
		@id("open") permit (principal, action == Action::"execute", resource) when { resource.effects.isEmpty() };
		@id("staff") permit (principal in Group::"staff", action == Action::"execute", resource);
		@id("guests") forbid (principal in Group::"guests", action, resource);
		@id("deep") forbid (principal, action, resource) when { context.depth > 1 };
		@id("scope") forbid (principal, action, resource is Operation) when { resource.tags.contains("secret") } unless { context.scopes.contains("s") };
		@id("agents") @approval("an agent") permit (principal, action, resource) when { context.agent == "bot" };
		@id("consent") forbid (principal, action == Action::"execute", resource) when { resource.effects.contains("send") } unless { context.consent.contains("send") };
		@id("dialect") forbid (principal, action, resource in Plugin::"mail") when { resource.dialect == "runtime" && context.tenant == "b" };
	`
	const arguments = `@id("big") forbid (principal, action, resource == Operation::"mail/send") when { context.input has n && context.input.n > 3 };`
	known := policy.Standing{}
	options := func(text string) policy.Options {
		return policy.Options{Sources: texts(text), Standing: func(string, plugin.Principal) policy.Standing { return known }}
	}
	random := rand.New(rand.NewPCG(11, 92))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	some := func(of ...string) (found []string) {
		for _, one := range of {
			if random.IntN(2) == 0 {
				found = append(found, one)
			}
		}
		return found
	}
	verdicts := map[plugin.Verdict]int{}
	for _, text := range []string{standing, standing + arguments} {
		e := open(t, options(text))
		for range 1500 {
			known = policy.Standing{Groups: some("staff", "guests"), Consent: some("send")}
			asked := target(pick("mail", "text"), pick("send", "count"), plugin.Operator, some("send", "write")...)
			asked.Manifest.Dialect, asked.Operation.PolicyTags = pick("native", "runtime"), some("secret", plugin.TagRequiresApproval)
			call := &plugin.Call{
				Tenant: pick("a", "b"), Principal: plugin.Principal{Type: pick("user", "service"), ID: pick("ann", "bob"), Scopes: some("s"), Groups: some("guests")},
				Agent: pick("", "bot"), Depth: random.IntN(3), Labels: some(plugin.Untrusted, "x"), Origin: plugin.OriginCLI,
				Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, random.IntN(6))),
			}
			action := []policy.Action{policy.Execute, policy.List, policy.Approve, policy.Configure}[random.IntN(4)]
			question := &policy.Question{Action: action, Target: asked, Call: call}
			got, want := e.Ask(question), open(t, options(text)).Ask(question)
			verdicts[got.Verdict]++
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%s of %s/%s by %+v: %v, and an engine that was not asked before says %v", action, asked.Manifest.Name, asked.Operation.Name, call, got, want)
			}
		}
	}
	if len(verdicts) != 3 {
		t.Errorf("verdicts were %v", verdicts)
	}
}
