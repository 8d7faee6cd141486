package policy_test

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// TestARuleMeansWhatItSays holds the policies that an allow-list becomes
// against the plain reading of its rules.
func TestARuleMeansWhatItSays(t *testing.T) {
	t.Parallel()
	operations := []string{"mail/send", "mail/read", "text.count/words", "mail", "text.*", "*", "mail/*", "*/send", "*a*/*e*", "*/", "/send", "a/b/c"}
	principals := []string{"ann", "local:owner", "local:*", "*", "*n*"}
	effects := []string{"db_write", "gmail_send", "*_write", "*", "db_*"}
	kinds := []plugin.Kind{plugin.Tool, plugin.Operator, plugin.Agent}
	seen := map[plugin.Verdict]int{}
	r := rand.New(rand.NewPCG(1, 2026))
	few := func(from []string) (some []string) {
		for range r.IntN(3) {
			some = append(some, from[r.IntN(len(from))])
		}
		return some
	}
	for range 1000 {
		rules := make([]policy.Rule, r.IntN(3))
		for i := range rules {
			rules[i] = policy.Rule{Operations: few(operations), Principals: few(principals), Effects: few(effects), Kinds: kinds[:r.IntN(len(kinds))]}
		}
		e, err := policy.New(rules)
		if err != nil {
			t.Fatalf("%+v: %v", rules, err)
		}
		for _, name := range []string{"mail", "text.count"} {
			of := target(name, []string{"send", "read", "words"}[r.IntN(3)], kinds[r.IntN(3)], few([]string{"db_write", "gmail_send", "db_read"})...)
			call := &plugin.Call{Principal: plugin.Principal{ID: []string{"ann", "local:owner", "bob"}[r.IntN(3)]}}
			want := plugin.Deny
			if slices.ContainsFunc(rules, func(r policy.Rule) bool { return allows(r, of, call) }) {
				want = plugin.Allow
			}
			seen[want]++
			if d := e.Decide(of, call); d.Verdict != want {
				t.Fatalf("%+v\n%s, %s, %v by %s: got %s %q, want %s", rules, of.Name(), of.Operation.Kind, of.Operation.Effects, call.Principal.ID, d.Verdict, d.Reasons, want)
			}
		}
	}
	if seen[plugin.Allow] < 100 || seen[plugin.Deny] < 100 {
		t.Errorf("%v", seen)
	}
}

func allows(r policy.Rule, of *plugin.Target, call *plugin.Call) bool {
	any := func(patterns []string, names ...string) bool {
		return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
			return p == "*" || slices.ContainsFunc(names, func(name string) bool { matched, _ := path.Match(p, name); return matched })
		})
	}
	if !any(r.Operations, of.Name(), of.Manifest.Name) || len(r.Kinds) > 0 && !slices.Contains(r.Kinds, of.Operation.Kind) || !any(r.Principals, call.Principal.ID) {
		return false
	}
	return !slices.ContainsFunc(of.Operation.Effects, func(effect string) bool { return len(r.Effects) == 0 || !any(r.Effects, effect) })
}

// TestWhoMayRunMaySee: an allow-list is about seeing too, and about nothing else.
func TestWhoMayRunMaySee(t *testing.T) {
	t.Parallel()
	e, err := policy.New(policy.Default)
	if err != nil {
		t.Fatal(err)
	}
	for action, want := range map[policy.Action]plugin.Verdict{policy.Execute: plugin.Allow, policy.List: plugin.Allow, policy.Approve: plugin.Deny, policy.Configure: plugin.Deny} {
		if d := e.Ask(&policy.Question{Action: action, Target: target("text", "count", plugin.Tool), Call: &plugin.Call{}}); d.Verdict != want {
			t.Errorf("%s: %s", action, d.Verdict)
		}
	}
}

// TestForbidsOfFilesWinOverTheAllowList: one engine decides over both.
func TestForbidsOfFilesWinOverTheAllowList(t *testing.T) {
	t.Parallel()
	e := open(t, policy.Options{Sources: append(texts(forbidSend), policy.Rules([]policy.Rule{{Effects: []string{"*"}}}))})
	call := &plugin.Call{Principal: plugin.Principal{ID: "ann"}}
	if d := e.Decide(target("mail", "send", plugin.Operator, "send"), call); d.Verdict != plugin.Deny || !strings.HasPrefix(d.Reasons[0], "a.cedar:1 no_send") {
		t.Errorf("%+v", d)
	}
	if d := e.Decide(target("mail", "read", plugin.Operator, "read"), call); d.Verdict != plugin.Allow || d.Reasons[0] != "policy.allow, rule 1" {
		t.Errorf("%+v", d)
	}
}
