package kernel_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// TestALocalEffectIsOneCommit: what it changes and its place in the journal are
// there together, and another attempt gets its answer, of a refusal too, without
// doing it again.
func TestALocalEffectIsOneCommit(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	m.hangUp = 1
	b, _ := sender(t, m, operator("http_write", "storage_write"), func(t *plugin.Target) {
		t.Manifest.Capabilities = []string{"http", "storage"}
		t.Manifest.HTTP.Idempotency = map[string]string{"mail.example.com": "Idempotency-Key"}
	})
	b.broker.Store = b.store
	key := func(name string) store.KVKey {
		return store.KVKey{Tenant: "local", Owner: "mail", Scope: "user::ann", Namespace: "storage/", Key: name}
	}
	const full = 64<<20 - 400 // there is room for one
	spend := func(delta int64) {
		t.Helper()
		if err := b.store.Write(t.Context(), func(tx store.Tx) error {
			_, _, err := tx.Spend("local", "kv:mail", "", delta, 64<<20)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	spend(full)
	attempts := 0
	var codes []plugin.Code
	b.do = func(ctx context.Context, _ *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
		attempts++
		if attempts == 2 { // another call has written meanwhile, and there is room again
			row := store.KVRow{KVKey: key("a"), Value: []byte(`"theirs"`), Labels: []string{}, UpdatedAt: time.Now()}
			if err := b.store.Write(ctx, func(tx store.Tx) error { return tx.PutKV(row) }); err != nil {
				return plugin.Result{}, err
			}
			spend(-full)
		}
		for _, args := range []string{`{"key":"a","value":"ours"}`, `{"key":"b","value":"too much"}`} {
			_, err := s.Serve(ctx, "storage.put", json.RawMessage(args))
			codes = append(codes, plugin.CodeOf(err))
		}
		_, err := s.Serve(ctx, "http.fetch", json.RawMessage(`{"method":"POST","url":"http://mail.example.com/","body":"mail"}`))
		return plugin.Result{Status: plugin.Succeeded, Data: []byte(`{}`)}, err
	}
	call := asking("mail/send", `{}`)
	res, err := b.Kernel.Run(t.Context(), call)
	if err != nil || attempts != 2 {
		t.Fatalf("%d attempts: %+v, %v", attempts, res, err)
	}
	if want := []plugin.Code{"", plugin.CodeLimitExceeded, "", plugin.CodeLimitExceeded}; !slices.Equal(codes, want) {
		t.Errorf("the plugin heard %q", codes)
	}
	if row, err := b.store.KV(t.Context(), key("a")); err != nil || row == nil || string(row.Value) != `"theirs"` {
		t.Errorf("there is %+v, %v: it was done twice", row, err)
	}
	if row, err := b.store.KV(t.Context(), key("b")); err != nil || row != nil {
		t.Errorf("there is %+v, %v: what was refused was done", row, err)
	}
	want := []string{"1 storage.put storage_write done 1", "2 storage.put storage_write done 1", "3 http.fetch http_write done 2"}
	if got := b.journal(t, res.CallID); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	var kinds []string
	for e, err := range b.store.Entries(t.Context(), store.EntryFilter{Subject: res.CallID, Kind: "effect."}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, string(e.Kind))
	}
	if want := []string{"effect.done", "effect.done", "effect.intent", "effect.intent", "effect.done"}; !slices.Equal(kinds, want) {
		t.Errorf("%q", kinds)
	}
}

func TestACallThatIsNotProvidedForIsRefusedBeforeItRuns(t *testing.T) {
	t.Parallel()
	b := newBundle(t, nil, target(t, "calc", "add"))
	ran := false
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		ran = true
		return plugin.Result{Status: plugin.Succeeded}, nil
	}
	b.Equip = func(_ context.Context, t *plugin.Target, call *plugin.Call) (json.RawMessage, []string, error) {
		return nil, nil, plugin.Errorf(plugin.CodeMissingSecrets, "%s needs api_key", t.Name())
	}
	_, err := b.Call(t.Context(), asking("calc/add", `{}`))
	if plugin.CodeOf(err) == plugin.CodeMissingSecrets {
		t.Error("who may not is told what is missing")
	}
	b = newBundle(t, []policy.Rule{{Kinds: []plugin.Kind{plugin.Tool}}}, target(t, "calc", "add"))
	b.Equip = func(_ context.Context, t *plugin.Target, call *plugin.Call) (json.RawMessage, []string, error) {
		return nil, nil, plugin.Errorf(plugin.CodeMissingSecrets, "%s needs api_key", t.Name())
	}
	if _, err := b.Call(t.Context(), asking("calc/add", `{}`)); plugin.CodeOf(err) != plugin.CodeMissingSecrets || ran {
		t.Errorf("%v, it ran: %t", err, ran)
	}
	b.want(t, "call.refused missing_secrets")
}

// TestASecretThatIsSetWhileACallIsJudged: what policy judged is what runs. A value
// with other labels than those that it judged with is not handed to the plugin.
func TestASecretThatIsSetWhileACallIsJudged(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Kinds: []plugin.Kind{plugin.Tool}}}, target(t, "calc", "add"))
	ran := 0
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		ran++
		return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`{}`)}, nil
	}
	var judged, filled []string
	b.Seen = func(_ context.Context, _ *plugin.Target, call *plugin.Call) (json.RawMessage, []string, error) {
		return call.Input, judged, nil
	}
	b.Equip = func(_ context.Context, _ *plugin.Target, call *plugin.Call) (json.RawMessage, []string, error) {
		return call.Input, filled, nil
	}
	for _, c := range []struct{ own, judged, filled []string }{
		{nil, nil, nil}, {nil, []string{"private"}, []string{"private"}}, {nil, []string{"private"}, nil}, {[]string{"private"}, nil, []string{"private"}},
	} {
		judged, filled = c.judged, c.filled
		asked := asking("calc/add", `{}`)
		asked.Labels = c.own
		res, err := b.Call(t.Context(), asked)
		if want := plugin.Labels(c.own, c.judged); err != nil || !slices.Equal(res.Labels, want) {
			t.Errorf("%+v: %q, %v", c, res.Labels, err)
		}
	}
	before := ran
	for _, judged = range [][]string{nil, {"private"}} {
		filled = []string{"private", plugin.Untrusted}
		if _, err := b.Call(t.Context(), asking("calc/add", `{}`)); plugin.CodeOf(err) != plugin.CodeUnavailable || ran != before {
			t.Errorf("judged with %q: %v, it ran: %t", judged, err, ran != before)
		}
	}
}
