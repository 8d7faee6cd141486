package rest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// A secret goes in and does not come out: not by any route, and not to the log.
func TestNoRouteAnswersASecret(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := begin(t, rest.Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	const value = "correct-horse-battery-staple"
	in := fmt.Sprintf(`{"value":%q}`, value)
	for _, a := range []answer{
		b.is(b.ask("mrt_ann", "PUT", "/api/v1/secrets/key", in), 200, ""),
		b.is(b.ask("mrt_ann", "PUT", "/api/v1/secrets/key?plugin=desk", in), 200, ""),
		b.is(b.ask("mrt_ann", "GET", "/api/v1/secrets", ""), 200, ""),
		b.is(b.ask("mrt_ann", "GET", "/api/v1/secrets/needs?plugin=desk", ""), 200, ""),
		b.is(b.ask("mrt_root", "GET", "/api/v1/secrets", ""), 200, ""),
		b.is(b.ask("mrt_ann", "GET", "/api/v1/secrets/key", ""), 405, "invalid_input"),
		b.is(b.ask("mrt_ann", "PUT", "/api/v1/secrets/key", fmt.Sprintf(`{"value":%q,"more":%q}`, value, value)), 422, "invalid_input"),
		b.is(b.ask("mrt_ann", "PUT", "/api/v1/secrets/key", fmt.Sprintf(`{"value":[%q]}`, value)), 422, "invalid_input"),
		b.is(b.ask("mrt_ann", "PUT", "/api/v1/secrets/key?user=ann&system=true", in), 422, "invalid_input"),
		b.is(b.ask("mrt_ann", "PUT", "/api/v1/secrets/key", fmt.Sprintf(`{"value":%q}`, strings.Repeat(value, 3000))), 422, "invalid_input"),
		b.is(b.ask("mrt_ann", "DELETE", "/api/v1/secrets/key?plugin=desk", ""), 200, ""),
		b.is(b.ask("mrt_ann", "DELETE", "/api/v1/secrets/key?plugin=desk", ""), 404, "not_found"),
	} {
		if strings.Contains(a.text, value) || strings.Contains(a.text, base64.StdEncoding.EncodeToString([]byte(value))) {
			t.Errorf("a secret is answered: %s", a)
		}
	}
	if strings.Contains(log.String(), value) {
		t.Error("a secret is in the log")
	}
	if listed := b.ask("mrt_ben", "GET", "/api/v1/secrets", ""); strings.Contains(listed.text, "key") {
		t.Errorf("ben sees %s", listed)
	}
	before := b.refusals(plugin.EntrySecretRefused)
	for _, where := range []string{"?system=true", "?user=ben", "?user=root", "?user=unknown"} {
		b.is(b.ask("mrt_ann", "PUT", "/api/v1/secrets/key"+where, in), 403, "policy_denied")
		b.is(b.ask("mrt_ann", "DELETE", "/api/v1/secrets/key"+where, ""), 403, "policy_denied")
	}
	if n := b.refusals(plugin.EntrySecretRefused); n != before+8 {
		t.Errorf("8 refusals leave %d entries", n-before)
	}
	b.is(b.ask("mrt_root", "PUT", "/api/v1/secrets/key?system=true", in), 200, "")
}

// The policies are changed as they were read, or not at all.
func TestPoliciesAreChangedAsTheyWereRead(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	const path = "/api/v1/policies/quiet"
	text := func(id string) string {
		return fmt.Sprintf(`{"text":"@id(\"%s\") forbid (principal == User::\"eve\", action, resource);"}`, id)
	}
	listed := b.is(b.ask("mrt_reader", "GET", "/api/v1/policies", ""), 200, "")
	was := listed.header.Get("ETag")
	if was != fmt.Sprintf("%q", listed.at("version")) || was == `""` {
		t.Fatalf("the set has the ETag %s, and is %s", was, listed)
	}
	for _, match := range []string{"*", "W/" + was, strings.Trim(was, `"`), `"a", "b"`, `""`} {
		b.is(b.ask("mrt_root", "PUT", path, text("a"), "If-Match", match), 412, "conflict")
	}
	b.is(b.ask("mrt_root", "PUT", path, text("a")), 428, "conflict")
	b.is(b.ask("mrt_root", "PUT", path, text("a"), "If-Match", `"another"`), 412, "conflict")
	b.is(b.ask("mrt_ann", "PUT", path, text("a"), "If-Match", was), 403, "policy_denied")
	b.is(b.ask("mrt_root", "PUT", path, `{"text":"permit permit"}`, "If-Match", was), 422, "invalid_input")
	b.is(b.ask("mrt_root", "PUT", "/api/v1/policies/NO", text("a"), "If-Match", was), 422, "invalid_input")
	put := b.is(b.ask("mrt_root", "PUT", path, text("a"), "If-Match", was), 200, "")
	now := b.ask("mrt_root", "GET", "/api/v1/policies", "").header.Get("ETag")
	if put.header.Get("ETag") != now || now == was {
		t.Errorf("the change is answered %s %v, and the set is %s", put, put.header, now)
	}
	b.is(b.ask("mrt_root", "PUT", path, text("b"), "If-Match", was), 412, "conflict")
	b.is(b.ask("mrt_root", "DELETE", path, "", "If-Match", was), 412, "conflict")
	gone := b.is(b.ask("mrt_root", "DELETE", path, "", "If-Match", now), 200, "")
	if gone.header.Get("ETag") != was {
		t.Errorf("without it the set is %v, and was %s", gone.header, was)
	}
	b.is(b.ask("mrt_root", "DELETE", path, "", "If-Match", was), 404, "not_found")
	// What is asked, and what would be otherwise, changes nothing.
	if a := b.is(b.ask("mrt_ann", "POST", "/api/v1/policies:ask", `{"operation":"desk/denied"}`), 200, ""); a.at("verdict") != "deny" {
		t.Errorf("ann may: %s", a)
	}
	b.is(b.ask("mrt_ann", "POST", "/api/v1/policies:ask", `{"operation":"desk/line","principal":"ben"}`), 403, "policy_denied")
	b.is(b.ask("mrt_root", "POST", "/api/v1/policies:ask", `{"operation":"desk/line","principal":"ben"}`), 200, "")
	a := b.is(b.ask("mrt_root", "POST", "/api/v1/policies:simulate", `{"name":"more","text":"permit (principal == User::\"ann\", action, resource);",
		"requests":[{"operation":"desk/line"},{"principal":"ann","operation":"desk/denied"}]}`), 200, "")
	if differences, _ := a.at("differences").([]any); fmt.Sprint(a.at("requests")) != "2" || len(differences) != 1 || !strings.Contains(a.text, `"line":2`) {
		t.Errorf("the simulation is %s", a)
	}
	if after := b.ask("mrt_root", "GET", "/api/v1/policies", ""); after.text != listed.text {
		t.Errorf("the policies are %s, and were %s", after, listed)
	}
}

// A token that is made over the API ends no later than the one that makes it, and its secret is
// told once.
func TestATokenOverTheAPIEndsNoLater(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	made := func(a answer) string {
		t.Helper()
		secret, _ := a.at("token").(string)
		if a.status != 200 || len(secret) != realToken {
			t.Fatalf("a token is answered %s", a)
		}
		return secret
	}
	maker := made(b.ask("mrt_root", "POST", "/api/v1/tokens", `{"name":"maker","for":"root","scopes":["admin"],"expires_in":3600}`))
	before := b.refusals(plugin.EntryTokenRefused)
	later := []string{`{"name":"x","operations":["desk/*"],"expires_in":7200}`, `{"name":"x","operations":["desk/*"],"no_expiry":true}`}
	for _, body := range later {
		b.is(b.ask(maker, "POST", "/api/v1/tokens", body), 403, "policy_denied")
	}
	if n := b.refusals(plugin.EntryTokenRefused); n != before+len(later) {
		t.Errorf("%d refusals leave %d entries", len(later), n-before)
	}
	for _, body := range []string{`{"name":"x","operations":["desk/*"],"expires_in":60,"no_expiry":true}`, `{"name":""}`, `{"name":"x","scopes":["fly"]}`, `{"name":"x","expires_in":0}`, `{"name":"x","expires_in":-1}`} {
		b.is(b.ask(maker, "POST", "/api/v1/tokens", body), 422, "invalid_input")
	}
	b.is(b.ask(maker, "POST", "/api/v1/tokens", `{"name":"x","for":"mallory","operations":["desk/*"]}`), 404, "not_found")
	narrow := made(b.ask(maker, "POST", "/api/v1/tokens", `{"name":"narrow","for":"ann","operations":["desk/upper"]}`))
	b.is(b.ask(narrow, "GET", "/api/v1/calls", ""), 200, "")
	b.is(b.execute(narrow, "upper", "a"), 403, "scope_denied")
	b.is(b.ask("mrt_ann", "POST", "/api/v1/tokens", `{"name":"x"}`), 403, "policy_denied")
	if listed := b.ask("mrt_root", "GET", "/api/v1/tokens", ""); strings.Contains(listed.text, maker) || strings.Contains(listed.text, narrow) || strings.Contains(listed.text, "hash") {
		t.Errorf("the list tells a secret: %s", listed)
	}
}

// A plan is made once for a key, stops, and does not go on again.
func TestPlansOverTheAPI(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	const plans = "/api/v1/plans"
	body := `{"agent":"planner/plan","input":{"intent":{"type":"Line.Leave","payload":{}}}}`
	first := b.is(b.ask("mrt_ann", "POST", plans, body, "Idempotency-Key", "one"), 200, "planned")
	again := b.is(b.ask("mrt_ann", "POST", plans, body, "Idempotency-Key", "one"), 200, "planned")
	id := fmt.Sprint(first.at("plan", "id"))
	if again.at("plan", "id") != first.at("plan", "id") || again.header.Get("Idempotency-Replayed") != "true" || first.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("the key is answered %s and %s", first, again)
	}
	b.is(b.ask("mrt_ben", "POST", plans, body, "Idempotency-Key", "one"), 422, "key_conflict")
	b.is(b.ask("mrt_ann", "POST", plans, `{"agent":"planner/plan","input":{"intent":{"type":"Other","payload":{}}}}`, "Idempotency-Key", "one"), 422, "key_conflict")
	b.is(b.ask("mrt_ann", "POST", plans, `{"agent":"absent/plan"}`), 404, "not_found")
	b.is(b.ask("mrt_ann", "POST", plans, `{"agent":"desk/line","input":{"text":"a"}}`), 422, "invalid_input")
	b.is(b.ask("mrt_desk", "POST", plans, body), 403, "policy_denied")
	row, err := b.app.Store.Approval(b.Context(), "local", fmt.Sprint(first.at("plan", "approval")))
	if err != nil || row == nil || row.Asker != "api:ann" {
		t.Errorf("the plan is asked for by %+v, %v; the token says who", row, err)
	}
	b.is(b.ask("mrt_ann", "POST", plans+"/"+id[:8]+":cancel", ""), 404, "not_found")
	b.is(b.ask("mrt_desk", "POST", plans+"/"+id+":resume", ""), 403, "policy_denied")
	if a := b.is(b.ask("mrt_ann", "POST", plans+"/"+id+":cancel", `{"reason":"it is over"}`), 200, ""); a.at("state") != "cancelled" {
		t.Errorf("it is %s", a)
	}
	b.is(b.ask("mrt_ann", "POST", plans+"/"+id+":cancel", ""), 409, "invalid_input")
	b.is(b.ask("mrt_ann", "POST", plans+"/"+id+":resume", ""), 409, "invalid_input")
	if lines := b.lines(); len(lines) > 0 {
		t.Errorf("a plan that was stopped leaves %v", lines)
	}
}

// Documents are found by what is in them, and come as text or as bytes, never as a place
// on the disk of the host.
func TestKnowledgeOverTheAPI(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	const base = "/api/v1/knowledge/handbook"
	if made := b.is(b.ask("mrt_ann", "POST", "/api/v1/knowledge", `{"id":"handbook","name":"Handbook"}`), 200, ""); made.at("created_by") != "ann" {
		t.Errorf("it is %s", made)
	}
	page := base64.StdEncoding.EncodeToString([]byte("# Marmots\n\nThey whistle.\n"))
	for _, body := range []string{
		`{"source_id":"a","text":"Notice is given in writing."}`,
		`{"source_id":"b","data":"` + page + `","filename":"marmots.md","mime_type":"text/markdown"}`,
	} {
		if a := b.is(b.ask("mrt_ann", "POST", base+"/documents", body), 200, ""); a.at("created") != true || a.at("skipped") != false {
			t.Errorf("it is %s", a)
		}
	}
	for _, body := range []string{`{"source_id":"c"}`, `{"source_id":"c","text":"x","data":"eA=="}`, `{"source_id":"c","data":"not base64"}`, `{"source_id":"c","path":"/etc/passwd"}`, `{"text":"x"}`} {
		if a := b.ask("mrt_ann", "POST", base+"/documents", body); a.status != 422 && a.status != 400 {
			t.Errorf("%s is answered %s", body, a)
		}
	}
	for _, where := range []string{"/api/v1/knowledge:search", base + ":search"} {
		a := b.is(b.ask("mrt_reader", "POST", where, `{"query":"whistle"}`), 200, "")
		if results, _ := a.at("results").([]any); len(results) != 1 || !strings.Contains(a.text, "They whistle") {
			t.Errorf("%s finds %s", where, a)
		}
	}
	if a := b.is(b.ask("mrt_ben", "POST", "/api/v1/knowledge:search", `{"query":"whistle"}`), 200, ""); a.text != `{"results":[]}` {
		t.Errorf("ben finds %s", a)
	}
	first := b.is(b.ask("mrt_ann", "GET", base+"/documents?page_size=1", ""), 200, "")
	second := b.is(b.ask("mrt_ann", "GET", base+"/documents?page_size=1&page_token="+fmt.Sprint(first.at("next_page_token")), ""), 200, "")
	if second.at("next_page_token") != "" || strings.Contains(first.text, "content\"") {
		t.Errorf("the pages are %s and %s", first, second)
	}
	doc := first.at("documents").([]any)[0].(map[string]any)["document_id"].(string)
	if a := b.is(b.ask("mrt_ann", "GET", base+"/documents/"+doc, ""), 200, ""); a.at("content") == nil {
		t.Errorf("the document is %s", a)
	}
	b.is(b.ask("mrt_ann", "GET", base+"/documents/a", ""), 404, "not_found") // the id of its source
	b.is(b.ask("mrt_ann", "DELETE", base+"/documents/"+doc, ""), 200, "")
	b.is(b.ask("mrt_ann", "DELETE", base+"/documents/"+doc, ""), 404, "not_found")
}

// What else is kept is changed by who may, and read as it is.
func TestWhatElseIsKept(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	b.is(b.ask("mrt_root", "PUT", "/api/v1/references/hosts", `{"form":"json","text":"{\"a\":1}"}`), 200, "")
	b.is(b.ask("mrt_root", "PUT", "/api/v1/references/hosts", `{"form":"json","text":"{\"a\":"}`), 422, "invalid_input")
	b.is(b.ask("mrt_root", "PUT", "/api/v1/references/hosts", `{"form":"sh","text":"x"}`), 422, "invalid_input")
	b.is(b.ask("mrt_root", "PUT", "/api/v1/references/..hosts", `{"form":"txt","text":"x"}`), 422, "invalid_input")
	listed := b.is(b.ask("mrt_ben", "GET", "/api/v1/references", ""), 200, "")
	if !strings.Contains(listed.text, `"key":"hosts","form":"json","size":7`) {
		t.Errorf("the keys are %s", listed)
	}
	b.is(b.ask("mrt_root", "DELETE", "/api/v1/references/hosts", ""), 200, "")
	b.is(b.ask("mrt_root", "DELETE", "/api/v1/references/hosts", ""), 404, "not_found")

	one := b.is(b.ask("mrt_root", "GET", "/api/v1/ledger/entries?page_size=1", ""), 200, "")
	entry := one.at("entries").([]any)[0].(map[string]any)
	shown := b.is(b.ask("mrt_root", "GET", fmt.Sprintf("/api/v1/ledger/entries/%v/%v", entry["chain"], entry["seq"]), ""), 200, "")
	if shown.at("hash") != entry["hash"] || entry["hash"] == nil {
		t.Errorf("the entry is %s, and in the list %v", shown, entry)
	}
	b.is(b.ask("mrt_root", "GET", "/api/v1/ledger/entries/1/999999", ""), 404, "not_found")

	b.recovers("a test")
	if a := b.is(b.ask("mrt_root:read", "GET", "/api/v1/recovery", ""), 200, ""); a.at("recovery", "why") != "a test" || a.at("recovery", "anchors") == "" {
		t.Errorf("to who may end the recovery it is %s", a)
	}
	if a := b.is(b.ask("mrt_reader", "GET", "/api/v1/recovery", ""), 200, ""); a.at("recovery", "since") == "" || strings.Contains(a.text, "a test") || strings.Contains(a.text, "anchors") {
		t.Errorf("to who may not the recovery is %s", a)
	}
	b.is(b.ask("mrt_ann", "POST", "/api/v1/recovery:confirm", `{"reason":"it is known"}`), 403, "policy_denied")
	b.is(b.ask("mrt_root", "POST", "/api/v1/recovery:confirm", `{"reason":" "}`), 422, "invalid_input")
	b.is(b.ask("mrt_root", "POST", "/api/v1/recovery:confirm", `{"reason":"it is known"}`), 200, "")

	link := `{"provider":"mail","external_id":"a/b@example.org","principal":"ann","scopes":["desk:use"]}`
	b.is(b.ask("mrt_root", "POST", "/api/v1/identities:link", link), 200, "")
	b.is(b.ask("mrt_root", "POST", "/api/v1/identities:link", strings.Replace(link, `"ann"`, `"mallory"`, 1)), 404, "not_found")
	if links, err := b.app.As(person("root")).Identities().List(t.Context()); err != nil || len(links) != 1 || links[0].Principal != "ann" || links[0].By != "root" {
		t.Errorf("the links are %v, %v", links, err)
	}
	b.is(b.ask("mrt_root", "POST", "/api/v1/identities:unlink", `{"provider":"mail","external_id":"a/b@example.org"}`), 200, "")
	b.is(b.ask("mrt_root", "POST", "/api/v1/identities:unlink", `{"provider":"mail","external_id":"a/b@example.org"}`), 404, "not_found")
}

// A row of the list has all that names a secret: deleting what it names deletes that one, and
// none beside it.
func TestARowOfTheListNamesItsSecret(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	type row struct{ Name, Plugin, Scope, Subject string }
	list := func(token string) []row {
		t.Helper()
		var kept struct{ Secrets []row }
		if err := json.Unmarshal([]byte(b.is(b.ask(token, "GET", "/api/v1/secrets", ""), 200, "").text), &kept); err != nil {
			t.Fatal(err)
		}
		return kept.Secrets
	}
	address := func(r row) string {
		q := url.Values{"plugin": {r.Plugin}}
		if r.Scope == host.SecretOfSystem {
			q.Set("system", "true")
		} else {
			q.Set("user", r.Subject)
		}
		return "/api/v1/secrets/" + r.Name + "?" + q.Encode()
	}
	for _, name := range []string{"key", "other"} {
		for _, of := range []string{"*", "desk"} {
			for _, r := range []row{{name, of, host.SecretOfUser, "root"}, {name, of, host.SecretOfUser, "ann"}, {name, of, host.SecretOfUser, "ben"}, {name, of, host.SecretOfSystem, ""}} {
				b.is(b.ask("mrt_root", "PUT", address(r), `{"value":"correct-horse-battery"}`), 200, "")
			}
		}
	}
	for _, token := range []string{"mrt_root", "mrt_ann"} {
		before := list(token)
		if want := map[string]int{"mrt_root": 16, "mrt_ann": 4}[token]; len(before) != want {
			t.Fatalf("%s lists %d secrets, want %d", token, len(before), want)
		}
		for i, r := range before {
			all := list("mrt_root")
			b.is(b.ask(token, "DELETE", address(r), ""), 200, "")
			want := slices.DeleteFunc(slices.Clone(all), func(one row) bool { return one == r })
			if got := list("mrt_root"); !slices.Equal(got, want) || len(want) != len(all)-1 {
				t.Errorf("row %d: deleting %+v leaves %+v, want %+v", i, r, got, want)
			}
			b.is(b.ask(token, "PUT", address(r), `{"value":"correct-horse-battery"}`), 200, "")
		}
	}
}

// What a call is refused without is what both lists say is missing, also where the manifest has
// the host insert it into requests.
func TestTheListsOfNeedsHaveWhatACallIsRefusedFor(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.register("needy", "1.0.0", fmt.Sprintf(`runner: {kind: process, command: [%q, needy, here]}
capabilities: [http]
http:
  hosts: [api.example.com]
  inject:
  - {host: api.example.com, header: X-Token, secret: token}
  - {host: api.example.com, header: X-Spare, secret: spare, optional: true}
  - {host: api.example.com, query: key, secret: shared, allowed_scope: system}
operations:
  say: {kind: tool, secrets: {own: {allowed_scope: user}}}
`, self)); err != nil {
		t.Fatal(err)
	}
	type need struct {
		Name     string
		Optional bool
		There    string
	}
	missing := func(path string) []string {
		t.Helper()
		var listed struct{ Secrets []need }
		if err := json.Unmarshal([]byte(b.is(b.ask("mrt_root", "GET", path, ""), 200, "").text), &listed); err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, n := range listed.Secrets {
			if n.There == "" && !n.Optional {
				names = append(names, n.Name)
			}
		}
		return names
	}
	for _, want := range [][]string{{"own", "shared", "token"}, {"shared", "token"}, {"shared"}, {}} {
		for _, path := range []string{"/api/v1/secrets/needs?plugin=needy", "/api/v1/plugins/needy/needs"} {
			if got := missing(path); !slices.Equal(got, want) {
				t.Errorf("%s says that %v are missing, want %v", path, got, want)
			}
		}
		var refused struct {
			Code    plugin.Code
			Details struct{ Missing []string }
		}
		a := b.ask("mrt_root", "POST", "/api/v1/operations/needy/say:execute", `{"input":{"text":"a"}}`)
		if err := json.Unmarshal([]byte(a.text), &refused); err != nil {
			t.Fatal(err)
		}
		if got := refused.Details.Missing; !slices.Equal(got, want) && len(want) > 0 {
			t.Errorf("the call is refused for %v, want %v: %s", got, want, a)
		}
		if len(want) > 0 {
			whose := map[bool]string{true: "&system=true"}[want[0] == "shared" && len(want) == 1]
			name := map[int]string{3: "own", 2: "token", 1: "shared"}[len(want)]
			b.is(b.ask("mrt_root", "PUT", "/api/v1/secrets/"+name+"?plugin=needy"+whose, `{"value":"correct-horse-battery"}`), 200, "")
		} else if a.status != 200 {
			t.Errorf("with all secrets the call answers %s", a)
		}
	}
}
