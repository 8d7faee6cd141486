package ledger_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

func TestAModelsExchangeIsOnTheDiskWithItsBodies(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir())
	l := openLedger(t, st, ledger.Options{Keep: time.Hour})
	at := time.Now()
	rec := plugin.ModelRecord{CallID: "call-1", Model: "small", Outcome: "ok", Kept: true, Message: "bad \xff text"}
	if err := l.RecordModel(t.Context(), "t", "ada", &rec, at, []byte("asked"), []byte("answered")); err != nil {
		t.Fatal(err)
	}
	if err := l.RecordModel(t.Context(), "t", "ada", &plugin.ModelRecord{Model: "small"}, at); err != nil {
		t.Fatal(err)
	}
	entries, err := ledger.List(t.Context(), st, ledger.Filter{Tenant: "t", Kind: "model."})
	if err != nil || len(entries) != 2 || entries[1].Subject != "call-1" || entries[0].Subject != "model:small" || entries[1].Kind != plugin.EntryModelCalled {
		t.Fatalf("%+v, %v", entries, err)
	}
	var kept plugin.ModelRecord
	if err := json.Unmarshal(entries[1].Body, &kept); err != nil || kept.Model != "small" || !kept.Kept {
		t.Errorf("%s, %v", entries[1].Body, err)
	}
	bodies := map[string]time.Time{}
	for row, err := range st.Bodies(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		bodies[string(row.Data)] = row.ExpiresAt
	}
	for _, text := range []string{"asked", "answered"} {
		if expires, there := bodies[text]; !there || expires.Sub(at).Round(time.Second) != time.Hour {
			t.Errorf("%s: kept until %s", text, expires)
		}
	}
}
