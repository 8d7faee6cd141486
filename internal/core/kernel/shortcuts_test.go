package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/reported"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/plugin"
)

// verdicts are policies by what they say of every call of ann's.
var verdicts = map[plugin.Verdict]string{
	plugin.Allow:             `permit (principal, action in [Action::"execute", Action::"list"], resource);`,
	plugin.AllowWithApproval: `@approval("a person looks first") permit (principal, action in [Action::"execute", Action::"list"], resource);`,
	plugin.Deny:              `permit (principal, action == Action::"list", resource);`,
}

func (g *gated) under(t *testing.T, v plugin.Verdict) {
	t.Helper()
	text := verdicts[v]
	g.rules.text.Store(&text)
	if err := g.engine.Reload(); err != nil {
		t.Fatal(err)
	}
}

// A shortcut is a way to an answer that leaves out a part of the way that a first call takes.
type shortcut struct {
	// prepare makes it possible, under a policy that allows everything. It may be nil.
	prepare func(t *testing.T, g *gated, call plugin.Call)
	take    func(t *testing.T, g *gated, call plugin.Call) (plugin.Result, error)

	own  bool // it gives the caller the answer that a call of their own had before, whatever policy says now
	runs bool // it runs the operation again where policy allows that
}

func once(t *testing.T, g *gated, call plugin.Call) {
	t.Helper()
	if res, err := g.Call(t.Context(), call); err != nil || res.Status != plugin.Succeeded {
		t.Fatalf("%+v, %v", res, err)
	}
}

func again(t *testing.T, g *gated, call plugin.Call) (plugin.Result, error) {
	t.Helper()
	return g.Call(t.Context(), call)
}

func under(key string, f func(t *testing.T, g *gated, call plugin.Call) (plugin.Result, error)) func(t *testing.T, g *gated, call plugin.Call) (plugin.Result, error) {
	return func(t *testing.T, g *gated, call plugin.Call) (plugin.Result, error) {
		call.Key = key
		return f(t, g, call)
	}
}

// shortcuts are all of them.
var shortcuts = map[string]shortcut{
	"no shortcut": {take: again, runs: true},
	"the cache":   {prepare: once, take: again, runs: true},
	"the cache of another": {
		prepare: func(t *testing.T, g *gated, call plugin.Call) {
			call.Principal.ID = "eve"
			once(t, g, call)
		},
		take: again, runs: true,
	},
	"a decision that policy keeps": {
		prepare: func(t *testing.T, g *gated, call plugin.Call) {
			call.Fresh = true
			once(t, g, call)
		},
		take: func(t *testing.T, g *gated, call plugin.Call) (plugin.Result, error) {
			call.Fresh = true
			return g.Call(t.Context(), call)
		},
		runs: true,
	},
	"the same key": {
		prepare: func(t *testing.T, g *gated, call plugin.Call) { _, _ = under("k", again)(t, g, call) },
		take:    under("k", again), own: true,
	},
	"a dry run": {
		take: func(t *testing.T, g *gated, call plugin.Call) (plugin.Result, error) {
			return g.Call(t.Context(), dry(call))
		},
		runs: true,
	},
	"a call that was queued": {
		prepare: func(t *testing.T, g *gated, call plugin.Call) {
			call.NoWait, call.Key = true, "queued"
			if _, err := g.Call(t.Context(), call); err != nil {
				t.Fatal(err)
			}
		},
		take: func(t *testing.T, g *gated, call plugin.Call) (plugin.Result, error) {
			call.Key = "queued"
			prior, err := g.ledger.LookupCall(t.Context(), &call, call.Operation)
			if err != nil || prior == nil {
				t.Fatal(prior, err)
			}
			return g.Resume(t.Context(), "local", prior.CallID)
		},
		runs: true,
	},
}

// TestNoShortcutLeadsPastAVerdict: on every way to an answer, policy is asked as it is now. If it
// does not allow the call, nothing runs, and the caller gets no answer but that of an earlier call
// of their own. The one exception is a dry run of an operation with effects.
func TestNoShortcutLeadsPastAVerdict(t *testing.T) {
	t.Parallel()
	kinds := map[plugin.Kind]func(*plugin.Target){
		plugin.Tool:     func(*plugin.Target) {},
		plugin.Agent:    func(t *plugin.Target) { t.Operation.Kind = plugin.Agent },
		plugin.Adapter:  func(t *plugin.Target) { t.Operation.Kind = plugin.Adapter },
		plugin.Operator: func(t *plugin.Target) { operator("db_write")(t); brokered(t) },
	}
	for kind, change := range kinds {
		for name, way := range shortcuts {
			for verdict := range verdicts {
				t.Run(fmt.Sprintf("%s, %s, %s", kind, name, verdict), func(t *testing.T) {
					t.Parallel()
					g := newGated(t, target(t, "p", "op", change))
					g.Kernel.Runner = level{g, "full"}
					g.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
						return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`"the answer"`)}, nil
					}
					call := asking("p/op", `{}`)
					if way.prepare != nil {
						g.under(t, plugin.Allow)
						way.prepare(t, g, call)
					}
					g.under(t, verdict)
					before := g.runs.Load()
					res, err := way.take(t, g, call)
					answered, ran := string(res.Data) == `"the answer"`, g.runs.Load() > before

					dryEffect := name == "a dry run" && kind == plugin.Operator && verdict == plugin.AllowWithApproval
					if want := verdict == plugin.Allow || way.own || dryEffect; answered != want {
						t.Errorf("it is answered: %v, want %v: %+v, %v", answered, want, res, err)
					}
					if ran && !way.runs || ran && verdict != plugin.Allow && !dryEffect {
						t.Errorf("it ran: %+v, %v", res, err)
					}
					if verdict == plugin.Deny && !way.own && plugin.CodeOf(err) != plugin.CodePolicyDenied {
						t.Errorf("policy denies it, and the code is %q (%v)", plugin.CodeOf(err), err)
					}
				})
			}
		}
	}
}

// TestADecisionThatIsKeptIsUpheldByPolicy: who asks the same question again gets the first answer
// only as long as policy still gives it. A person's approval of the question stays.
func TestADecisionThatIsKeptIsUpheldByPolicy(t *testing.T) {
	t.Parallel()
	for first := range verdicts {
		for now := range verdicts {
			t.Run(fmt.Sprintf("%s, then %s", first, now), func(t *testing.T) {
				t.Parallel()
				tool := reported.Resolve(reported.Ref("editor", "Write", ""), schema.Any)
				g := newGated(t, tool)
				tools := &reported.Tools{Counts: bridge.Counts{Of: g.store}}
				o := g.Options
				o.Definitions = tools
				g.Kernel, g.do, g.preview = kernel.New(o), tools.Run, tools.Preview
				call := asking(tool.Name(), `{"path":"a"}`)
				call.Origin, call.Key = plugin.OriginDecision, "k"

				g.under(t, first)
				res, err := g.Call(t.Context(), call)
				if first == plugin.AllowWithApproval {
					g.approve(t, res.Approval.ID)
					if res, err = g.Resume(t.Context(), "local", res.CallID); err != nil {
						t.Fatal(err)
					}
				}
				allowed := first != plugin.Deny
				if (err == nil && res.Status == plugin.InProgress) != allowed {
					t.Fatalf("at first: %+v, %v", res, err)
				}
				g.under(t, now)
				res, err = g.Call(t.Context(), call)
				want := now == plugin.Allow || now == plugin.AllowWithApproval && first == plugin.AllowWithApproval
				if got := err == nil && res.Status == plugin.InProgress; got != want {
					t.Errorf("the question again: allowed is %v, want %v: %+v, %v", got, want, res, err)
				}
			})
		}
	}
}
