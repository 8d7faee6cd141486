package policy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// BenchmarkDecide is one decision among n policies of which four are about
// everything, as house rules are, and the others each about one operation.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{20, 50, 500} {
		var text strings.Builder
		text.WriteString(`
			permit (principal, action == Action::"execute", resource) when { resource.kind == "tool" && resource.effects.isEmpty() };
			forbid (principal, action, resource is Operation) when { resource.tags.contains("external_send") } unless { context.scopes.contains("send") };
			forbid (principal in Group::"guests", action, resource);
			forbid (principal, action == Action::"execute", resource) when { context.depth > 4 };
		`)
		for i := range n - 4 {
			fmt.Fprintf(&text, "permit (principal in Role::\"r%d\", action == Action::\"execute\", resource == Operation::\"p%d/run\") when { context.scopes.contains(\"s%d\") };\n", i%7, i, i)
		}
		e := open(b, policy.Options{Sources: texts(text.String()), Standing: func(string, plugin.Principal) policy.Standing { return policy.Standing{Roles: []string{"r3"}} }})
		count := target("text.count", "words", plugin.Tool)
		mail := target("p3", "run", plugin.Operator, "gmail_send")
		call := &plugin.Call{Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "local:owner", Scopes: []string{"*", "s3"}}, Origin: plugin.OriginCLI, Input: json.RawMessage(`{"text":"a"}`)}
		for _, t := range []*plugin.Target{count, mail} {
			b.Run(fmt.Sprintf("%d/%s", n, t.Operation.Kind), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if d := e.Decide(t, call); d.Verdict != plugin.Allow {
						b.Fatal(d)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("%d/parallel", n), func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					e.Decide(count, call)
				}
			})
		})
	}
}

// BenchmarkLoad is what a start pays for the policies.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := policy.New(policy.Default); err != nil {
			b.Fatal(err)
		}
	}
}
