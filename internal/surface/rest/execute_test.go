package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// A call is answered by how it ended; what the host refuses is a problem. They share
// neither a status nor a form.
func TestCallsAndRefusals(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	a := b.is(b.execute("mrt_ann", "upper", "one"), 200, "succeeded")
	if a.at("data", "text") != "ONE" || a.at("operation") != "desk/upper" || a.at("version") != "1.0.0" || a.header.Get("Content-Type") != "application/json" {
		t.Error(a)
	}
	a = b.is(b.execute("mrt_ann", "line", "two"), 200, "succeeded")
	if !strings.Contains(a.text, `"n":9007199254740993`) {
		t.Errorf("an integer lost digits: %s", a)
	}
	for _, op := range []string{"fail", "jam"} {
		a = b.is(b.execute("mrt_ann", op, "three"), 200, "failed")
		if a.at("error", "code") != "plugin_error" || a.at("error", "plugin_code") == nil || !strings.Contains(fmt.Sprint(a.at("error", "message")), "for three") {
			t.Error(a)
		}
	}
	b.is(b.execute("mrt_ann", "denied", "four"), 403, "policy_denied")
	b.is(b.execute("mrt_ann", "none", "five"), 404, "not_found")
	for input, places := range map[string]string{
		`{"text":6}`:          `"errors":[{"pointer":"/input/text","detail":"got number, want string"}]`,
		`{}`:                  `"errors":[{"pointer":"/input","detail":"missing property 'text'","members":["text"]}]`,
		`{"text":"","a/b":1}`: `"errors":[{"pointer":"/input","detail":"additional properties 'a/b' not allowed","members":["a/b"]}]`,
	} {
		for _, mode := range []string{"", "?dry_run=true"} {
			a := b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/line:execute"+mode, `{"input":`+input+`}`), 422, "invalid_input")
			if !strings.Contains(a.text, places) {
				t.Errorf("%s%s: %s", input, mode, a)
			}
		}
	}
	b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/line:execute", `{"input":{"text":"six"},"session":"sess_000000000000"}`), 404, "not_found")
	b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/line@1.0.0:execute", `{"input":{"text":"seven"}}`), 200, "succeeded")
	b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/line@2.0.0:execute", `{"input":{"text":"seven"}}`), 404, "not_found")

	dry := b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/upper:execute?dry_run=true", `{"input":{"text":"dry"}}`, "Idempotency-Key", "dry"), 200, "succeeded")
	if dry.at("dry_run", "verdict") != "allow" {
		t.Error(dry)
	}
	dry = b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/line:execute?dry_run=true", `{"input":{"text":"dry"}}`), 200, "failed")
	if dry.at("dry_run", "verdict") != "allow" || dry.at("dry_run", "not_run_reason") == nil || dry.at("error", "code") != "effect_undeclared" {
		t.Error(dry)
	}
	for op, code := range map[string]string{"denied": "policy_denied", "none": "not_found"} {
		status := rest.StatusOf(plugin.Code(code))
		b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/"+op+":execute?dry_run=true", `{"input":{"text":"dry"}}`), status, code)
	}
	if got := b.lines(); !slices.Equal(got, []string{"two", "seven"}) {
		t.Errorf("what ran left %q", got)
	}
}

// A key is for one request: sent again it gets the bytes of the first answer, and nothing
// is done twice.
func TestKeys(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	for _, op := range []string{"upper", "line", "jam", "fail"} {
		first := b.is(b.execute("mrt_ann", op, "one", "Idempotency-Key", "k-"+op), 200, "")
		for range 2 {
			again := b.execute("mrt_ann", op, "one", "Idempotency-Key", "k-"+op)
			if again.text != first.text || again.status != first.status || again.header.Get("Idempotency-Replayed") != "true" || first.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s: first %s %v, then %s %v", op, first, first.header, again, again.header)
			}
		}
		b.is(b.execute("mrt_ann", op, "another", "Idempotency-Key", "k-"+op), 422, "key_conflict")
		b.is(b.execute("mrt_ben", op, "one", "Idempotency-Key", "k-"+op), 422, "key_conflict")
	}
	for _, blank := range []string{"", " "} {
		b.is(b.execute("mrt_ann", "line", "one", "Idempotency-Key", blank), 400, "invalid_input")
	}
	b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/line:execute?dry_run=false&dry_run=true", `{"input":{"text":"one"}}`), 400, "invalid_input")
	if got := b.lines(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("what ran left %q", got)
	}

	// What was refused has used no key.
	b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/line:execute", `{"input":{"text":2}}`, "Idempotency-Key", "burnt"), 422, "invalid_input")
	b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/line:execute", `{"inputs":{}}`, "Idempotency-Key", "burnt"), 422, "invalid_input")
	b.is(b.execute("mrt_ann", "line", "two", "Idempotency-Key", "burnt"), 200, "succeeded")

	var sent sync.WaitGroup
	before, answers := b.authenticated.Load(), make([]answer, 20)
	for i := range answers {
		sent.Go(func() { answers[i] = b.execute("mrt_ann", "slow", "three", "Idempotency-Key", "many") })
	}
	testwait.Until(t, "all requests with the key are at the host", func() bool { return b.authenticated.Load() >= before+int64(len(answers)) })
	b.allow("three")
	sent.Wait()
	for _, a := range answers {
		if b.is(a, 200, "succeeded"); a.text != answers[0].text {
			t.Errorf("%s, and elsewhere %s", a, answers[0])
		}
	}
	if got := b.lines(); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("what ran left %q", got)
	}
	for _, key := range []string{strings.Repeat("k", 256), "a b\tc", "ké"} {
		b.is(b.execute("mrt_ann", "line", "four", "Idempotency-Key", key), 422, "invalid_input")
	}
}

// A request stays for its call as long as it prefers, and the call is found afterwards.
func TestPreferences(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	a := b.is(b.execute("mrt_ann", "line", "one", "Prefer", "respond-async"), 202, "in_progress")
	if a.header.Get("Location") != "/api/v1/calls/"+fmt.Sprint(a.at("call_id")) || a.header.Get("Preference-Applied") != "respond-async" {
		t.Errorf("%s %v", a, a.header)
	}
	got := b.ask("mrt_ann", "GET", a.header.Get("Location")+"?wait=5m", "")
	if b.is(got, 200, "succeeded"); got.at("outcome", "data", "wrote") != "one" || got.at("outcome", "status") != "succeeded" || got.at("origin") != "api" {
		t.Error(got)
	}
	a = b.is(b.execute("mrt_ann", "slow", "two", "Prefer", "wait=1"), 202, "in_progress")
	if a.header.Get("Preference-Applied") != "wait=1" {
		t.Error(a.header)
	}
	b.allow("two")
	b.allow("three")
	got = b.ask("mrt_ann", "GET", a.header.Get("Location")+"?wait=300", "")
	if b.is(got, 200, "succeeded"); got.at("outcome", "data", "wrote") != "two" {
		t.Error(got)
	}
	b.is(b.execute("mrt_ann", "slow", "three", "Prefer", "wait=300"), 200, "succeeded")
	b.is(b.execute("mrt_ann", "upper", "four", "Prefer", "respond-async, wait=300"), 200, "succeeded")
	b.is(b.execute("mrt_ann", "line", "five", "Prefer", `wait=soon, handling=lenient`), 200, "succeeded")
	a = b.is(b.execute("mrt_ann", "jam", "six", "Prefer", "respond-async"), 202, "in_progress")
	got = b.ask("mrt_ann", "GET", a.header.Get("Location")+"?wait=5m", "")
	if b.is(got, 200, "failed"); got.at("outcome", "error", "plugin_code") != "PAPER_JAM" || got.at("code") != "plugin_error" {
		t.Error(got)
	}
	for _, wait := range []string{"soon", "-1s", "1e9h"} {
		b.is(b.ask("mrt_ann", "GET", a.header.Get("Location")+"?wait="+wait, ""), 422, "invalid_input")
	}
}

// A call that waits for a person is answered with where it is found; once it is approved
// its own answer is there.
func TestApprovalsOverHTTP(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	a := b.is(b.execute("mrt_ann", "gated", "one", "Idempotency-Key", "g"), 202, "pending_approval")
	id := fmt.Sprint(a.at("approval", "id"))
	if again := b.execute("mrt_ann", "gated", "one", "Idempotency-Key", "g"); again.text != a.text || again.status != 202 {
		t.Errorf("%s, then %s", a, again)
	}
	b.is(b.execute("mrt_ann", "gated", "one", "Idempotency-Key", "g", "Prefer", "wait=1"), 202, "pending_approval")
	q := b.ask("mrt_ann", "GET", "/api/v1/approvals/"+id, "")
	if q.status != 200 || q.at("operation") != "desk/gated" || q.at("input", "text") != "one" || q.at("state") != "open" || q.at("why") == "" {
		t.Error(q)
	}
	if strings.Contains(q.text, "token") {
		t.Errorf("the token of an approval is shown: %s", q)
	}
	waiting := time.Now()
	b.is(b.ask("mrt_ann", "GET", a.header.Get("Location")+"?wait=1s", ""), 200, "pending_approval")
	if took := time.Since(waiting); took < time.Second {
		t.Errorf("a request that asks to wait a second stays for %s, want at least a second", took)
	}
	if q.at("standing", "may_not_approve", "code") != "approval_self" || q.at("standing", "may_not_deny") != nil || q.at("before") != nil {
		t.Errorf("who asked may deny and not approve, and nothing was approved before: %s", q)
	}
	if got := b.ask("mrt_root", "GET", "/api/v1/approvals/"+id, ""); got.status != 200 || got.at("standing", "may_not_approve", "code") != "policy_denied" {
		t.Errorf("a caller who sees all, and may approve nothing: %s", got)
	}
	b.is(b.ask("mrt_ann", "POST", "/api/v1/approvals/"+id+":approve", ""), 403, "approval_self")
	b.is(b.ask("mrt_narrow", "POST", "/api/v1/approvals/"+id+":approve", ""), 403, "policy_denied")
	b.is(b.ask("mrt_bob", "POST", "/api/v1/approvals/"+id+":approve", `{"reason":"it was agreed"}`), 200, "")
	got := b.ask("mrt_ann", "GET", a.header.Get("Location")+"?wait=5m", "")
	if b.is(got, 200, "succeeded"); got.at("outcome", "data", "wrote") != "one" || got.at("approval") != id {
		t.Error(got)
	}
	done := b.is(b.execute("mrt_ann", "gated", "one", "Idempotency-Key", "g"), 200, "succeeded")
	if done.at("data", "wrote") != "one" {
		t.Error(done)
	}
	a = b.is(b.execute("mrt_ann", "gated", "two", "Idempotency-Key", "h"), 202, "pending_approval")
	q = b.ask("mrt_root", "GET", "/api/v1/approvals/"+fmt.Sprint(a.at("approval", "id")), "")
	if q.at("before", "input", "text") != "one" || q.at("before", "decided_by") != "bob" || q.at("before", "requester") != "ann" {
		t.Errorf("what was approved before is shown beside it: %s", q)
	}
	mine := b.is(b.ask("mrt_ann", "GET", a.header.Get("Location")+"?input=true", ""), 200, "pending_approval")
	if mine.at("input", "text") != "two" {
		t.Errorf("what a call was made with: %s", mine)
	}
	b.is(b.ask("mrt_ben", "GET", a.header.Get("Location")+"?input=true", ""), 404, "not_found")
	b.decide(fmt.Sprint(a.at("approval", "id")), false)
	b.is(b.execute("mrt_ann", "gated", "two", "Idempotency-Key", "h"), 403, "approval_denied")
	if got := b.lines(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("what ran left %q", got)
	}
}

// A call that waits can be stopped by who made it, once.
func TestCancelling(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	id := fmt.Sprint(b.execute("mrt_ann", "gated", "one").at("call_id"))
	b.is(b.ask("mrt_ben", "POST", "/api/v1/calls/"+id+":cancel", ""), 404, "not_found")
	a := b.is(b.ask("mrt_ann", "POST", "/api/v1/calls/"+id+":cancel", `{"reason":"the customer withdrew"}`), 200, "failed")
	if a.at("code") != "cancelled" {
		t.Error(a)
	}
	b.is(b.ask("mrt_ann", "POST", "/api/v1/calls/"+id+":cancel", ""), 409, "invalid_input")
}

// A token may be for some operations alone; it sees no others, and is refused before the
// kernel is asked.
func TestTokensForSomeOperations(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	b.is(b.execute("mrt_upper", "upper", "one"), 200, "succeeded")
	b.is(b.execute("mrt_desk", "line", "two"), 200, "succeeded")
	for _, op := range []string{"line", "none", "line@1.0.0"} {
		b.is(b.execute("mrt_upper", op, "three"), 403, "policy_denied")
	}
	b.is(b.execute("mrt_other", "upper", "three"), 403, "policy_denied")
	for _, op := range []string{"line", "none"} {
		b.is(b.ask("mrt_upper", "POST", "/api/v1/plugins/desk/execute", fmt.Sprintf(`{"parameters":{"op":%q,"text":"four"}}`, op)), 404, "") // as that contract answers what may not be used
	}
	refused := 0
	all, err := b.app.Ledger.List(b.Context(), ledger.Filter{Kind: string(plugin.EntryTokenRefused), Limit: 100})
	for _, e := range all {
		if e.Principal == "ann" {
			refused++
		}
	}
	if err != nil || refused != 6 {
		t.Errorf("%d refusals are on record, %v", refused, err)
	}
	list := b.ask("mrt_upper", "GET", "/api/v1/operations", "")
	if got, _ := list.at("operations").([]any); len(got) != 1 || !strings.Contains(list.text, `"desk/upper"`) {
		t.Error(list)
	}
	b.is(b.ask("mrt_upper", "GET", "/api/v1/operations/desk/line", ""), 404, "not_found")
	if got := b.lines(); !slices.Equal(got, []string{"two"}) {
		t.Errorf("what ran left %q", got)
	}
}

// A call belongs to the session of its caller that it names, and to no other's.
func TestCallsOfSessions(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	session := b.things()["session"]
	body := fmt.Sprintf(`{"input":{"text":"one"},"session":%q,"labels":["private"]}`, session)
	a := b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/upper:execute", body), 200, "succeeded")
	got := b.ask("mrt_ann", "GET", "/api/v1/calls/"+fmt.Sprint(a.at("call_id")), "")
	if b.is(got, 200, "succeeded"); got.at("session") != session || got.at("outcome", "data", "text") != "ONE" || !strings.Contains(fmt.Sprint(got.at("labels")), "private") {
		t.Error(got)
	}
	b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/upper:execute", strings.ReplaceAll(body, session, session[:12])), 404, "not_found")
	ben := b.is(b.ask("mrt_ben", "POST", "/api/v1/operations/desk/upper:execute", body), 404, "not_found")
	none := b.ask("mrt_ben", "POST", "/api/v1/operations/desk/upper:execute", strings.ReplaceAll(body, session, "sess_0123456789ab"))
	if strings.ReplaceAll(none.text, "sess_0123456789ab", session) != ben.text {
		t.Errorf("%s, and of what there is not %s", ben, none)
	}
}

// An effect that may or may not have happened is not repeated; who made the call can say
// how it ended, once.
func TestUnknownOutcomes(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	a := b.is(b.execute("mrt_ann", "vanish", "one", "Idempotency-Key", "k"), 200, "unknown")
	if again := b.is(b.execute("mrt_ann", "vanish", "one", "Idempotency-Key", "k"), 200, "unknown"); again.at("call_id") != a.at("call_id") || again.at("error", "message") == nil {
		t.Errorf("%s, then %s", a, again)
	}
	path := "/api/v1/calls/" + fmt.Sprint(a.at("call_id"))
	b.is(b.ask("mrt_ann", "GET", path, ""), 200, "unknown")
	const known = `{"outcome":"succeeded","data":{"wrote":"one","n":1},"reason":"the line is there"}`
	b.is(b.ask("mrt_ben", "POST", path+":settle", known), 404, "not_found")
	b.is(b.ask("mrt_bob", "POST", path+":settle", known), 403, "scope_denied")
	// Who may approve the operation and not see the call repeats no effect of it.
	b.is(b.ask("mrt_bobs", "POST", path+":settle", `{"outcome":"not_done","reason":"x"}`), 404, "not_found")
	// Nor does a token that is not for the operation.
	b.is(b.ask("mrt_upper", "POST", path+":settle", `{"outcome":"not_done","reason":"x"}`), 403, "policy_denied")
	for _, body := range []string{`{"outcome":"succeeded"}`, `{"outcome":"lost","reason":"x"}`, `{"outcome":"failed","reason":"x","data":{}}`} {
		b.is(b.ask("mrt_ann", "POST", path+":settle", body), 422, "invalid_input")
	}
	b.is(b.ask("mrt_ann", "POST", path+":settle", known), 200, "succeeded")
	b.is(b.ask("mrt_ann", "POST", path+":settle", known), 409, "key_conflict")
	got := b.ask("mrt_ann", "GET", path, "")
	if b.is(got, 200, "succeeded"); got.at("outcome", "data", "wrote") != "one" {
		t.Error(got)
	}
	if got := b.lines(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("what ran left %q", got)
	}
}
