package policy_test

import (
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// An engine that adopts another decides by its texts together with its groups: at no moment
// by the texts of one and the groups of the other, of which both mixtures would allow.
func TestAnEngineAdoptsTextsAndGroupsTogether(t *testing.T) {
	t.Parallel()
	made := func(allowed, has string) *policy.Engine {
		e, err := policy.Open(policy.Options{
			Known: []byte(has),
			Standing: func(string, plugin.Principal) policy.Standing {
				return policy.Standing{Groups: []string{has}}
			},
			Sources: []policy.Source{func() ([]policy.Document, error) {
				return []policy.Document{{Name: "a.cedar", Text: []byte(`permit (principal in Group::"` + allowed + `", action, resource);`)}}, nil
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	left, right := made("one", "two"), made("two", "one")
	e := made("one", "two")
	target := &plugin.Target{Manifest: &plugin.Manifest{Name: "p", Version: "1.0.0"}, Operation: &plugin.Operation{Name: "o", Kind: plugin.Tool}}
	call := &plugin.Call{Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "ann", Scopes: []string{"*"}}, Origin: plugin.OriginAPI}
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				e.Adopt(right)
				e.Adopt(left)
			}
		}
	})
	for range 20_000 {
		if d := e.Decide(target, call); d.Verdict != plugin.Deny {
			t.Errorf("half of one and half of the other: %v", d)
			break
		}
	}
	close(stop)
	swapping.Wait()
	e.Adopt(made("one", "one"))
	if d := e.Decide(target, call); d.Verdict != plugin.Allow {
		t.Errorf("what was adopted is not in force: %v", d)
	}
	if err := e.Reload(); err != nil || e.Decide(target, call).Verdict != plugin.Allow {
		t.Errorf("a reload after it goes back: %v", err)
	}
}
