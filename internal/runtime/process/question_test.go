package process_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// preview and reconcile ask, and must be answered within [testwait.Limit].
func preview(t testing.TB, r *process.Runner, target *plugin.Target, c *plugin.Call, s plugin.Services) (json.RawMessage, error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), testwait.Limit, plugin.Errorf(plugin.CodeTimeout, "the limit of the test passed"))
	defer cancel()
	return r.Preview(ctx, target, c, s)
}

func reconcile(t testing.TB, r *process.Runner, target *plugin.Target, c *plugin.Call, effects ...protocol.Effect) (protocol.Reconciled, error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), testwait.Limit, plugin.Errorf(plugin.CodeTimeout, "the limit of the test passed"))
	defer cancel()
	return r.Reconcile(ctx, target, c, effects, nil)
}

// readable answers the one request that it knows, and refuses the others.
type readable struct{}

func (readable) Serve(_ context.Context, method string, args json.RawMessage) (json.RawMessage, error) {
	if method != "cache.get" {
		return nil, plugin.Errorf(plugin.CodeEffectUndeclared, "%s: only reading is possible here", method)
	}
	return json.RawMessage(`{"asked":` + string(args) + `}`), nil
}

func TestAPreviewIsShownWithTheServicesOfItsCall(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	shown, err := preview(t, r, target("good", "send"), call(`{"to":"ann"}`), readable{})
	if want := `{"asked":{"key":"ann"}}`; err != nil || string(shown) != want {
		t.Errorf("%s, %v; want %s", shown, err, want)
	}
	_, err = preview(t, r, target("good", "send"), call(`{"to":"ann"}`), nil)
	wantCode(t, err, plugin.CodePluginError, "no such call is running")
	_, err = preview(t, r, target("good", "send"), call(`{}`), readable{})
	wantCode(t, err, plugin.CodeInvalidInput, "to")
}

// A question about a call goes to the same process as the call itself.
func TestReconcilingSharesTheProcessOfTheCall(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	res, err := run(t, r, target("good", "pid"), call(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	effect := protocol.Effect{Method: "http.fetch", Effect: "http_write", RequestHash: "sha256:1", State: "done", ProviderKey: "pk", Response: jsontext.Value("{\n\"id\": 9007199254740993}")}
	found, err := reconcile(t, r, target("good", "send"), call(`{"to":"ann"}`), effect)
	want := `[{"method":"http.fetch","effect":"http_write","request_hash":"sha256:1","occurrence":0,"state":"done","provider_key":"pk","response":{"id":9007199254740993}}]`
	if err != nil || found.Outcome != protocol.OutcomeSucceeded || string(found.Data) != want {
		t.Errorf("%+v, %v", found, err)
	}
	if string(found.Evidence) != string(res.Data) {
		t.Errorf("process %s was asked, process %s ran the call", found.Evidence, res.Data)
	}
}

func TestTheTimeOfAQuestionIsTheHosts(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, plugin.Errorf(plugin.CodeTimeout, "too slow"))
	defer cancel()
	_, err := r.Reconcile(ctx, target("good", "send"), call(`{"to":"slow"}`), nil, nil)
	wantCode(t, err, plugin.CodeTimeout, "too slow")
	// The plugin heard of it, and serves on.
	if res, err := run(t, r, target("good", "echo"), call(`1`)); err != nil || string(res.Data) != "1" {
		t.Errorf("afterwards: %s, %v", res.Data, err)
	}
}

// A method that the manifest offers and the code lacks fails with a code of its own,
// whichever part does not know the method: a plugin as a whole, an operation, version
// 1.
func TestAnOfferWithoutCodeIsTold(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	for _, target := range []*plugin.Target{target("shows/no such method", "echo"), target("good", "echo"), bound("v1/good")} {
		_, err := preview(t, r, target, call(`{}`), nil)
		wantCode(t, err, plugin.CodeToolNotExposed, "test.plugin/echo", "offers preview")
		_, err = reconcile(t, r, target, call(`{}`))
		wantCode(t, err, plugin.CodeToolNotExposed, "test.plugin/echo", "offers reconcile")
	}
}

func TestEffectsThatNoLineHoldsAreAPersonsToSettle(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	effects := make([]protocol.Effect, 5000)
	for i := range effects {
		effects[i] = protocol.Effect{Method: "http.fetch", RequestHash: strings.Repeat("a", 1000)}
	}
	_, err := reconcile(t, r, target("good", "send"), call(`{"to":"ann"}`), effects...)
	wantCode(t, err, plugin.CodeLimitExceeded, "5000 effects", "a person")
}

// Whatever a plugin says of a call that it does not carry out, it fails with the
// right code and the host goes on.
func TestLiesAboutOtherRuns(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1, CancelGrace: 100 * time.Millisecond})
	want := map[string]plugin.Code{
		"no such method": plugin.CodeToolNotExposed,
		"an error":       plugin.CodePluginError,
		"too much":       plugin.CodeOutputTooLarge,
		"exits":          plugin.CodeCrashed,
		"never":          plugin.CodeTimeout,
	}
	for role := range liars {
		kind, lie, _ := strings.Cut(role, "/")
		if kind != "shows" && kind != "finds" {
			continue
		}
		code, special := want[lie]
		if !special {
			code = plugin.CodeMalformedResponse
		}
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeoutCause(t.Context(), testwait.Limit, plugin.Errorf(plugin.CodeTimeout, "test.plugin: the limit of the test passed"))
			if code == plugin.CodeTimeout {
				cancel()
				ctx, cancel = context.WithTimeoutCause(t.Context(), 700*time.Millisecond, plugin.Errorf(plugin.CodeTimeout, "test.plugin: too slow"))
			}
			defer cancel()
			var err error
			var shown json.RawMessage
			var found protocol.Reconciled
			if kind == "shows" {
				shown, err = r.Preview(ctx, target(role, "echo"), call(`{}`), nil)
			} else {
				found, err = r.Reconcile(ctx, target(role, "echo"), call(`{}`), nil, nil)
			}
			wantCode(t, err, code)
			if shown != nil || found.Outcome != "" {
				t.Errorf("it came with %s, %+v", shown, found)
			}
		})
	}
}
