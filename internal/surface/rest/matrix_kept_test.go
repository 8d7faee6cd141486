package rest_test

import (
	"maps"

	"github.com/mortise-dev/mortise/internal/host"
)

func init() { maps.Copy(rows, keptRows) }

// keptRows are the routes of policies, secrets, accounts, identities, models, knowledge,
// reference data, the recovery, and what changes plans and makes tokens.
var keptRows = map[string]row{
	"GET /api/v1/policies":                               {owner: 200, other: 200},
	"PUT /api/v1/policies/{name}":                        {path: "/api/v1/policies/mail", body: `{"text":""}`, by: "mrt_root", owner: 428, other: 428},
	"DELETE /api/v1/policies/{name}":                     {path: "/api/v1/policies/mail", by: "mrt_root", owner: 428, other: 428},
	"POST /api/v1/policies:ask":                          {body: `{"operation":"desk/line"}`, owner: 200, other: 200},
	"POST /api/v1/policies:explain":                      {body: `{"operation":"desk/line"}`, owner: 200, other: 200},
	"POST /api/v1/policies:simulate":                     {body: `{"name":"mail","text":"permit (principal, action, resource);","requests":[{"operation":"desk/denied"}]}`, by: "mrt_root", owner: 200, other: 403},
	"GET /api/v1/secrets":                                {owner: 200, other: 200},
	"GET /api/v1/secrets/needs":                          {owner: 200, other: 200},
	"PUT /api/v1/secrets/{name}":                         {path: "/api/v1/secrets/key", body: `{"value":"v"}`, owner: 200, other: 200},
	"DELETE /api/v1/secrets/{name}":                      {path: "/api/v1/secrets/gone", owner: 200, other: 404},
	"POST /api/v1/secrets:rotate":                        {by: "mrt_root", owner: 403, other: 403},
	"POST /api/v1/secrets:delete-all":                    {by: "mrt_root", owner: 403, other: 403},
	"POST /api/v1/accounts/{provider}:connect":           {path: "/api/v1/accounts/google:connect", body: `{}`, owner: 403, other: 403},
	"POST /api/v1/plugins:register":                      {body: `{"path":"/plugins"}`, by: "mrt_root", owner: 403, other: 403},
	"POST /api/v1/adapters:deliver":                      {body: `{"adapter":"nothing","event":{}}`, owner: 404, other: 404},
	"GET /api/v1/accounts":                               {owner: 200, other: 200},
	"DELETE /api/v1/accounts/{provider}":                 {path: "/api/v1/accounts/google", owner: 404, other: 404},
	"POST /api/v1/accounts/{provider}:test":              {path: "/api/v1/accounts/google:test", owner: 422, other: 422},
	"GET /api/v1/identities":                             {by: "mrt_root", owner: 200, other: 403},
	"POST /api/v1/identities:link":                       {body: `{"provider":"mail","external_id":"a/b@example.org","principal":"ann"}`, by: "mrt_root", owner: 200, other: 403},
	"POST /api/v1/identities:unlink":                     {body: `{"provider":"mail","external_id":"gone@example.org"}`, by: "mrt_root", owner: 200, other: 403},
	"GET /api/v1/models":                                 {owner: 200, other: 200},
	"POST /api/v1/models:test":                           {body: `{"name":"none"}`, by: "mrt_root", owner: 404, other: 403},
	"GET /api/v1/quotas":                                 {owner: 200, other: 200},
	"GET /api/v1/knowledge":                              {owner: 200, other: 200},
	"POST /api/v1/knowledge":                             {body: `{"id":"made"}`, owner: 422, other: 200}, // ben is there first,
	"POST /api/v1/knowledge:search":                      {body: `{"query":"marmots"}`, owner: 200, other: 200},
	"GET /api/v1/knowledge/{id}":                         {path: "/api/v1/knowledge/{base}", owner: 200, other: 404, absent: "{base}"},
	"DELETE /api/v1/knowledge/{id}":                      {path: "/api/v1/knowledge/{doomed}", owner: 200, other: 404, absent: "{doomed}"},
	"POST /api/v1/knowledge/{id}:search":                 {path: "/api/v1/knowledge/{base}:search", body: `{"query":"marmots"}`, owner: 200, other: 404, absent: "{base}"},
	"POST /api/v1/knowledge/{id}:embed":                  {path: "/api/v1/knowledge/{base}:embed", owner: 503, other: 404, absent: "{base}"},
	"GET /api/v1/knowledge/{id}/documents":               {path: "/api/v1/knowledge/{base}/documents", owner: 200, other: 404, absent: "{base}"},
	"POST /api/v1/knowledge/{id}/documents":              {path: "/api/v1/knowledge/{base}/documents", body: `{"source_id":"two","text":"more of marmots"}`, owner: 200, other: 404, absent: "{base}"},
	"GET /api/v1/knowledge/{id}/documents/{document}":    {path: "/api/v1/knowledge/{base}/documents/{document}", owner: 200, other: 404, absent: "{base}"},
	"DELETE /api/v1/knowledge/{id}/documents/{document}": {path: "/api/v1/knowledge/{base}/documents/{torn}", owner: 200, other: 404, absent: "{base}"},
	"GET /api/v1/references":                             {owner: 200, other: 200},
	"PUT /api/v1/references/{key}":                       {path: "/api/v1/references/hosts", body: `{"form":"csv","text":"a,b"}`, by: "mrt_root", owner: 200, other: 403},
	"DELETE /api/v1/references/{key}":                    {path: "/api/v1/references/gone", by: "mrt_root", owner: 200, other: 403},
	"GET /api/v1/ledger/entries/{chain}/{seq}":           {path: "/api/v1/ledger/entries/1/1", by: "mrt_root", owner: 200, other: 403},
	"GET /api/v1/recovery":                               {owner: 200, other: 200},
	"GET /api/v1/retention":                              {by: "mrt_root", owner: 200, other: 403},
	"POST /api/v1/retention:apply":                       {by: "mrt_root", owner: 200, other: 403},
	"GET /api/v1/erasures":                               {by: "mrt_root", owner: 200, other: 403},
	"POST /api/v1/erasures":                              {body: `{"principal":"gone","dry_run":true}`, by: "mrt_root", owner: 200, other: 403},
	"POST /api/v1/recovery:confirm":                      {body: `{"reason":"it is known"}`, by: "mrt_root", owner: 404, other: 403},
	"POST /api/v1/plans":                                 {body: `{"agent":"planner/plan","input":{"intent":{"type":"Line.Leave","payload":{}}}}`, owner: 200, other: 200},
	"POST /api/v1/plans/{id}:cancel":                     {path: "/api/v1/plans/{plan}:cancel", owner: 200, other: 404, absent: "{plan}"},
	"POST /api/v1/plans/{id}:resume":                     {path: "/api/v1/plans/{held}:resume", owner: 200, other: 404, absent: "{held}"},
	"POST /api/v1/tokens":                                {body: `{"name":"ci","for":"ben","scopes":["configure"]}`, by: "mrt_root", owner: 200, other: 403},
}

func init() {
	maps.Copy(absents, map[string]string{"{base}": "absent", "{doomed}": "nowhere", "{held}": "0192aaaa-0000-7000-8000-000000000016"})
}

// keep makes what those routes are asked for, all of it ann's but what is the host's.
func (b *bench) keep(things map[string]string) {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	ann, root := b.app.As(person("ann")), b.app.As(person("root"))
	_, err := ann.Secrets().Set(b.Context(), host.SecretPlace{Name: "gone"}, "it is not to be seen")
	must(err)
	_, err = root.Identities().Link(b.Context(), "mail", "gone@example.org", "ann")
	must(err)
	_, err = root.References().Put(b.Context(), "gone", "txt", []byte("x"))
	must(err)
	for name, id := range map[string]string{"base": "handbook", "doomed": "leaflets"} {
		base, err := ann.Knowledge().Create(b.Context(), host.KnowledgeBase{ID: id})
		must(err)
		things[name] = base.ID
	}
	for name, id := range map[string]string{"document": "one", "torn": "page"} {
		doc, err := ann.Knowledge().Ingest(b.Context(), host.Source{KB: things["base"], ID: id, Text: "ann wrote of marmots, on " + id})
		must(err)
		things[name] = doc.DocumentID
	}
	things["held"] = b.planned()
}
