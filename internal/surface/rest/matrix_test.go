package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// A row is what a route answers those who may use it.
type row struct {
	path   string // with the names of things in braces
	body   string
	owner  int    // ann, whose things they are
	other  int    // ben, who knows nothing of them
	by     string // whose token is the owner's; mrt_ann where it is empty
	absent string // the path with a thing that there is not, where other is 404: both are answered alike
}

// rows are all routes. A route of the document that has none fails the test.
var rows = map[string]row{
	"GET /api/v1/openapi.json":                             {owner: 200, other: 200},
	"GET /api/v1/operations":                               {owner: 200, other: 200},
	"GET /api/v1/operations/{plugin}/{operation}":          {path: "/api/v1/operations/desk/line", owner: 200, other: 200},
	"POST /api/v1/operations/{plugin}/{operation}:execute": {path: "/api/v1/operations/desk/upper:execute", body: `{"input":{"text":"x"}}`, owner: 200, other: 200},
	"GET /api/v1/plugins":                                  {owner: 200, other: 200},
	"GET /api/v1/plugins/{name}":                           {path: "/api/v1/plugins/desk", owner: 200, other: 200},
	"POST /api/v1/plugins/{name}:enable":                   {path: "/api/v1/plugins/desk:enable", by: "mrt_root", owner: 200, other: 403},
	"POST /api/v1/plugins/{name}:disable":                  {path: "/api/v1/plugins/planner:disable", by: "mrt_root", owner: 200, other: 403},
	"POST /api/v1/plugins/{name}/execute":                  {path: "/api/v1/plugins/solo/execute", body: `{"parameters":{"text":"x"}}`, owner: 200, other: 200},
	"GET /api/v1/calls":                                    {owner: 200, other: 200},
	"GET /api/v1/calls/{id}":                               {path: "/api/v1/calls/{call}", owner: 200, other: 404, absent: "{call}"},
	"POST /api/v1/calls/{id}:cancel":                       {path: "/api/v1/calls/{call}:cancel", owner: 200, other: 404, absent: "{call}"},
	"POST /api/v1/calls/{id}:settle":                       {path: "/api/v1/calls/{call}:settle", body: `{"outcome":"failed","reason":"it is known"}`, owner: 409, other: 404, absent: "{call}"},
	"GET /api/v1/approvals":                                {owner: 200, other: 200},
	"GET /api/v1/approvals/{id}":                           {path: "/api/v1/approvals/{approval}", owner: 200, other: 404, absent: "{approval}"},
	"POST /api/v1/approvals/{id}:approve":                  {path: "/api/v1/approvals/{agreed}:approve", by: "mrt_bob", owner: 200, other: 404, absent: "{agreed}"},
	"POST /api/v1/approvals/{id}:deny":                     {path: "/api/v1/approvals/{denied}:deny", by: "mrt_bob", owner: 200, other: 404, absent: "{denied}"},
	"GET /api/v1/tokens":                                   {owner: 200, other: 200},
	"POST /api/v1/tokens/current:rotate":                   {by: "{secret}", owner: 200, other: 422},
	"POST /api/v1/tokens/{id}:revoke":                      {path: "/api/v1/tokens/{token}:revoke", owner: 200, other: 404, absent: "{token}"},
	"GET /api/v1/users":                                    {by: "mrt_root", owner: 200, other: 403},
	"POST /api/v1/users":                                   {body: `{"principal":"service::ci"}`, by: "mrt_root", owner: 200, other: 403},
	"GET /api/v1/users/{id}":                               {path: "/api/v1/users/{user}", by: "mrt_root", owner: 200, other: 403},
	"POST /api/v1/users/{id}:disable":                      {path: "/api/v1/users/{user}:disable", by: "mrt_root", owner: 200, other: 403},
	"POST /api/v1/users/{id}:enable":                       {path: "/api/v1/users/{user}:enable", by: "mrt_root", owner: 200, other: 403},
	"POST /api/v1/users/{id}:invite":                       {path: "/api/v1/users/{user}:invite", by: "mrt_root", owner: 200, other: 403},
	"POST /api/v1/users/{id}:unlink":                       {path: "/api/v1/users/{user}:unlink", body: `{"identity":"os:0"}`, by: "mrt_root", owner: 404, other: 403},
	"GET /api/v1/browsers":                                 {owner: 200, other: 200},
	"POST /api/v1/browsers/{id}:end":                       {path: "/api/v1/browsers/{browser}:end", owner: 404, other: 404, absent: "{browser}"},
	"GET /api/v1/plans":                                    {owner: 200, other: 200},
	"GET /api/v1/plans/{id}":                               {path: "/api/v1/plans/{plan}", owner: 200, other: 404, absent: "{plan}"},
	"GET /api/v1/ledger/entries":                           {by: "mrt_root", owner: 200, other: 403},
	"GET /api/v1/ledger/head":                              {by: "mrt_root", owner: 200, other: 403},
	"GET /api/v1/sessions":                                 {owner: 200, other: 200},
	"GET /api/v1/sessions/{id}":                            {path: "/api/v1/sessions/{session}", owner: 200, other: 404, absent: "{session}"},
	"GET /api/v1/sessions/{id}/artifacts":                  {path: "/api/v1/sessions/{session}/artifacts", owner: 200, other: 404, absent: "{session}"},
	"GET /api/v1/sessions/{id}/artifacts/{artifact}":       {path: "/api/v1/sessions/{session}/artifacts/{artifact}", owner: 200, other: 404, absent: "{session}"},
}

// absents are things that there are not.
var absents = map[string]string{
	"{call}": "0192aaaa-0000-7000-8000-000000000001", "{approval}": "0192aaaa-0000-7000-8000-000000000002", "{plan}": "0192aaaa-0000-7000-8000-000000000003",
	"{session}": "sess_0123456789ab", "{agreed}": "0192aaaa-0000-7000-8000-000000000004", "{denied}": "0192aaaa-0000-7000-8000-000000000005", "{token}": "0123456789", "{browser}": "9876543210",
}

// A document is what the test reads of the OpenAPI document.
type document struct {
	OpenAPI string                                `json:"openapi"`
	Paths   map[string]map[string]json.RawMessage `json:"paths"`
	Parts   struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`
}

// Every route of the document meets everyone who may come: without a token, with a bad
// one, without its scope, with it, as another principal, and as the owner.
func TestRoutes(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	things := b.things()
	fill := func(path string, with map[string]string) string {
		for name, id := range with {
			path = strings.ReplaceAll(path, "{"+strings.Trim(name, "{}")+"}", id)
		}
		return path
	}
	var doc document
	if err := json.Unmarshal([]byte(b.is(b.ask("mrt_ann", "GET", "/api/v1/openapi.json", ""), 200, "").text), &doc); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for method, raw := range doc.Paths[path] {
			method = strings.ToUpper(method)
			var op struct {
				Scope string `json:"x-scope"`
			}
			if err := json.Unmarshal(raw, &op); err != nil || op.Scope != "any" && !slices.Contains(host.Scopes, op.Scope) {
				t.Errorf("%s %s has the scope %q (%v)", method, path, op.Scope, err)
			}
			name := method + " " + path
			row, known := rows[name]
			if !known {
				t.Errorf("%s has no row here", name)
				continue
			}
			found++
			if row.path == "" {
				row.path = path
			}
			where := fill(row.path, things)
			ask := func(token string) answer { return b.ask(token, method, where, row.body) }
			without := b.is(ask(""), 401, "unauthenticated")
			for _, token := range []string{"mrt_unknown", "root", "mrt_ann x"} {
				if a := b.is(ask(token), 401, "unauthenticated"); a.text != without.text || a.header.Get("WWW-Authenticate") != "Bearer" {
					t.Errorf("%s: a bad token is answered %s, and none %s", name, a, without)
				}
			}
			for token, scopes := range map[string][]string{"mrt_none": nil, "mrt_reader": {"read"}, "mrt_runner": {"run"}} {
				if op.Scope == "any" || slices.Contains(scopes, op.Scope) {
					if row.by != "" || strings.Contains(path, "{id}:") { // what can be done once is the owner's
						continue
					}
					if a := ask(token); a.status != row.owner {
						t.Errorf("%s: with %s it is answered %s, want %d", name, token, a, row.owner)
					}
					continue
				}
				a := b.is(ask(token), 403, "scope_denied")
				if a.header.Get("WWW-Authenticate") != fmt.Sprintf("Bearer error=%q, scope=%q", "insufficient_scope", op.Scope) {
					t.Errorf("%s: %s %v", name, a, a.header)
				}
			}
			if other := ask("mrt_ben"); other.status != row.other {
				t.Errorf("%s: another principal is answered %s, want %d", name, other, row.other)
			} else if row.absent != "" {
				missing := b.ask("mrt_ben", method, fill(fill(row.path, absents), things), row.body)
				own := things[strings.Trim(row.absent, "{}")]
				if missing.status != 404 || strings.ReplaceAll(missing.text, absents[row.absent], own) != other.text {
					t.Errorf("%s: what is another's is answered %s, and what there is not %s", name, other, missing)
				}
			}
			token := fill(row.by, things)
			if token == "" {
				token = "mrt_ann"
			}
			if a := ask(token); a.status != row.owner {
				t.Errorf("%s: the owner is answered %s, want %d", name, a, row.owner)
			}
		}
	}
	if found != len(rows) {
		t.Errorf("the document has %d of the %d routes here", found, len(rows))
	}
}
