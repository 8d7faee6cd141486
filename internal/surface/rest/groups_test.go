package rest_test

import (
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// The groups that a sign-in gives are part of who asks, wherever that counts: in what runs, in
// what policy answers, in lists, and in what a stream tells. Another sign-in of the same
// principal, without them, has none of it: nothing is remembered by the name alone.
func TestGroupsOfASignInCountEverywhere(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	const rules = `permit (principal in Group::"people", action in [Action::"execute", Action::"list"], resource == Operation::"desk/denied");
permit (principal in Group::"people", action == Action::"configure", resource == Plugin::"mortise.calls");`
	if _, err := b.app.As(person("root")).Policies().Put(t.Context(), "people", []byte(rules), ""); err != nil {
		t.Fatal(err)
	}
	of := b.is(b.execute("mrt_ann", "line", "ann's"), 200, "")
	id := fmt.Sprint(of.at("call_id"))
	seen := b.followed("mrt_in", "GET", "/api/v1/events?types=call.succeeded", "")
	unseen := b.followed("mrt_eve", "GET", "/api/v1/events?types=call.succeeded", "")
	for _, ways := range []struct {
		what, method, path, body string
		in, out                  int
	}{
		{"a call", "POST", "/api/v1/operations/desk/denied:execute", `{"input":{"text":"x"}}`, 200, 403},
		{"a call of another", "GET", "/api/v1/calls/" + id, "", 200, 404},
	} {
		if a := b.ask("mrt_in", ways.method, ways.path, ways.body); a.status != ways.in {
			t.Errorf("%s, in the group: %s", ways.what, a)
		}
		if a := b.ask("mrt_eve", ways.method, ways.path, ways.body); a.status != ways.out {
			t.Errorf("%s, in no group: %s", ways.what, a)
		}
	}
	for token, verdict := range map[string]string{"mrt_in": "allow", "mrt_eve": "deny"} {
		for _, route := range []string{"ask", "explain"} {
			a := b.is(b.ask(token, "POST", "/api/v1/policies:"+route, `{"operation":"desk/denied"}`), 200, "")
			if a.at("verdict") != verdict {
				t.Errorf("policies:%s answers %s with %s; the verdict on what runs is %s", route, token, a, verdict)
			}
		}
	}
	next := fmt.Sprint(b.is(b.execute("mrt_ann", "line", "ann's next"), 200, "").at("call_id"))
	for told := ""; told != next; {
		told = fmt.Sprint(seen.event().body["id"])
	}
	own := fmt.Sprint(b.is(b.execute("mrt_eve", "line", "eve's"), 200, "").at("call_id"))
	for told := ""; told != own; {
		if told = fmt.Sprint(unseen.event().body["id"]); told == next {
			t.Errorf("the stream of who may not see call %s tells of it", next)
		}
	}
}
