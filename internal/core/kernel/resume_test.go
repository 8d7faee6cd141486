package kernel_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// keeper is an operator that keeps values and sends mail under keys. The first
// mail is not answered, so that the attempt that sends it is not the last.
func keeper(t *testing.T, attempts ...func(put func(key, value string) string, s plugin.Services) error) (*bundle, *mailbox) {
	t.Helper()
	m := newMailbox(t)
	m.hangUp = 1
	b, _ := sender(t, m, operator("http_write", "storage_write"), keyed, func(t *plugin.Target) { t.Manifest.Capabilities = []string{"http", "storage"} })
	b.broker.Store = b.store
	n := 0
	b.do = func(ctx context.Context, _ *plugin.Target, _ *plugin.Call, s plugin.Services) (plugin.Result, error) {
		put := func(key, value string) string {
			got, err := s.Serve(ctx, "storage.put", json.RawMessage(`{"key":"`+key+`","value":"`+value+`"}`))
			if err != nil {
				t.Errorf("attempt %d, %s = %s: %v", n, key, value, err)
			}
			return string(got)
		}
		n++
		err := attempts[min(n, len(attempts))-1](put, s)
		return plugin.Result{Status: plugin.Succeeded, Data: []byte(`{}`)}, err
	}
	return b, m
}

func (b *bundle) kept(t *testing.T, key string) string {
	t.Helper()
	row, err := b.store.KV(t.Context(), store.KVKey{Tenant: "local", Owner: "mail", Scope: "user::ann", Namespace: "storage/", Key: key})
	if err != nil || row == nil {
		t.Fatalf("%s: %+v, %v", key, row, err)
	}
	return string(row.Value)
}

// An attempt that goes on from what the one before it left in the store, and so
// does something else, may: nothing of that has left the host.
func TestAnAttemptGoesOnFromWhatIsInTheStore(t *testing.T) {
	t.Parallel()
	b, m := keeper(t, func(put func(key, value string) string, s plugin.Services) error {
		put("page", "1")
		put("page", "2")
		return post(t.Context(), s, "pages are coming")
	}, func(put func(key, value string) string, s plugin.Services) error {
		if got, err := s.Serve(t.Context(), "storage.get", json.RawMessage(`{"key":"page"}`)); err != nil || !strings.Contains(string(got), `"2"`) {
			t.Errorf("it finds %s, %v", got, err)
		}
		put("page", "3")
		return post(t.Context(), s, "pages are coming")
	})
	res, err := b.Kernel.Run(t.Context(), asking("mail/send", `{}`))
	if err != nil || res.Status != plugin.Succeeded {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := b.kept(t, "page"); got != `"3"` {
		t.Errorf("page is %s", got)
	}
	if sent := m.all(); len(sent) != 2 || sent[0] != sent[1] {
		t.Errorf("it sent %q: not the same again", sent)
	}
	want := []string{"1 storage.put storage_write done 1", "2 storage.put storage_write done 1", "3 http.fetch http_write done 2", "4 storage.put storage_write done 2"}
	if got := b.journal(t, res.CallID); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Once an attempt has left the order of the one before it, no answer of that one
// stands for a write: what it wrote may have been overwritten since.
func TestNoWriteIsTakenForDoneThatWasOverwritten(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]func(put func(key, value string) string){
		"something new comes first":   func(put func(key, value string) string) { put("other", "x"); put("state", "idle") },
		"the first of them is passed": func(put func(key, value string) string) { put("state", "busy"); put("state", "idle") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := keeper(t, func(put func(key, value string) string, s plugin.Services) error {
				put("state", "idle")
				put("state", "busy")
				return post(t.Context(), s, "working")
			}, func(put func(key, value string) string, s plugin.Services) error {
				second(put)
				return post(t.Context(), s, "working")
			})
			res, err := b.Kernel.Run(t.Context(), asking("mail/send", `{}`))
			if err != nil || res.Status != plugin.Succeeded {
				t.Fatalf("%+v, %v", res, err)
			}
			if got := b.kept(t, "state"); got != `"idle"` {
				t.Errorf("state is %s, and the plugin was told that it is idle", got)
			}
		})
	}
}

// What was sent and not answered is to be asked for again: an attempt that only
// writes inside the store does not get away with saying it succeeded.
func TestAnAttemptThatForsakesWhatWasSentDoesNotSucceed(t *testing.T) {
	t.Parallel()
	b, m := keeper(t, func(put func(key, value string) string, s plugin.Services) error {
		put("page", "1")
		return post(t.Context(), s, "pages are coming")
	}, func(put func(key, value string) string, s plugin.Services) error {
		put("page", "2")
		return nil
	})
	res, err := b.Kernel.Run(t.Context(), asking("mail/send", `{}`))
	if plugin.CodeOf(err) != plugin.CodeOutcomeUnknown || len(m.all()) != 1 {
		t.Errorf("%+v, %v; it sent %q", res, err, m.all())
	}
	if state := b.state(t, res.CallID); state != store.CallUnknown {
		t.Errorf("the call is %s", state)
	}
}
