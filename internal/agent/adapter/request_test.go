package adapter_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// TestWhatAnAdapterSaysIsHeldToTheSchema: it has no way to name rights, and an
// answer that is no request is none.
func TestWhatAnAdapterSaysIsHeldToTheSchema(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.link("phone", "7", "bob")
	phone := func(more string, value any) map[string]any {
		return map[string]any{"principal": map[string]any{"provider": "phone", "external_id": "7", more: value}}
	}
	for name, c := range map[string]struct {
		change map[string]any
		at     string
	}{
		"scopes":                  {map[string]any{"scopes": []string{"*"}}, "scopes"},
		"a tenant":                {map[string]any{"tenant": "other"}, "tenant"},
		"an agent":                {map[string]any{"agent": "Desk/triage"}, "agent"},
		"a principal's scopes":    {phone("scopes", []string{"*"}), "at /principal"},
		"a principal of the host": {phone("id", "local:owner"), "at /principal"},
		"a principal's type":      {phone("type", "user"), "at /principal"},
		"no principal":            {map[string]any{"principal": nil}, "at /principal"},
		"an empty id":             {phone("external_id", ""), "at /principal/external_id"},
		"an overlong id":          {phone("external_id", strings.Repeat("7", 201)), "at /principal/external_id"},
		"a key of two lines":      {map[string]any{"idempotency_key": "a\nb"}, "at /idempotency_key"},
		"no intent":               {map[string]any{"intent": map[string]any{}}, "at /intent"},
		"an intent of one word":   {map[string]any{"intent": map[string]any{"type": "answer", "payload": map[string]any{}}}, "at /intent/type"},
		"an intent with a step":   {map[string]any{"intent": map[string]any{"type": "A.B", "payload": map[string]any{}, "steps": []int{}}}, "at /intent"},
	} {
		v, err := s.deliver("Desk/says", s.says(c.change))
		if plugin.CodeOf(err) != plugin.CodeInvalidOutput || !strings.Contains(err.Error(), "Desk/says: what it makes of the event") || !strings.Contains(err.Error(), c.at) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	s.refused("Desk/says", `{"says":{}}`, plugin.CodeInvalidOutput, "intent")
	if got := s.entries(plugin.EntryDeliveryRefused); len(got) != 14 || got[0]["code"] != "invalid_output" {
		t.Errorf("%d refusals on record: %v", len(got), got)
	}
	// What a payload or the metadata says of rights is an argument and nothing else.
	v := s.must("Desk/says", s.says(map[string]any{"metadata": map[string]any{"principal": "local:owner", "scopes": []string{"*"}}, "context": map[string]any{"principal": "local:owner"}}))
	if v.Principal != "bob" {
		t.Errorf("%+v", v)
	}
}

// TestCorrelationIsTheOtherSystems where it gives one that looks like one.
func TestCorrelationIsTheOtherSystems(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.link("phone", "7", "bob")
	for given, taken := range map[any]bool{
		"req-7f/1": true, strings.Repeat("a", 128): true,
		"": false, "two words": false, "a\nb": false, "-rf": false, strings.Repeat("a", 129): false, 7: false,
	} {
		v := s.must("Desk/says", s.says(map[string]any{"metadata": map[string]any{"correlation_id": given}}))
		i := slices.IndexFunc(s.entries(plugin.EntryCallSucceeded), func(b map[string]any) bool { return b["call_id"] == v.ProposalCall })
		if got := s.entries(plugin.EntryCallSucceeded)[i]; (got["correlation_id"] == given) != taken || !taken && got["correlation_id"] != got["parent"] {
			t.Errorf("%v became %v, below %v", given, got["correlation_id"], got["parent"])
		}
	}
}
