package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// dimensions are in what two calls may differ. change turns the call of one scene into that of
// another one, whose calls have nothing in common with it in this dimension.
var dimensions = []struct {
	name   string
	change func(s *scene)
}{
	{"tenant", func(s *scene) { s.call.Tenant += "/other" }},
	{"plugin", func(s *scene) { s.target.Manifest.Name = "another" }},
	{"principal", func(s *scene) { s.call.Principal.ID = "user:bob" }},
	{"kind", func(s *scene) { s.call.Principal.Type = "service" }}, // of principal: a service may have a user's id
	{"feed", func(s *scene) { s.call.Overlay = json.RawMessage(`{"exec":{"schedule_id":"another"}}`) }},
}

// A sharing is one thing that services keep from call to call. The call of one scene changes it
// by write; the call of another scene looks by read, after its own setup.
type sharing struct {
	changes, reads []string // the methods of the row
	setup, write   string   // "method arguments"
	read           string
	put            func(s *scene) error // in place of write, for what no plugin changes
	stays          bool                 // it outlives the host
	found          string               // a text that says that something was found, of an answer that has times in it

	shared string // the dimensions in which calls share it; it is kept apart in all others
	why    string // of shared
}

// sharings are all that services keep. Kept apart in every dimension is the default; a row says
// in which dimensions calls share, and why.
var sharings = []sharing{
	{changes: []string{"cache.set"}, reads: []string{"cache.get"}, write: `cache.set {"key":"k","value":1}`, read: `cache.get {"key":"k"}`, stays: true,
		shared: "feed", why: "a feed runs as its owner, whose cache it is"},
	{changes: []string{"cache.delete"}, setup: `cache.set {"key":"k","value":1}`, write: `cache.delete {"key":"k"}`, read: `cache.get {"key":"k"}`, stays: true,
		shared: "feed", why: "as cache.set"},
	{changes: []string{"storage.put"}, reads: []string{"storage.get"}, write: `storage.put {"key":"k","value":1}`, read: `storage.get {"key":"k"}`, stays: true,
		shared: "feed", why: "a feed runs as its owner, whose values they are"},
	{changes: []string{"storage.delete"}, setup: `storage.put {"key":"k","value":1}`, write: `storage.delete {"key":"k"}`, read: `storage.get {"key":"k"}`, stays: true,
		shared: "feed", why: "as storage.put"},
	{changes: []string{"cursor.set"}, reads: []string{"cursor.get"}, write: `cursor.set {"kb_id":"k","value":1}`, read: `cursor.get {"kb_id":"k"}`, stays: true},
	{changes: []string{"cursor.delete"}, setup: `cursor.set {"kb_id":"k","value":1}`, write: `cursor.delete {"kb_id":"k"}`, read: `cursor.get {"kb_id":"k"}`, stays: true},
	{changes: []string{"secrets.set"}, reads: []string{"secrets.get"}, write: `secrets.set {"name":"api_key","value":"of one principal"}`, read: `secrets.get {"name":"api_key"}`, stays: true,
		shared: "feed", why: "a feed runs as its owner, whose secrets they are"},
	{changes: []string{"secrets.delete"}, setup: `secrets.set {"name":"api_key","value":"of one principal"}`, write: `secrets.delete {"name":"api_key"}`, read: `secrets.get {"name":"api_key"}`, stays: true,
		shared: "feed", why: "as secrets.set"},
	{changes: []string{"rate_limit.take"}, reads: []string{"rate_limit.take"}, write: `rate_limit.take {"bucket":"b","cost":60}`, read: `rate_limit.take {"bucket":"b","cost":60}`,
		shared: "principal kind feed", why: "a bucket paces what the plugin as a whole asks of another system; it holds a number and no value"},
	{reads: []string{"identity.current"}, put: link, read: `identity.current {}`, stays: true,
		shared: "plugin feed", why: "who a principal is elsewhere is the same for every plugin that may ask"},
	{reads: []string{"identity.primary_email"}, put: link, read: `identity.primary_email {"provider":"google"}`, stays: true,
		shared: "plugin feed", why: "as identity.current"},
	{reads: []string{"identity.lookup"}, put: link, read: `identity.lookup {"kind":"google","value":"ada@example.com"}`, stays: true,
		shared: "plugin principal kind feed", why: "it is the directory of the tenant, which an administrator fills"},
	{changes: []string{kbDocument, kbEmail, kbThread, kbText, kbObject}, reads: []string{kbSearchChunks, kbSearchDocuments, kbGetDocument, kbFindChunks, kbFindDocuments, kbFindDocument, queryList, queryGet},
		write: kbText + ` {"kb_id":"notes","title":"apples","content":"apples","source_id":"s"}`, read: kbSearchDocuments + ` {"kb_ids":["notes"],"query":"apples"}`, stays: true,
		shared: "plugin principal kind feed", why: "a knowledge base is the tenant's; a call that was given some uses no others"},
	{changes: []string{kbDelete}, setup: kbObject + ` {"kb_id":"notes","ko":{"external_id":"e","content":"apples","source":"s"}}`, write: kbDelete + ` {"kb_id":"notes","external_id":"e"}`,
		read: kbSearchDocuments + ` {"kb_ids":["notes"],"query":"apples"}`, stays: true, found: `"document_id"`,
		shared: "feed", why: "the id of an object is of its plugin, its principal and external_id"},
}

// unkept are the methods that keep nothing from call to call, each with the reason.
var unkept = map[string]string{
	"artifacts.list":               "it reads the session of the call, whose members the host admits",
	"artifacts.register":           "it adds to the session of the call",
	"session.open":                 "it reads the session of the call",
	"audit.log":                    "it writes to the ledger, which no service reads",
	"auth.resolve":                 "accounts are kept under the principal: internal/service/account::TestAUserConnectsAnAccount",
	"http.fetch":                   "it has no cookies and no cache; credentials are looked up for each call",
	"llm.query_text":               "answers of models are not kept",
	"llm.query_multimodal":         "answers of models are not kept",
	"llm.query_with_document":      "answers of models are not kept",
	"llm.supports_native_document": "it says what the configuration has",
	"ocr.extract_text":             "the text of a file is not kept",
	"operations.call":              "it is a call of its own, of the same principal",
	"scheduler.enqueue":            "it is a call of its own, of the same principal",
	"reference_data.get":           "an administrator keeps it for everyone",
}

// link links the principal of a scene to an address.
func link(s *scene) error {
	of := s.call.Principal.Type
	if of == "" {
		of = "user"
	}
	return oneStore().Write(s.t.Context(), func(tx store.Tx) error {
		return tx.PutIdentity(store.IdentityRow{Tenant: s.call.Tenant, Provider: "google", ExternalID: "ada@example.com", PrincipalType: of, PrincipalID: s.call.Principal.ID, Scopes: []string{}})
	})
}

// TestEveryMethodHasARowOfWhatItShares: a method that is new says in the table what its calls
// share, or why nothing is kept.
func TestEveryMethodHasARowOfWhatItShares(t *testing.T) {
	t.Parallel()
	for name := range methods {
		in := slices.ContainsFunc(sharings, func(s sharing) bool { return slices.Contains(s.changes, name) || slices.Contains(s.reads, name) })
		if _, nothing := unkept[name]; in == nothing {
			t.Errorf("%s is in the table of what is kept: %t, and among what keeps nothing: %t; want one of both", name, in, nothing)
		}
	}
	for _, row := range sharings {
		if (row.shared == "") != (row.why == "") {
			t.Errorf("%s: calls share it in %q, and the reason is %q", row.read, row.shared, row.why)
		}
	}
}

// TestWhatAServiceKeepsIsOfOnePrincipal: for each thing that services keep, and each dimension,
// the answer of one call is the same whether or not another call, which differs in that dimension
// alone, changed it before. Where the table says that calls share it, the answers differ; they do
// between calls that differ in nothing, so that each row is seen to work.
func TestWhatAServiceKeepsIsOfOnePrincipal(t *testing.T) {
	t.Parallel()
	for n, row := range sharings {
		hosts := []bool{false}
		if row.stays {
			hosts = []bool{false, true} // in the next host too
		}
		for _, next := range hosts {
			for d := -1; d < len(dimensions); d++ {
				dimension, want := "nothing", true
				if d >= 0 {
					dimension = dimensions[d].name
					want = slices.Contains(strings.Fields(row.shared), dimension)
				}
				answers := [2]string{}
				for with := range answers {
					tenant := fmt.Sprint(t.Name(), n, next, d, with)
					answers[with] = row.look(t, tenant, d, next, with == 1)
				}
				if got := answers[0] != answers[1]; got != want {
					t.Errorf("row %d: %s of a call that differs in %s answers %s, and %s after that call's %s; shared is %t, want %t (in the next host: %t)",
						n, row.read, dimension, answers[0], answers[1], row.write, got, want, next)
				}
			}
		}
	}
}

// look returns what one call reads, where another one that differs in dimension d changed it
// before, or none did.
func (row *sharing) look(t *testing.T, tenant string, d int, next, changed bool) string {
	t.Helper()
	one, other := sharer(t, tenant), sharer(t, tenant)
	one.broker = other.broker
	if d >= 0 {
		dimensions[d].change(other)
	}
	for _, s := range []*scene{one, other} {
		if !strings.HasPrefix(row.write, "kb.") {
			break
		}
		if _, err := s.broker.Knowledge.Create(t.Context(), s.call.Tenant, kb.Base{ID: "notes"}); err != nil && plugin.CodeOf(err) != plugin.CodeInvalidInput { // the tenant has it
			t.Fatal(err)
		}
	}
	one.asked(row.setup)
	if changed && row.put != nil {
		if err := row.put(other); err != nil {
			t.Fatal(err)
		}
	} else if changed {
		other.asked(row.write)
	}
	if next {
		_ = one.broker.Close()
		one.broker = newScene(t).broker
	}
	answer := one.asked(row.read)
	if row.found != "" {
		return fmt.Sprint(strings.Contains(answer, row.found))
	}
	return answer
}

// sharer is a scene that may do what the table asks for.
func sharer(t *testing.T, tenant string) *scene {
	s := newScene(t)
	s.call.Tenant = tenant
	s.target.Operation.Effects = []string{storageWrite, cursorWrite, secretWrite, kbWrite}
	s.call.Overlay = json.RawMessage(`{"exec":{"schedule_id":"feed"}}`)
	return s
}

// asked asks for "method arguments", and returns the answer or the code of the error.
func (s *scene) asked(what string) string {
	s.t.Helper()
	if what == "" {
		return ""
	}
	method, args, _ := strings.Cut(what, " ")
	raw, err := s.services().Serve(s.t.Context(), method, json.RawMessage(args))
	if err != nil {
		return string(plugin.CodeOf(err))
	}
	return string(raw)
}
