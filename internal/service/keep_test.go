package service

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// oneStore is what all scenes keep things in, each under names of its own where
// that matters.
var oneStore = sync.OnceValue(func() store.Store {
	st, err := sqlite.Open(context.Background(), oneDir(), sqlite.Options{})
	if err != nil {
		panic(err)
	}
	return st
})

var oneDir = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "mortise-service-")
	if err != nil {
		panic(err)
	}
	return dir
})

var oneVault = sync.OnceValue(func() *secret.Vault {
	return secret.New(oneStore(), secret.Place{Dir: oneDir()}, secret.NewScrubber())
})

func TestMain(m *testing.M) {
	status := m.Run()
	_ = oneStore().Close()
	_ = os.RemoveAll(oneDir())
	os.Exit(status)
}

// A safe answers out of a vault.
type safe struct{ *secret.Vault }

func safeOf(v *secret.Vault) Secrets { return safe{v} }

func (s safe) Find(ctx context.Context, t *plugin.Target, call *plugin.Call, name, scope string) (secret.Value, bool, error) {
	return s.Vault.Get(ctx, secret.Need{Tenant: call.Tenant, Plugin: t.Manifest.Name, Subject: secret.Subject(call.Principal), Name: name, Scope: scope})
}

func (s safe) Keep(ctx context.Context, tx store.Tx, t *plugin.Target, call *plugin.Call, name string, value secret.Value) error {
	return s.PutIn(ctx, tx, store.SecretName{Tenant: call.Tenant, Owner: t.Manifest.Name, Scope: secret.User, Subject: secret.Subject(call.Principal), Name: name}, value, secret.By{Principal: call.Principal.ID, Call: call.ID})
}

func (s safe) Drop(ctx context.Context, tx store.Tx, t *plugin.Target, call *plugin.Call, name string) (bool, []string, error) {
	return s.DeleteIn(ctx, tx, store.SecretName{Tenant: call.Tenant, Owner: t.Manifest.Name, Scope: secret.User, Subject: secret.Subject(call.Principal), Name: name}, secret.By{Principal: call.Principal.ID, Call: call.ID})
}

// keeping is a scene whose operation may keep things, in a tenant of its own.
func keeping(t *testing.T) *scene {
	s := newScene(t)
	s.call.Tenant = t.Name()
	s.target.Operation.Effects = []string{storageWrite, cursorWrite, secretWrite}
	return s
}

// ask asks for what must be answered.
func (s *scene) ask(method, args string) string {
	s.t.Helper()
	value, err := s.services().Serve(s.t.Context(), method, json.RawMessage(args))
	if err != nil {
		s.t.Fatalf("%s %.200s: %v", method, args, err)
	}
	return string(value)
}

func (s *scene) equal(method, args, want string) {
	s.t.Helper()
	if got := s.ask(method, args); got != want {
		s.t.Errorf("%s %s: %s, want %s", method, args, got, want)
	}
}

func TestWhatIsStoredIsApart(t *testing.T) {
	t.Parallel()
	s := keeping(t)
	s.equal("storage.get", `{"key":"k"}`, `{"found":false}`)
	s.equal("storage.put", `{"key":"k","value":{"b":[1,null]}}`, `{}`)
	s.equal("storage.get", `{"key":"k"}`, `{"found":true,"value":{"b":[1,null]}}`)
	s.equal("storage.put", `{"key":"k","value":null,"namespace":"other"}`, `{}`)
	s.equal("storage.get", `{"key":"k","namespace":"other"}`, `{"found":true,"value":null}`)
	for what, change := range map[string]func(other *scene){
		"tenant":    func(o *scene) { o.call.Tenant += "/other" },
		"plugin":    func(o *scene) { o.target.Manifest.Name = "other" },
		"principal": func(o *scene) { o.call.Principal.ID = "user:bob" },
		"kind":      func(o *scene) { o.call.Principal.Type = "service" },
	} {
		other := keeping(t)
		change(other)
		if got := other.ask("storage.get", `{"key":"k"}`); got != `{"found":false}` {
			t.Errorf("another %s sees %s", what, got)
		}
		other.equal("storage.delete", `{"key":"k"}`, `{"deleted":false}`)
	}
	s.equal("storage.delete", `{"key":"k"}`, `{"deleted":true}`)
	s.equal("storage.delete", `{"key":"k"}`, `{"deleted":false}`)
	s.equal("storage.get", `{"key":"k"}`, `{"found":false}`)
	s.equal("storage.get", `{"key":"k","namespace":"other"}`, `{"found":true,"value":null}`)
}

func TestWhatIsStoredIsBounded(t *testing.T) {
	t.Parallel()
	s := keeping(t)
	long := strings.Repeat("k", keyBytes+1)
	for args, code := range map[string]plugin.Code{
		`{"key":"","value":1}`:                                          plugin.CodeInvalidInput,
		`{"key":"` + long + `","value":1}`:                              plugin.CodeInvalidInput,
		`{"key":"a\u0000","value":1}`:                                   plugin.CodeInvalidInput,
		`{"key":"k","namespace":"` + long + `","value":1}`:              plugin.CodeInvalidInput,
		`{"key":"k"}`:                                                   plugin.CodeInvalidInput,
		`{"key":"k","value":1,"x":1}`:                                   plugin.CodeInvalidInput,
		`{"key":"k","value":"` + strings.Repeat("v", valueBytes) + `"}`: plugin.CodeInputTooLarge,
	} {
		if err := s.fail("storage.put", args); plugin.CodeOf(err) != code {
			t.Errorf("%.60s: %v", args, err)
		}
	}
	full := `"` + strings.Repeat("v", valueBytes-2) + `"`
	s.ask("storage.put", `{"key":"`+long[1:]+`","value":`+full+`}`)
	// One plugin fills its quota, whichever principal it works for, and can free it again.
	n := 0
	for ; ; n++ {
		s.call.Principal.ID = fmt.Sprintf("user:%d", n%7)
		_, err := s.services().Serve(t.Context(), "storage.put", json.RawMessage(fmt.Sprintf(`{"key":"k%d","value":%s}`, n, full)))
		if plugin.CodeOf(err) == plugin.CodeLimitExceeded {
			break
		}
		if err != nil || n > keptBytes/valueBytes {
			t.Fatalf("number %d: %v", n, err)
		}
	}
	if n < keptBytes/valueBytes*9/10 {
		t.Errorf("%d values were kept", n)
	}
	s.call.Principal.ID = "user:0"
	s.ask("storage.put", `{"key":"k0","value":`+full+`}`) // in place of itself
	s.ask("storage.delete", `{"key":"k0"}`)
	s.ask("storage.put", `{"key":"again","value":`+full+`}`)
	other := keeping(t)
	other.target.Manifest.Name = "other"
	other.ask("storage.put", `{"key":"k","value":1}`)
}

// TestWhatIsStoredKeepsItsLabels: for every method that keeps something and every
// one that reads it, in a dry run as well. What was written with a label, and is
// written over without it, taints what reads it.
func TestWhatIsStoredKeepsItsLabels(t *testing.T) {
	t.Parallel()
	bases := func(method string) string { return `{"kb_ids":["labels"],"query":"` + method + `"}` }
	type keeping struct {
		put   string
		first string // its arguments, with the label
		again string // and without
		reads [][2]string
	}
	for n, kept := range []keeping{
		{"storage.put", `{"key":"k","value":1}`, `{"key":"k","value":2}`, [][2]string{{"storage.get", `{"key":"k"}`}}},
		{"cursor.set", `{"kb_id":"k","value":1}`, `{"kb_id":"k","value":2}`, [][2]string{{"cursor.get", `{"kb_id":"k"}`}}},
		{"cache.set", `{"key":"k","value":1}`, `{"key":"k","value":2}`, [][2]string{{"cache.get", `{"key":"k"}`}}},
		{
			kbText, `{"kb_id":"labels","title":"apples","content":"apples one","source_id":"s"}`, `{"kb_id":"labels","title":"apples","content":"apples two","source_id":"s"}`,
			[][2]string{
				{kbSearchChunks, bases("apples")},
				{kbSearchDocuments, bases("apples")},
				{kbGetDocument, `{"kb_id":"labels","document_id":"s"}`},
				{queryList, `{"kb_id":"labels"}`},
			},
		},
		{ // the same text, of which something else is known
			kbText, `{"kb_id":"labels","title":"pears","content":"pears","source_id":"p"}`, `{"kb_id":"labels","title":"pears","content":"pears","source_id":"p","source_url":"https://example.com/p"}`,
			[][2]string{{kbSearchChunks, bases("pears")}},
		},
	} {
		for _, dry := range []bool{false, true} {
			if dry && strings.HasPrefix(kept.put, "kb") {
				continue // of which a dry run finds only what is there
			}
			s := keepingIn(t, fmt.Sprintf("%s/%d/%t", t.Name(), n, dry))
			if dry {
				s.call.Dry = &plugin.DryRecorder{}
			}
			s.call.Labels = []string{plugin.Untrusted}
			s.ask(kept.put, kept.first)
			s.call.Labels = nil
			s.ask(kept.put, kept.again)
			for _, read := range kept.reads {
				services := s.services()
				got, err := services.Serve(t.Context(), read[0], json.RawMessage(read[1]))
				if err != nil {
					t.Fatal(err)
				}
				if labels := services.(*grant).Labels(); len(labels) != 1 || labels[0] != plugin.Untrusted {
					t.Errorf("%s after %s, dry %t: what reads %s has the labels %q", read[0], kept.put, dry, got, labels)
				}
			}
		}
	}
}

// keepingIn is [keeping] in a tenant with a knowledge base of its own.
func keepingIn(t *testing.T, tenant string) *scene {
	t.Helper()
	s := keeping(t)
	s.call.Tenant = tenant
	s.target.Manifest.Capabilities = append(s.target.Manifest.Capabilities, "cache", "kb", "query")
	s.target.Operation.Effects = append(s.target.Operation.Effects, kbWrite)
	if _, err := s.broker.Knowledge.Create(t.Context(), tenant, kb.Base{ID: "labels"}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestACursorBelongsToItsFeed(t *testing.T) {
	t.Parallel()
	s := keeping(t)
	s.equal("cursor.get", `{"kb_id":"kb"}`, `{"found":false}`)
	s.equal("cursor.set", `{"kb_id":"kb","value":"adhoc"}`, `{}`)
	s.call.Overlay = json.RawMessage(`{"exec":{"schedule_id":"s1"},"auth":{}}`)
	s.equal("cursor.get", `{"kb_id":"kb"}`, `{"found":false}`)
	s.equal("cursor.set", `{"kb_id":"kb","value":{"page":2}}`, `{}`)
	row, err := s.broker.Store.KV(t.Context(), CursorPlace(s.call.Tenant, "sample", "user::user:ada", "s1", "kb"))
	if err != nil || row == nil || row.Key != "feed:s1:kb:kb" || string(row.Value) != `{"page":2}` {
		t.Errorf("it is kept as %+v, %v", row, err)
	}
	s.call.Overlay = nil
	s.equal("cursor.get", `{"kb_id":"kb"}`, `{"found":true,"value":"adhoc"}`)
	s.equal("cursor.delete", `{"kb_id":"kb"}`, `{"deleted":true}`)
	s.equal("cursor.get", `{"kb_id":"kb"}`, `{"found":false}`)
	s.call.Overlay = json.RawMessage(`{"exec":{"schedule_id":"s1"}}`)
	s.equal("cursor.get", `{"kb_id":"kb"}`, `{"found":true,"value":{"page":2}}`)
	if err := s.fail("cursor.get", `{"kb_id":""}`); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Error(err)
	}
}

func TestSecretsOfAPlugin(t *testing.T) {
	t.Parallel()
	s := keeping(t)
	s.target.Operation.Secrets = map[string]plugin.SecretNeed{"mine": {AllowedScope: plugin.SecretOfUser}, "shared": {AllowedScope: plugin.SecretOfSystem}, "any": {}}
	s.target.Manifest.Operations = append(s.target.Manifest.Operations, &plugin.Operation{Name: "else", Secrets: map[string]plugin.SecretNeed{
		"elsewhere": {AllowedScope: plugin.SecretOfSystem}, "split": {AllowedScope: plugin.SecretOfSystem},
	}}, &plugin.Operation{Name: "third", Secrets: map[string]plugin.SecretNeed{"elsewhere": {}, "split": {AllowedScope: plugin.SecretOfUser}}})
	for _, name := range []string{"mine", "shared", "any", "elsewhere", "undeclared", "split"} {
		n := store.SecretName{Tenant: s.call.Tenant, Owner: secret.Anyone, Scope: secret.System, Name: name}
		if err := oneVault().Put(t.Context(), n, "of all: "+name, secret.By{}); err != nil {
			t.Fatal(err)
		}
	}
	s.equal("secrets.get", `{"name":"mine"}`, `{"found":false}`) // none of the system's for a user's
	s.equal("secrets.get", `{"name":"shared"}`, `{"found":true,"value":"of all: shared"}`)
	s.equal("secrets.get", `{"name":"any"}`, `{"found":true,"value":"of all: any"}`)
	s.equal("secrets.get", `{"name":"elsewhere"}`, `{"found":true,"value":"of all: elsewhere"}`)
	s.equal("secrets.set", `{"name":"mine","value":"own \"1\""}`, `{}`)
	s.equal("secrets.get", `{"name":"mine"}`, `{"found":true,"value":"own \"1\""}`)
	s.equal("secrets.set", `{"name":"any","value":"own"}`, `{}`)
	s.equal("secrets.get", `{"name":"any"}`, `{"found":true,"value":"own"}`)
	for _, name := range []string{"undeclared", "split"} {
		if err := s.fail("secrets.get", `{"name":"`+name+`"}`); plugin.CodeOf(err) != plugin.CodeServiceDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"shared", "elsewhere", "undeclared"} {
		if err := s.fail("secrets.set", `{"name":"`+name+`","value":"v"}`); plugin.CodeOf(err) != plugin.CodeServiceDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(s.refusals) != 5 {
		t.Errorf("%d refusals were reported", len(s.refusals))
	}
	s.call.Principal.ID = "user:bob"
	s.equal("secrets.get", `{"name":"mine"}`, `{"found":false}`)
	s.equal("secrets.get", `{"name":"any"}`, `{"found":true,"value":"of all: any"}`)
}

// TestWhatAJournalKeepsOfASecret: not even a hash.
func TestWhatAJournalKeepsOfASecret(t *testing.T) {
	t.Parallel()
	s := keeping(t)
	var hashes []string
	for _, value := range []string{"one", "two"} {
		task, err := secretSetTask(s.services().(*grant), json.RawMessage(`{"name":"api_key","value":"`+value+`"}`))
		if err != nil || strings.Contains(string(task.request), value) {
			t.Fatalf("%s, %v", task.request, err)
		}
		hashes = append(hashes, requestHash(secretsSet, task.request))
	}
	if hashes[0] != hashes[1] {
		t.Error("the hash tells two values apart")
	}
}

func TestBucketsOfTokens(t *testing.T) {
	t.Parallel()
	s := keeping(t)
	now := time.Now()
	s.broker.rates.now = func() time.Time { return now }
	s.equal("rate_limit.take", `{"bucket":"b","cost":60}`, `{"allowed":true,"retry_after_ms":0}`)
	s.equal("rate_limit.take", `{"bucket":"b"}`, `{"allowed":false,"retry_after_ms":1000}`)
	s.equal("rate_limit.take", `{"bucket":"c"}`, `{"allowed":true,"retry_after_ms":0}`)
	now = now.Add(1500 * time.Millisecond)
	s.equal("rate_limit.take", `{"bucket":"b"}`, `{"allowed":true,"retry_after_ms":0}`)
	s.equal("rate_limit.take", `{"bucket":"b","cost":2}`, `{"allowed":false,"retry_after_ms":1500}`)
	s.target.Manifest.Name = "other"
	s.equal("rate_limit.take", `{"bucket":"b","cost":60}`, `{"allowed":true,"retry_after_ms":0}`)
	now = now.Add(-time.Hour) // a clock that is set back gives nothing and takes nothing
	s.equal("rate_limit.take", `{"bucket":"b","cost":1}`, `{"allowed":false,"retry_after_ms":1000}`)
	for _, args := range []string{`{"bucket":""}`, `{"bucket":"b","cost":-1}`, `{"bucket":"b","cost":61}`, `{"bucket":"` + strings.Repeat("b", 201) + `"}`} {
		if err := s.fail("rate_limit.take", args); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%.40s: %v", args, err)
		}
	}
	for i := range rateBuckets + 5 {
		s.broker.rates.buckets.Take(rateKey{"t", "p", fmt.Sprint(i)}, 1, now)
	}
	if n := s.broker.rates.buckets.Len(); n != rateBuckets {
		t.Errorf("%d buckets are kept", n)
	}
}

func TestIdentitiesOfTheCaller(t *testing.T) {
	t.Parallel()
	s := keeping(t)
	s.call.Principal = plugin.Principal{Type: "user", ID: "ada"}
	s.equal("identity.current", `{}`, `{"user_id":"ada","email":null,"name":"ada","identities":{},"providers":{}}`)
	link := func(tenant, provider, id, who string) {
		t.Helper()
		row := store.IdentityRow{Tenant: tenant, Provider: provider, ExternalID: id, PrincipalType: "user", PrincipalID: who, Scopes: []string{}, At: time.Now()}
		if err := s.broker.Store.Write(t.Context(), func(tx store.Tx) error { return tx.PutIdentity(row) }); err != nil {
			t.Fatal(err)
		}
	}
	link(s.call.Tenant, "google", "1177", "ada")
	link(s.call.Tenant, "google", "ada@example.com", "ada")
	link(s.call.Tenant, "slack", "U1", "ada")
	link(s.call.Tenant, "google", "bob@example.com", "bob")
	link("another", "github", "ada", "ada")
	s.equal("identity.current", `{}`, `{"user_id":"ada","email":"ada@example.com","name":"ada","identities":{"google":{"email":"ada@example.com","subject":"ada@example.com"},"slack":{"email":null,"subject":"U1"}},"providers":{"google":[{"account_id":"1177","primary_email":null,"display_name":null,"scopes":[]},{"account_id":"ada@example.com","primary_email":"ada@example.com","display_name":null,"scopes":[]}],"slack":[{"account_id":"U1","primary_email":null,"display_name":null,"scopes":[]}]}}`)
	s.equal("identity.primary_email", `{"provider":"google"}`, `{"email":"ada@example.com"}`)
	s.equal("identity.primary_email", `{"provider":"slack"}`, `{"email":null}`)
	s.equal("identity.primary_email", `{"provider":"github"}`, `{"email":null}`)
	// What a user connected stands beside what an administrator linked.
	s.broker.Accounts = fewAccounts{{"google", "9", "other@example.com", nil}, {"slack", "U1", "ada@slack.example.com", nil}, {"github", "17", "", []string{"repo"}}}
	s.equal("identity.current", `{}`, `{"user_id":"ada","email":"ada@example.com","name":"ada","identities":{"github":{"email":null,"subject":"17"},"google":{"email":"ada@example.com","subject":"ada@example.com"},"slack":{"email":"ada@slack.example.com","subject":"U1"}},"providers":{"github":[{"account_id":"17","primary_email":null,"display_name":null,"scopes":["repo"]}],"google":[{"account_id":"1177","primary_email":null,"display_name":null,"scopes":[]},{"account_id":"ada@example.com","primary_email":"ada@example.com","display_name":null,"scopes":[]},{"account_id":"9","primary_email":"other@example.com","display_name":null,"scopes":[]}],"slack":[{"account_id":"U1","primary_email":"ada@slack.example.com","display_name":null,"scopes":[]}]}}`)
	s.equal("identity.primary_email", `{"provider":"slack"}`, `{"email":"ada@slack.example.com"}`)
	bob := `{"found":true,"value":{"user_id":"bob","email":"bob@example.com","subject":"bob@example.com"}}`
	s.equal("identity.lookup", `{"kind":"google_directory","value":"bob"}`, bob)
	s.equal("identity.lookup", `{"kind":"google","value":"bob@example.com"}`, bob)
	s.equal("identity.lookup", `{"kind":"slack","value":"bob"}`, `{"found":false}`)
	if err := s.fail("identity.lookup", `{"kind":"","value":"x"}`); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Error(err)
	}
}

// Few accounts are connected, and none gives a token.
type fewAccounts []ConnectedAccount

func (f fewAccounts) Connected(context.Context, *plugin.Call) ([]ConnectedAccount, error) {
	return f, nil
}

func (fewAccounts) Resolve(context.Context, *plugin.Target, *plugin.Call, AccountAsk) (AccountToken, error) {
	return AccountToken{}, nil
}

func TestAnAuditIsOnRecord(t *testing.T) {
	t.Parallel()
	s := keeping(t)
	s.call.ID = t.Name()
	services := s.services()
	for i := range auditsOfCall + 1 {
		_, err := services.Serve(t.Context(), "audit.log", json.RawMessage(`{"event":"mail.read","details":{"n":1}}`))
		if want := i == auditsOfCall; (plugin.CodeOf(err) == plugin.CodeLimitExceeded) != want || err != nil && !want {
			t.Fatalf("number %d: %v", i, err)
		}
	}
	n := 0
	for e, err := range oneStore().Entries(t.Context(), store.EntryFilter{Tenant: s.call.Tenant, Subject: s.call.ID}) {
		n++
		if err != nil || e.Kind != plugin.EntryPluginAudit || e.Principal != "user:ada" || string(e.Body) != `{"call_id":"`+t.Name()+`","operation":"sample/op","event":"mail.read","details":{"n":1}}` {
			t.Fatalf("the entry is %+v, %v", e, err)
		}
	}
	if n != auditsOfCall {
		t.Errorf("%d entries", n)
	}
	for _, args := range []string{`{"event":""}`, `{"event":"a\nb"}`, `{"event":"` + strings.Repeat("e", 201) + `"}`} {
		if err := s.fail("audit.log", args); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%.40s: %v", args, err)
		}
	}
	if err := s.fail("audit.log", `{"event":"e","details":"`+strings.Repeat("d", auditDetails)+`"}`); plugin.CodeOf(err) != plugin.CodeInputTooLarge {
		t.Error(err)
	}
}
