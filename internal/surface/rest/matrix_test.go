package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// A row is what a route answers those who may use it.
type row struct {
	path   string // with the names of things in braces
	body   string
	owner  int    // ann, whose things they are, with a token of the scope of the route alone
	other  int    // ben, who knows nothing of them
	by     string // whose token is the owner's; mrt_ann where it is empty
	also   string // another scope that is needed
	absent string // the path with a thing that there is not: others are answered alike there
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
	"GET /api/v1/plugins/{name}/needs":                     {path: "/api/v1/plugins/desk/needs", owner: 200, other: 200},
	"POST /api/v1/plugins/{name}:subscribe":                {path: "/api/v1/plugins/desk:subscribe", owner: 422, other: 422},
	"POST /api/v1/plugins/{name}:unsubscribe":              {path: "/api/v1/plugins/desk:unsubscribe", owner: 422, other: 422},
	"POST /api/v1/plugins/{name}:map":                      {path: "/api/v1/plugins/{mapped}:map", body: `{"operation":"go","effects":["db_write"]}`, by: "mrt_root", owner: 200, other: 404, absent: "{mapped}"},
	"POST /api/v1/plugins/{name}:environment":              {path: "/api/v1/plugins/desk:environment", body: `{}`, by: "mrt_root", owner: 403, other: 403},
	"POST /api/v1/plugins/{name}/execute":                  {path: "/api/v1/plugins/solo/execute", body: `{"parameters":{"text":"x"}}`, owner: 200, other: 200},
	"POST /api/v1/calls":                                   {body: `{"operation":"desk/upper","input":{"text":"x"}}`, owner: 200, other: 200},
	"GET /api/v1/me":                                       {owner: 200, other: 200},
	"POST /api/v1/operations:resolve":                      {body: `{"operation":"desk/upper"}`, owner: 200, other: 200},
	"POST /api/v1/plugins:link":                            {body: `{"path":"/nothing"}`, by: "mrt_root", owner: 403, other: 403},
	"GET /api/v1/calls":                                    {owner: 200, other: 200},
	"GET /api/v1/calls/{id}":                               {path: "/api/v1/calls/{call}", owner: 200, other: 404, absent: "{call}"},
	"POST /api/v1/calls/{id}:cancel":                       {path: "/api/v1/calls/{call}:cancel", owner: 200, other: 404, absent: "{call}"},
	"POST /api/v1/calls/{id}:settle":                       {path: "/api/v1/calls/{call}:settle", body: `{"outcome":"failed","reason":"it is known"}`, owner: 409, other: 404, absent: "{call}"},
	"POST /api/v1/decisions":                               {body: `{"namespace":"hook","tool":"Read"}`, owner: 200, other: 200},
	"GET /api/v1/decisions/{id}":                           {path: "/api/v1/decisions/{decision}", owner: 200, other: 404, absent: "{decision}"},
	"POST /api/v1/decisions/{id}:settle":                   {path: "/api/v1/decisions/{decision}:settle", body: `{"outcome":"succeeded"}`, owner: 200, other: 404, absent: "{decision}"},
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
	"GET /api/v1/tenants":                                  {by: "mrt_site", owner: 200, other: 403},
	"POST /api/v1/tenants":                                 {body: `{"name":"made"}`, by: "mrt_site", owner: 200, other: 403},
	"GET /api/v1/tenants/{name}":                           {path: "/api/v1/tenants/{tenant}", by: "mrt_site", owner: 200, other: 403, absent: "{tenant}"},
	"POST /api/v1/tenants/{name}:disable":                  {path: "/api/v1/tenants/{tenant}:disable", by: "mrt_site", owner: 200, other: 403, absent: "{tenant}"},
	"POST /api/v1/tenants/{name}:enable":                   {path: "/api/v1/tenants/{tenant}:enable", by: "mrt_site", owner: 200, other: 403, absent: "{tenant}"},
	"GET /api/v1/browsers":                                 {owner: 200, other: 200},
	"POST /api/v1/browsers/{id}:end":                       {path: "/api/v1/browsers/{browser}:end", owner: 404, other: 404, absent: "{browser}"},
	"GET /api/v1/plans":                                    {owner: 200, other: 200},
	"GET /api/v1/plans/{id}":                               {path: "/api/v1/plans/{plan}", owner: 200, other: 404, absent: "{plan}"},
	"GET /api/v1/ledger/entries":                           {by: "mrt_root", owner: 200, other: 403},
	"GET /api/v1/ledger/head":                              {by: "mrt_root", owner: 200, other: 403},
	"POST /api/v1/ledger:verify":                           {by: "mrt_root", owner: 200, other: 403},
	"GET /api/v1/events":                                   {owner: 200, other: 200},
	"GET /api/v1/calls/{id}/events":                        {path: "/api/v1/calls/{call}/events", owner: 200, other: 404, absent: "{call}"},
	"GET /api/v1/sessions":                                 {owner: 200, other: 200},
	"GET /api/v1/sessions/{id}":                            {path: "/api/v1/sessions/{session}", owner: 200, other: 404, absent: "{session}"},
	"GET /api/v1/sessions/{id}/artifacts":                  {path: "/api/v1/sessions/{session}/artifacts", owner: 200, other: 404, absent: "{session}"},
	"GET /api/v1/sessions/{id}/artifacts/{artifact}":       {path: "/api/v1/sessions/{session}/artifacts/{artifact}", owner: 200, other: 404, absent: "{session}"},

	"POST /api/v1/sessions":                {body: `{"name":"another"}`, owner: 200, other: 200},
	"DELETE /api/v1/sessions/{id}":         {path: "/api/v1/sessions/{unkept}", owner: 200, other: 404, absent: "{unkept}"},
	"POST /api/v1/sessions/{id}:close":     {path: "/api/v1/sessions/{session}:close", owner: 200, other: 404, absent: "{session}"},
	"POST /api/v1/sessions/{id}:resume":    {path: "/api/v1/sessions/{session}:resume", owner: 200, other: 404, absent: "{session}"},
	"POST /api/v1/sessions/{id}/artifacts": {path: "/api/v1/sessions/{session}/artifacts", body: `{"name":"a.txt","content":"YQ=="}`, owner: 200, other: 404, absent: "{session}"},

	"GET /api/v1/plugins/{name}/review":    {path: "/api/v1/plugins/{reviewed}/review", by: "mrt_root", owner: 200, other: 404, absent: "{reviewed}"},
	"POST /api/v1/plugins/{name}:review":   {path: "/api/v1/plugins/{reviewed}:review", by: "mrt_root", owner: 200, other: 404, absent: "{reviewed}"},
	"GET /api/v1/plugins/{name}/actions":   {path: "/api/v1/plugins/{reviewed}/actions", by: "mrt_root", owner: 200, other: 404, absent: "{reviewed}"},
	"POST /api/v1/plugins/{name}:refresh":  {path: "/api/v1/plugins/{stepped}:refresh", by: "mrt_root", owner: 422, other: 404, absent: "{stepped}"},
	"POST /api/v1/plugins/{name}:rollback": {path: "/api/v1/plugins/{stepped}:rollback", by: "mrt_root", owner: 200, other: 404, absent: "{stepped}"},
	"DELETE /api/v1/plugins/{name}":        {path: "/api/v1/plugins/{spare}@1.0.0", by: "mrt_root", owner: 200, other: 404, absent: "{spare}"},
	"POST /api/v1/plugins/{name}:approve": {path: "/api/v1/plugins/{waiting}@1.1.0:approve", by: "mrt_root", owner: 200, other: 404, absent: "{waiting}",
		body: `{"digest":"{digest}","difference_hash":"{difference}","approved":{"version":"1.0.0","digest":"{before}"}}`},

	"GET /api/v1/agents":                                          {by: "mrt_root", owner: 200, other: 403},
	"POST /api/v1/agents":                                         {body: `{"id":"clerk"}`, by: "mrt_root", owner: 200, other: 403},
	"GET /api/v1/agents/{id}":                                     {path: "/api/v1/agents/{agent}", by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"PATCH /api/v1/agents/{id}":                                   {path: "/api/v1/agents/{agent}", body: `{"prompt":"You help."}`, by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"DELETE /api/v1/agents/{id}":                                  {path: "/api/v1/agents/{dismissed}", by: "mrt_root", owner: 200, other: 403, absent: "{dismissed}"},
	"GET /api/v1/agents/{id}/overview":                            {path: "/api/v1/agents/{agent}/overview", by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"POST /api/v1/agents/{id}:start":                              {path: "/api/v1/agents/{agent}:start", by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"POST /api/v1/agents/{id}:stop":                               {path: "/api/v1/agents/{agent}:stop", by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"GET /api/v1/agents/{id}/assignments":                         {path: "/api/v1/agents/{agent}/assignments", by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"GET /api/v1/agents/{id}/assignments/{plugin}":                {path: "/api/v1/agents/{agent}/assignments/desk", by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"PUT /api/v1/agents/{id}/assignments/{plugin}":                {path: "/api/v1/agents/{agent}/assignments/desk", body: `{"enabled":false}`, by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"PUT /api/v1/assignments/{plugin}":                            {path: "/api/v1/assignments/solo", body: `{"enabled":true}`, by: "mrt_root", owner: 200, other: 403},
	"GET /api/v1/agents/{id}/memories":                            {path: "/api/v1/agents/{agent}/memories", by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"POST /api/v1/agents/{id}/memories:remember":                  {path: "/api/v1/agents/{agent}/memories:remember", body: `{"key":"door","content":"It is red."}`, by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"POST /api/v1/agents/{id}/memories:forget":                    {path: "/api/v1/agents/{agent}/memories:forget", body: `{"key":"hours"}`, by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"POST /api/v1/agents/{id}/feeds":                              {path: "/api/v1/agents/{agent}/feeds", body: `{"text":"hello","spec":"every 24h"}`, by: "mrt_root", also: "run", owner: 200, other: 403, absent: "{agent}"},
	"GET /api/v1/agents/{id}/conversations":                       {path: "/api/v1/agents/{agent}/conversations", by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"POST /api/v1/agents/{id}/conversations":                      {path: "/api/v1/agents/{agent}/conversations", body: `{"conversation":"{conversation}"}`, by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"POST /api/v1/agents/{id}/conversations/{conversation}:tools": {path: "/api/v1/agents/{agent}/conversations/{conversation}:tools", by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"POST /api/v1/agents/{id}/conversations:talk":                 {path: "/api/v1/agents/{agent}/conversations:talk", body: `{"text":"hello"}`, by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"POST /api/v1/agents/{id}/conversations:end":                  {path: "/api/v1/agents/{agent}/conversations:end", by: "mrt_root", owner: 200, other: 403, absent: "{agent}"},
	"GET /api/v1/agents/{id}/conversations/{conversation}":        {path: "/api/v1/agents/{agent}/conversations/{conversation}", by: "mrt_root", owner: 200, other: 403, absent: "{conversation}"},
	"POST /api/v1/agents/{id}/conversations/{conversation}:end":   {path: "/api/v1/agents/{agent}/conversations/{ended}:end", by: "mrt_root", owner: 200, other: 403, absent: "{ended}"},

	"POST /api/v1/operations:route":  {body: `{"text":"make a text upper case","session":"{session}"}`, owner: 200, other: 404, absent: "{session}"},
	"GET /api/v1/feeds":              {owner: 200, other: 200},
	"POST /api/v1/feeds":             {body: `{"operation":"desk/upper","input":{"text":"a"},"spec":"every 24h"}`, owner: 200, other: 200},
	"GET /api/v1/feeds/{id}":         {path: "/api/v1/feeds/{feed}", owner: 200, other: 404, absent: "{feed}"},
	"GET /api/v1/feeds/{id}/runs":    {path: "/api/v1/feeds/{feed}/runs", owner: 200, other: 404, absent: "{feed}"},
	"PATCH /api/v1/feeds/{id}":       {path: "/api/v1/feeds/{feed}", body: `{"spec":"every 12h"}`, owner: 200, other: 404, absent: "{feed}"},
	"DELETE /api/v1/feeds/{id}":      {path: "/api/v1/feeds/{unfed}", owner: 200, other: 404, absent: "{unfed}"},
	"POST /api/v1/feeds/{id}:pause":  {path: "/api/v1/feeds/{feed}:pause", owner: 200, other: 404, absent: "{feed}"},
	"POST /api/v1/feeds/{id}:reset":  {path: "/api/v1/feeds/{feed}:reset", owner: 200, other: 404, absent: "{feed}"},
	"POST /api/v1/feeds/{id}:resume": {path: "/api/v1/feeds/{feed}:resume", owner: 200, other: 404, absent: "{feed}"},
	"POST /api/v1/feeds/{id}:run":    {path: "/api/v1/feeds/{feed}:run", owner: 202, other: 404, absent: "{feed}"},
}

// absents are things that there are not.
var absents = map[string]string{
	"{decision}": "0192aaaa-0000-7000-8000-000000000018",
	"{call}":     "0192aaaa-0000-7000-8000-000000000001", "{approval}": "0192aaaa-0000-7000-8000-000000000002", "{plan}": "0192aaaa-0000-7000-8000-000000000003",
	"{session}": "sess_0123456789ab", "{agreed}": "0192aaaa-0000-7000-8000-000000000004", "{denied}": "0192aaaa-0000-7000-8000-000000000005", "{token}": "0123456789",
	"{unkept}": "sess_0123456789ac", "{conversation}": "sess_0123456789ad", "{ended}": "sess_0123456789ae", "{agent}": "stranger", "{dismissed}": "leaver",
	"{feed}": "0192aaaa-0000-7000-8000-000000000006", "{unfed}": "0192aaaa-0000-7000-8000-000000000007",
	"{waiting}": "nothing", "{reviewed}": "nowhere", "{spare}": "no-such", "{stepped}": "none", "{mapped}": "unmapped", "{browser}": "9876543210", "{tenant}": "vacant",
}

// shared are those things whose ids all principals may know.
var shared = map[string]bool{}

// A document is what the test reads of the OpenAPI document.
type document struct {
	OpenAPI string                                `json:"openapi"`
	Paths   map[string]map[string]json.RawMessage `json:"paths"`
	Parts   struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`
}

// lapsed returns tokens that the host made and that are in force no more.
func (b *bench) lapsed() map[string]string {
	b.Helper()
	tokens := b.app.As(person("root")).Tokens()
	_, expired, err := tokens.Create(b.Context(), host.NewToken{Name: "expired", For: "ann", Scopes: host.Scopes, Life: time.Microsecond})
	if err != nil {
		b.Fatal(err)
	}
	t, revoked, err := tokens.Create(b.Context(), host.NewToken{Name: "revoked", For: "ann", Scopes: host.Scopes})
	if err == nil {
		_, err = tokens.Revoke(b.Context(), t.ID)
	}
	if err != nil {
		b.Fatal(err)
	}
	return map[string]string{"none": "", "an unknown one": "mrt_unknown", "no token": "root", "one and more": "mrt_ann x", "an expired one": expired, "a revoked one": revoked}
}

// fill puts things into a path or a body, in place of their names in braces.
func fill(text string, with map[string]string) string {
	for name, id := range with {
		text = strings.ReplaceAll(text, "{"+strings.Trim(name, "{}")+"}", id)
	}
	return text
}

// token returns whose token is the owner's, with the scopes that the route needs alone.
func (r row) token(scope string, with map[string]string) string {
	token := fill(r.by, with)
	switch {
	case token == "":
		token = "mrt_ann"
	case token != r.by:
		return token // one that the host made
	}
	if scope == "any" {
		return token
	}
	if r.also != "" {
		scope += "+" + r.also
	}
	return token + ":" + scope
}

// Every route of the document meets all who may come: without a token and with one that is
// not in force; with a token of each scope, alone and with all of them; another principal,
// for whom what there is is as what there is not; and the owner.
func TestRoutes(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	things, lapsed := b.things(), b.lapsed()
	var doc document
	if err := json.Unmarshal([]byte(b.is(b.ask("mrt_ann", "GET", "/api/v1/openapi.json", ""), 200, "").text), &doc); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			var op struct {
				Scope string `json:"x-scope"`
			}
			if err := json.Unmarshal(doc.Paths[path][method], &op); err != nil || op.Scope != "any" && !slices.Contains(host.Scopes, op.Scope) {
				t.Errorf("%s %s has the scope %q (%v)", method, path, op.Scope, err)
			}
			name := strings.ToUpper(method) + " " + path
			row, known := rows[name]
			if !known {
				t.Errorf("%s has no row here", name)
				continue
			}
			found++
			if row.path == "" {
				row.path = path
			}
			where, body := fill(row.path, things), fill(row.body, things)
			ask := func(token string) answer { return b.ask(token, strings.ToUpper(method), where, body) }
			without := b.is(ask(""), 401, "unauthenticated")
			for what, token := range lapsed {
				if a := b.is(ask(token), 401, "unauthenticated"); a.text != without.text || a.header.Get("WWW-Authenticate") != "Bearer" {
					t.Errorf("%s: with %s it is answered %s, and without a token %s", name, what, a, without)
				}
			}
			owner, _, _ := strings.Cut(row.token(op.Scope, things), ":")
			for _, scope := range append([]string{"none"}, host.Scopes...) {
				if op.Scope == "any" || scope == op.Scope || scope == "admin" {
					continue
				}
				a := b.is(ask(owner+":"+scope), 403, "scope_denied")
				if a.header.Get("WWW-Authenticate") != fmt.Sprintf("Bearer error=%q, scope=%q", "insufficient_scope", op.Scope) {
					t.Errorf("%s with the scope %s: %s %v", name, scope, a, a.header)
				}
			}
			if row.also != "" {
				b.is(ask(owner+":"+op.Scope), 403, "")
			}
			other := ask("mrt_ben")
			for what, id := range things {
				if len(id) > 12 && strings.Contains(other.text, id) && !strings.Contains(where+body, id) && !shared[what] {
					t.Errorf("%s: to another principal the answer has the %s of ann: %s", name, what, other)
				}
			}
			if other.status != row.other {
				t.Errorf("%s: another principal is answered %s, want %d", name, other, row.other)
			} else if row.absent != "" {
				there := fill(row.path, map[string]string{row.absent: absents[row.absent]})
				named := fill(row.body, map[string]string{row.absent: absents[row.absent]})
				missing := b.ask("mrt_ben", strings.ToUpper(method), fill(there, things), fill(named, things))
				own := things[strings.Trim(row.absent, "{}")]
				if missing.status != row.other || strings.ReplaceAll(missing.text, absents[row.absent], own) != other.text {
					t.Errorf("%s: what is another's is answered %s, and what there is not %s", name, other, missing)
				}
			}
			if method == "get" { // all else can be done once
				if a := ask(owner + ":admin"); a.status != row.owner {
					t.Errorf("%s: with all scopes it is answered %s, want %d", name, a, row.owner)
				}
			}
			if a := ask(row.token(op.Scope, things)); a.status != row.owner {
				t.Errorf("%s: the owner is answered %s, want %d", name, a, row.owner)
			}
		}
	}
	if found != len(rows) {
		t.Errorf("the document has %d of the %d routes here", found, len(rows))
	}
}
