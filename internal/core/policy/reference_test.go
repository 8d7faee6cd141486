package policy_test

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/core/policy/policytest"
	"github.com/mortise-dev/mortise/plugin"
)

// TestAgreesWithTheReference asks the engine and a model that shares no code
// with it the same 100,000 questions; and the engine once more without its
// index.
func TestAgreesWithTheReference(t *testing.T) {
	t.Parallel()
	const requests = 400
	sets := 250
	if testing.Short() {
		sets = 60
	}
	seen, acted, tainted := map[string]int{}, 0, 0
	for i := range sets {
		r := rand.New(rand.NewPCG(uint64(i), 2026))
		policies := policytest.RandomPolicies(r, 4+r.IntN(12))
		var text strings.Builder
		for _, p := range policies {
			text.WriteString(p.String())
		}
		e, err := policy.Open(policy.Options{Sources: texts(text.String())})
		if err != nil {
			t.Fatalf("set %d:\n%s\n%v", i, text.String(), err)
		}
		for n := range requests {
			req := policytest.RandomRequest(r)
			verdict, from, forbidden, failed := policytest.Decide(policies, req)
			q := question(t, req)
			d := e.Ask(q)
			if string(d.Verdict) != verdict || !slices.Equal(namesOf(d.Reasons), from) {
				t.Fatalf("set %d: got %s by %v, want %s by %v\n%s\n%+v\n%q", i, d.Verdict, namesOf(d.Reasons), verdict, from, text.String(), req, d.Reasons)
			}
			switch {
			case failed:
				verdict += ", failed"
			case forbidden:
				verdict += ", forbidden"
			}
			seen[verdict]++
			if req.Actor != nil {
				acted++
			}
			if d.Verdict == plugin.AllowWithApproval && strings.Contains(d.Reasons[0], "an argument is untrusted") {
				tainted++
			}
			if n%8 > 0 {
				continue
			}
			if full := e.AskAll(q); !reflect.DeepEqual(d, full) {
				t.Fatalf("set %d: by the index %+v, without it %+v\n%s\n%+v", i, d, full, text.String(), req)
			}
		}
	}
	t.Log(seen, acted, tainted)
	if acted < sets*requests/10 || tainted < sets*requests/100 {
		t.Errorf("an actor acts in %d of the questions, and %d wait because of their arguments", acted, tainted)
	}
	for _, verdict := range []string{"allow", "allow_with_approval", "deny", "deny, forbidden", "deny, failed"} {
		if share := seen[verdict] * 100 / (sets * requests); share < 10 {
			t.Errorf("%s: %d %% of the questions; the test wants at least 10", verdict, share)
		}
	}
}

// question turns a request of the model into one of the engine.
func question(t *testing.T, r *policytest.Request) *policy.Question {
	t.Helper()
	input, err := json.Marshal(r.Input)
	if err != nil {
		t.Fatal(err)
	}
	target := target(r.Plugin, r.Operation, plugin.Kind(r.Kind), r.Effects...)
	target.Operation.PolicyTags = r.Tags
	q := &policy.Question{
		Action: policy.Action(r.Action), Target: target, Standing: &policy.Standing{Groups: r.Groups, Roles: r.Roles, Consent: r.Consent},
		Call: &plugin.Call{
			Tenant: r.Tenant, Principal: plugin.Principal{Type: strings.ToLower(r.Type), ID: r.Principal, Scopes: r.Scopes},
			Origin: plugin.Origin(r.Origin), Depth: int(r.Depth), Labels: r.Labels, Input: input,
		},
	}
	if a := r.Actor; a != nil {
		q.Call.Actor = strings.ToLower(a.Type) + ":" + a.ID
		q.Acting = &policy.Standing{Groups: a.Groups, Roles: a.Roles, Consent: []string{"nothing: it is the person's that counts"}}
	}
	return q
}

var label = regexp.MustCompile(`^(?:for .*: )?a\.cedar:\d+ (p\d+)`)

// namesOf returns the policies that the reasons name, sorted.
func namesOf(reasons []string) (names []string) {
	for _, reason := range reasons {
		if m := label.FindStringSubmatch(reason); m != nil {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return names
}

// TestTheReferenceStandsAlone: what shares code shares mistakes.
func TestTheReferenceStandsAlone(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("policytest/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range parsed.Imports {
			if strings.Contains(i.Path.Value, ".") {
				t.Errorf("%s imports %s", file, i.Path.Value)
			}
		}
	}
}
