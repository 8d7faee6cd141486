package rest_test

import (
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// refusals returns how many entries of a kind the ledger has.
func (b *bench) refusals(kind plugin.EntryKind) (n int) {
	b.Helper()
	for e, err := range b.app.Store.Entries(b.Context(), host.EntryFilter{Tenant: "local"}) {
		if err != nil {
			b.Fatal(err)
		}
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// A token of some operations lets no others run: neither at set times, nor by an agent,
// nor by letting a plugin be called.
func TestATokenOfSomeOperationsLetsNoOthersRun(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	things := b.things()
	feed := func(token, op string) answer {
		return b.ask(token, "POST", "/api/v1/feeds", fmt.Sprintf(`{"operation":%q,"input":{"text":"a"},"spec":"every 24h"}`, op))
	}
	own := b.is(feed("mrt_few", "desk/upper"), 200, "")
	theirs := b.is(feed("mrt_root", "solo/say"), 200, "")
	b.is(b.ask("mrt_few", "POST", fmt.Sprintf("/api/v1/feeds/%s:run", own.at("id")), ""), 202, "")
	at := func(verb string) string { return fmt.Sprintf("/api/v1/feeds/%s:%s", theirs.at("id"), verb) }
	before, tried := b.refusals(plugin.EntryTokenRefused), 0
	for what, a := range map[string]answer{
		"a feed":                    feed("mrt_few", "solo/say"),
		"a run":                     b.ask("mrt_few", "POST", at("run"), ""),
		"resuming":                  b.ask("mrt_few", "POST", at("resume"), ""),
		"a turn of an agent":        b.ask("mrt_few", "POST", "/api/v1/agents/helper/conversations:talk", `{"text":"hello"}`),
		"turns of an agent":         b.ask("mrt_few", "POST", "/api/v1/agents/helper/feeds", `{"text":"hello","spec":"every 24h"}`),
		"the approval of a version": b.ask("mrt_few", "POST", "/api/v1/plugins/waiting@1.1.0:approve", fill(rows["POST /api/v1/plugins/{name}:approve"].body, things)),
	} {
		tried++
		if a.status != 403 || a.at("code") != "policy_denied" {
			t.Errorf("%s is answered %s", what, a)
		}
	}
	if left := b.refusals(plugin.EntryTokenRefused) - before; left != tried {
		t.Errorf("%d refusals left %d entries", tried, left)
	}
	b.is(b.ask("mrt_root", "POST", at("run"), ""), 202, "")
}

// A feed is asked for by who was authenticated, however it is made: its calls have no
// other asker, who could then approve them.
func TestAFeedKnowsWhoAskedForIt(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	b.things()
	for path, body := range map[string]string{
		"/api/v1/feeds":               `{"operation":"desk/upper","input":{"text":"a"}}`,
		"/api/v1/agents/helper/feeds": `{"text":"hello","spec":"every 24h"}`,
	} {
		made := b.is(b.ask("mrt_root", "POST", path, body), 200, "")
		row, err := b.app.Store.Schedule(t.Context(), "local", fmt.Sprint(made.at("id")))
		if err != nil || row == nil || row.Asker != "api:root" {
			t.Errorf("%s: the feed is %+v, %v", path, row, err)
		}
	}
}

// What is approved is what was shown, and by a person.
func TestAPluginIsApprovedAsItWasShown(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	things := b.things()
	const path = "/api/v1/plugins/waiting@1.1.0:approve"
	right := fill(rows["POST /api/v1/plugins/{name}:approve"].body, things)
	before := b.refusals(plugin.EntryPluginRefused)
	b.is(b.ask("mrt_program", "POST", path, right), 403, "approval_self")
	if b.refusals(plugin.EntryPluginRefused) != before+1 {
		t.Error("the refusal left no entry")
	}
	for _, name := range []string{"digest", "difference", "before"} {
		wrong := map[string]string{"digest": things["digest"], "difference": things["difference"], "before": things["before"]}
		wrong[name] = "sha256:0000"
		b.is(b.ask("mrt_root", "POST", path, fill(rows["POST /api/v1/plugins/{name}:approve"].body, wrong)), 403, "approval_void")
	}
	b.is(b.ask("mrt_root", "POST", "/api/v1/plugins/waiting:approve", right), 422, "invalid_input")
	b.is(b.ask("mrt_root", "POST", path, `{}`), 422, "invalid_input")
	if a := b.ask("mrt_root", "GET", "/api/v1/plugins/waiting", ""); a.at("version") != "1.0.0" || fmt.Sprint(a.at("waiting")) != "[1.1.0]" {
		t.Errorf("it is %s", a)
	}
	review := b.is(b.ask("mrt_root", "POST", "/api/v1/plugins/waiting:review", ""), 200, "")
	if review.at("digest") != things["digest"] || review.at("difference_hash") != things["difference"] || review.at("approved", "digest") != things["before"] {
		t.Errorf("the review is %s, and should be of %v", review, things)
	}
	b.is(b.ask("mrt_root", "POST", path, right), 200, "")
	if a := b.ask("mrt_root", "GET", "/api/v1/plugins/waiting", ""); a.at("version") != "1.1.0" || a.at("state") != "active" {
		t.Errorf("it is %s", a)
	}
}

// A conversation goes on where it is named, and ends once.
func TestConversations(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	b.things()
	const at = "/api/v1/agents/helper/conversations"
	first := b.is(b.ask("mrt_root", "POST", at+":talk", `{"text":"hello","fresh":true}`), 200, "")
	id := fmt.Sprint(first.at("conversation"))
	if first.at("text") != "Good day." {
		t.Errorf("it is answered %s", first)
	}
	again := b.is(b.ask("mrt_root", "POST", at+":talk", fmt.Sprintf(`{"text":"and now","conversation":%q}`, id)), 200, "")
	shown := b.is(b.ask("mrt_root", "GET", at+"/"+id, ""), 200, "")
	said, _ := shown.at("messages").([]any)
	if again.at("conversation") != id || len(said) != 4 {
		t.Errorf("the conversation is %s", shown)
	}
	for _, cut := range []string{id[:12], "nothing", ""} {
		b.is(b.ask("mrt_root", "GET", at+"/"+cut+"?last=1", ""), 404, "not_found")
		b.is(b.ask("mrt_root", "POST", at+"/"+cut+":end", ""), 404, "not_found")
	}
	b.is(b.ask("mrt_root", "POST", at+":talk", fmt.Sprintf(`{"text":"a","conversation":%q}`, id[:12])), 404, "not_found")
	b.is(b.ask("mrt_root", "POST", at+":talk", `{"text":""}`), 422, "invalid_input")
	if a := b.is(b.ask("mrt_root", "POST", at+"/"+id+":end", ""), 200, ""); a.at("open") != false {
		t.Errorf("it is %s", a)
	}
	b.is(b.ask("mrt_root", "POST", at+"/"+id+":end", ""), 409, "disabled")
	b.is(b.ask("mrt_root", "POST", at+":talk", fmt.Sprintf(`{"text":"a","conversation":%q}`, id)), 409, "disabled")
	page := b.is(b.ask("mrt_root", "GET", at+"?page_size=2", ""), 200, "")
	rest := b.is(b.ask("mrt_root", "GET", fmt.Sprintf("%s?page_size=2&page_token=%s", at, page.at("next_page_token")), ""), 200, "")
	one, _ := page.at("conversations").([]any)
	two, _ := rest.at("conversations").([]any)
	if len(one) != 2 || len(two) != 1 || rest.at("next_page_token") != "" {
		t.Errorf("the pages are %s and %s", page, rest)
	}
}
