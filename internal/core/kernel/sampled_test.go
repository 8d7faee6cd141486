package kernel_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/plugin"
)

type oracle struct{}

func (oracle) Complete(context.Context, llm.Request) (llm.Reply, error) {
	return llm.Reply{Text: "perhaps", Usage: llm.Usage{In: 7, Out: 3}}, nil
}

// Where the host itself asked a model, the result and the record say so, whatever
// the plugin says; what it kept to itself is marked.
func TestUndisclosedSamplingIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asks        bool
		says        *plugin.Nondeterminism
		is          bool
		undisclosed bool
	}{
		"asks and says nothing": {true, nil, true, true},
		"asks and denies it":    {true, &plugin.Nondeterminism{Is: false, Stability: "high"}, true, true},
		"asks and says so":      {true, &plugin.Nondeterminism{Is: true, Reasons: []string{"llm_sampling"}}, true, false},
		"asks nothing":          {false, nil, false, false},
		"claims the mark":       {false, &plugin.Nondeterminism{Is: true, Undisclosed: true}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t, policy.Default, target(t, "text", "guess", func(t *plugin.Target) { t.Manifest.Capabilities = []string{"llm"} }))
			b.broker.Models = llm.New(llm.Options{Allow: []string{"*"}, Models: []llm.Model{{Name: "small", Tier: llm.Light, Provider: "fake", ID: "small-1", Asks: oracle{}, Context: 100_000, Input: llm.Dollars(1), Output: llm.Dollars(1)}}})
			b.do = func(ctx context.Context, _ *plugin.Target, _ *plugin.Call, s plugin.Services) (plugin.Result, error) {
				if c.asks {
					if _, err := s.Serve(ctx, "llm.query_text", json.RawMessage(`{"prompt":"p"}`)); err != nil {
						return plugin.Result{}, err
					}
				}
				return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`1`), Nondeterminism: c.says}, nil
			}
			res, err := b.Call(t.Context(), asking("text/guess", `{}`))
			if err != nil {
				t.Fatal(err)
			}
			_, recs := b.records(t)
			for where, n := range map[string]*plugin.Nondeterminism{"result": res.Nondeterminism, "record": recs[0].Nondeterminism} {
				if n == nil {
					n = &plugin.Nondeterminism{}
				}
				if n.Is != c.is || n.Undisclosed != c.undisclosed {
					t.Errorf("the %s says %+v", where, *n)
				}
			}
		})
	}
}
