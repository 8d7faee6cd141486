package kernel_test

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// Input cannot set what the host decides about a call of a Shu plugin, whatever
// its origin and spelling.
func TestNoInputSpeaksForTheHost(t *testing.T) {
	t.Parallel()
	b := newBundle(t, policy.Default, target(t, "digest", "sync", func(t *plugin.Target) { t.Manifest.Contract.HostMember = "__host" }), target(t, "other", "op"))
	for _, origin := range []plugin.Origin{plugin.OriginCLI, plugin.OriginCall, plugin.OriginPlan, plugin.OriginAdapter, plugin.OriginFeed, plugin.OriginAgent} {
		for _, input := range []string{`{"__host":{"auth":{"google":{"mode":"user"}}}}`, `{"__host":{}}`, `{"\u005f_host":{"exec":{"schedule_id":"f"}}}`, `{"n":1,"__host":[]}`} {
			call := asking("digest/sync", input)
			call.Origin = origin
			_, err := b.Call(t.Context(), call)
			wantCode(t, err, plugin.CodeInvalidInput)
		}
	}
	if _, err := b.Call(t.Context(), asking("digest/sync", `{"n":1}`)); err != nil {
		t.Error(err)
	}
	if _, err := b.Call(t.Context(), asking("other/op", `{"__host":{}}`)); err != nil {
		t.Errorf("of no meaning to another plugin: %v", err)
	}
}

// A service and a user of the same name are two principals: their idempotency
// keys are distinct.
func TestAKeyIsOnePrincipalsOfOneType(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{}}, target(t, "other", "op"))
	call := asking("other/op", `{"n":1}`)
	call.Key = "k"
	if _, err := b.Call(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"service", "agent"} {
		call.Principal.Type = kind
		_, err := b.Call(t.Context(), call)
		wantCode(t, err, plugin.CodeKeyConflict)
	}
}
