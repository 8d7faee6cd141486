package rest_test

import (
	"encoding/json"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// A feed acts in the name of its owner, so that its owner alone says what it does: who may
// configure its plugin sees it, pauses it and deletes it.
func TestAFeedIsChangedByItsOwnerAlone(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	at := fill("/api/v1/feeds/{feed}", b.things())
	before := b.is(b.ask("mrt_ann", "GET", at, ""), 200, "")
	b.is(b.ask("mrt_root", "GET", at, ""), 200, "")
	b.is(b.ask("mrt_root", "PATCH", at, `{"input":{"text":"root's"}}`), 403, "policy_denied")
	b.is(b.ask("mrt_ben", "PATCH", at, `{"input":{"text":"ben's"}}`), 404, "not_found")
	if after := b.is(b.ask("mrt_ann", "GET", at, ""), 200, ""); after.text != before.text {
		t.Errorf("a refusal changed it: %s", after)
	}
	if n := b.refusals(plugin.EntryFeedRefused); n != 2 {
		t.Errorf("%d entries of refusals", n)
	}
	b.is(b.ask("mrt_ann", "PATCH", at, `{"input":{"text":1}}`), 422, "invalid_input")
	b.is(b.ask("mrt_ann", "PATCH", at, `{"cursor":"perhaps"}`), 422, "invalid_input")
	b.is(b.ask("mrt_ann", "PATCH", at, `{"operation":"desk/line"}`), 422, "invalid_input")
	b.is(b.ask("mrt_ann", "PATCH", at, `{"spec":"every 2h"}`, "If-Match", `"another"`), 412, "conflict")
	changed := b.is(b.ask("mrt_ann", "PATCH", at, `{"input":{"text":"b"},"spec":"every 2h","cursor":"reset"}`), 200, "")
	var f rest.Feed
	if err := json.Unmarshal([]byte(changed.text), &f); err != nil || string(f.Input) != `{"text":"b"}` || f.Spec != "every 2h" || f.Overlap != "skip" {
		t.Errorf("%s, %v", changed, err)
	}
	if b.refusals(plugin.EntryFeedReset) != 1 || b.refusals(plugin.EntryFeedChanged) != 1 {
		t.Error("the change and what became of the cursor are not on record, once each")
	}
}
