package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A sealed store says what of it would be written, and writes nothing.
type sealed struct {
	Store
	t *testing.T
}

var errSealed = errors.New("a dry run wrote to the store")

func (s sealed) Write(context.Context, func(store.Tx) error) error {
	s.t.Error(errSealed)
	return errSealed
}

// never is a safe and accounts that may be asked and not changed.
type never struct {
	Secrets
	Accounts
	fail func(what string)
}

func (n never) Ready(context.Context) error { n.fail("a key was made"); return nil }
func (n never) Keep(context.Context, store.Tx, *plugin.Target, *plugin.Call, string, secret.Value) error {
	n.fail("a secret was kept")
	return nil
}
func (n never) Resolve(context.Context, *plugin.Target, *plugin.Call, AccountAsk) (AccountToken, error) {
	n.fail("a token was won")
	return AccountToken{}, nil
}

// newDryScene returns a scene whose call is a dry run, may cause every effect there is,
// and in which whatever is done for real fails the test.
func newDryScene(t *testing.T) (*scene, *model) {
	s, m := withModel(t, nil)
	s.target.Operation.Effects = []string{httpWrite, storageWrite, cursorWrite, secretWrite, kbWrite, scheduleWrite}
	s.call.Overlay = json.RawMessage(`{"exec":{"schedule_id":"feed"},"kb":{"knowledge_base_ids":["notes"]}}`)
	s.call.Dry = &plugin.DryRecorder{}
	s.broker.Store = sealed{s.broker.Store, t}
	fail := func(what string) { t.Error(what) }
	s.broker.Secrets = never{Secrets: s.broker.Secrets, fail: fail}
	s.broker.Accounts = never{Accounts: s.broker.Accounts, fail: fail}
	s.broker.Enqueue = func(context.Context, plugin.Call) (plugin.Result, error) {
		t.Error("a call was put on record")
		return plugin.Result{}, nil
	}
	s.broker.Call = func(_ context.Context, call plugin.Call) (plugin.Result, error) {
		if call.Dry != s.call.Dry {
			t.Error("a call below is not part of the dry run")
		}
		return plugin.Result{Status: plugin.Succeeded}, nil
	}
	s.broker.Scrubber = secret.NewScrubber()
	return s, m
}

// leaves are the methods that only read, outside the host.
var leaves = []string{fetchName, llmText, llmMultimodal, llmDocument, authResolve}

// TestEveryEffectHasADryRun walks the table of methods: in a dry run each is
// answered, what has an effect is noted and not done, and nothing leaves the host.
// A method without a row in the matrix, or without a dry handler, fails it.
func TestEveryEffectHasADryRun(t *testing.T) {
	t.Parallel()
	b := oneKnowledge()
	if _, err := b.Create(t.Context(), t.Name(), kb.Base{ID: "notes"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Ingest(t.Context(), t.Name(), kb.Source{KB: "notes", ID: "always", Text: "What is always there."}); err != nil {
		t.Fatal(err)
	}
	tenant := t.Name()
	noted := []string{"cache.set", artifactsRegister, auditLog} // of their own, and changes all the same
	for name := range methods {
		rows := 0
		for _, row := range matrixRows {
			if row.method != name {
				continue
			}
			rows++
			t.Run(row.method+" "+row.args, func(t *testing.T) {
				s, asked := newDryScene(t)
				s.call.Tenant = tenant
				session := &kept{}
				s.broker.Sessions, s.call.Session = session, "sess_000000000001"
				services := s.services()
				services.(*grant).Attach(fstest.MapFS{"made": {Data: []byte("made")}}, "/scratch")
				if row.method == storageDelete || row.method == cursorDelete || row.method == kbDelete || row.method == secretsDelete { // of what is there
					before := map[string]string{storageDelete: `{"key":"k","value":1}`, cursorDelete: `{"kb_id":"kb","value":1}`, secretsDelete: `{"name":"api_key","value":"of the rehearsal"}`,
						kbDelete: `{"kb_id":"notes","ko":{"external_id":"m6","content":"x","source":"s"}}`}
					put := map[string]string{storageDelete: storagePut, cursorDelete: cursorSet, secretsDelete: secretsSet, kbDelete: kbObject}
					if _, err := services.Serve(t.Context(), put[row.method], json.RawMessage(before[row.method])); err != nil {
						t.Fatal(err)
					}
				}
				had, _ := s.call.Dry.Changes()
				answer, err := services.Serve(t.Context(), row.method, json.RawMessage(row.args))
				if err != nil {
					t.Fatalf("it was not answered: %v", err)
				}
				if !json.Valid(answer) {
					t.Errorf("answer %s", answer)
				}
				changes, _ := s.call.Dry.Changes()
				changes = changes[len(had):]
				want := 0
				if row.class == Local || row.class == External || slices.Contains(noted, row.method) || slices.Contains(leaves, row.method) && row.method != llmDocument {
					want = 1
				}
				if len(changes) != want {
					t.Fatalf("%d changes, want %d: %+v", len(changes), want, changes)
				}
				for _, c := range changes {
					if c.Service+"."+c.Method != row.method || c.Class != string(row.class) || c.Effect != row.effect || c.Target == "" || c.Summary == "" || c.Operation != "sample/op" {
						t.Errorf("change %+v", c)
					}
				}
				if s.connections() != 0 || len(asked.asked) != 0 || len(session.list) != 0 {
					t.Errorf("%d connections, %d questions to models, %d artifacts", s.connections(), len(asked.asked), len(session.list))
				}
				if services.(*grant).Used() && row.method != secretsGet {
					t.Error("something outside was used")
				}
			})
		}
		if rows == 0 {
			t.Errorf("%s is not tested", name)
		}
	}
}

// A method without a dry handler that may change something is refused, and not done.
func TestWhatHasNoDoubleIsNotDone(t *testing.T) {
	t.Parallel()
	for _, class := range []Class{Own, Local, External, "", "new"} {
		s, _ := newDryScene(t)
		g := s.services().(*grant)
		_, err := g.dryRun(t.Context(), "new.method", task{class: class, effect: "e",
			do:     func(context.Context) (any, error) { t.Errorf("class %q was done", class); return nil, nil },
			commit: func(context.Context, store.Tx) (any, error) { t.Errorf("class %q was done", class); return nil, nil }})
		if plugin.CodeOf(err) != plugin.CodeUnavailable {
			t.Errorf("class %q: %v", class, err)
		}
	}
}

// A dry run is no way around what an operation may: what is refused elsewhere is
// refused here.
func TestADryRunIsJudgedLikeAnother(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		method, args string
		change       func(s *scene)
		code         plugin.Code
	}{
		{storagePut, `{"key":"k","value":1}`, func(s *scene) { s.target.Operation.Effects = nil }, plugin.CodeEffectUndeclared},
		{storagePut, `{"key":"k","value":1}`, func(s *scene) { s.target.Operation.Kind = plugin.Tool }, plugin.CodeEffectUndeclared},
		{storagePut, `{"key":"k","value":1}`, func(s *scene) { s.target.Manifest.Capabilities = nil }, plugin.CodeServiceDenied},
		{storagePut, `{"key":"k"}`, nil, plugin.CodeInvalidInput},
		{fetchName, `{"url":"http://elsewhere.example.net/"}`, nil, plugin.CodeEgressDenied},
		{fetchName, `{"url":"http://elsewhere.example.net/","method":"POST"}`, nil, plugin.CodeEgressDenied},
		{secretsSet, `{"name":"api_key","value":""}`, nil, plugin.CodeInvalidInput},
		{secretsSet, `{"name":"other","value":"x"}`, nil, plugin.CodeServiceDenied},
		{kbText, `{"kb_id":"third","title":"t","content":"x","source_id":"s"}`, nil, plugin.CodeServiceDenied},
		{schedulerEnqueue, `{"operation":"third/op"}`, nil, plugin.CodeServiceDenied},
	} {
		s, _ := newDryScene(t)
		if test.change != nil {
			test.change(s)
		}
		if err := s.fail(test.method, test.args); plugin.CodeOf(err) != test.code {
			t.Errorf("%s %s: %v", test.method, test.args, err)
		}
		if changes, _ := s.call.Dry.Changes(); len(changes) != 0 {
			t.Errorf("%s %s: %+v", test.method, test.args, changes)
		}
	}
}

// What a dry run would have written, the same dry run reads; the next one does
// not, and the store never has it.
func TestADryRunReadsWhatItWouldHaveWritten(t *testing.T) {
	t.Parallel()
	s, _ := newDryScene(t)
	s.call.Tenant = t.Name()
	real := keeping(t)
	real.call.Tenant = t.Name()
	real.equal("storage.put", `{"key":"old","value":{"n":1}}`, `{}`)
	real.equal("cursor.set", `{"kb_id":"kb","value":"monday"}`, `{}`)
	real.equal("secrets.set", `{"name":"api_key","value":"the real value"}`, `{}`)
	s.broker.cache.set(cacheKey{cacheOwner{t.Name(), "sample"}, cacheEntryName{s.services().(*grant).subject(), "old"}}, json.RawMessage(`1`), nil, cacheTTL)

	s.call.Overlay = nil
	for _, step := range []struct{ method, args, want string }{
		{"storage.get", `{"key":"old"}`, `{"found":true,"value":{"n":1}}`},
		{"storage.put", `{"key":"old","value":{"n":2}}`, `{}`},
		{"storage.get", `{"key":"old"}`, `{"found":true,"value":{"n":2}}`},
		{"storage.delete", `{"key":"old"}`, `{"deleted":true}`},
		{"storage.delete", `{"key":"old"}`, `{"deleted":false}`},
		{"storage.get", `{"key":"old"}`, `{"found":false}`},
		{"storage.put", `{"key":"new","namespace":"ns","value":7}`, `{}`},
		{"storage.get", `{"key":"new","namespace":"ns"}`, `{"found":true,"value":7}`},
		{"storage.get", `{"key":"new"}`, `{"found":false}`},
		{"cursor.get", `{"kb_id":"kb"}`, `{"found":true,"value":"monday"}`},
		{"cursor.set", `{"kb_id":"kb","value":"tuesday"}`, `{}`},
		{"cursor.get", `{"kb_id":"kb"}`, `{"found":true,"value":"tuesday"}`},
		{"cursor.delete", `{"kb_id":"kb"}`, `{"deleted":true}`},
		{"cursor.get", `{"kb_id":"kb"}`, `{"found":false}`},
		{"secrets.get", `{"name":"api_key"}`, `{"found":true,"value":"the real value"}`},
		{"secrets.set", `{"name":"api_key","value":"another value"}`, `{}`},
		{"secrets.get", `{"name":"api_key"}`, `{"found":true,"value":"another value"}`},
		{"cache.get", `{"key":"old"}`, `{"found":true,"value":1}`},
		{"cache.set", `{"key":"old","value":2}`, `{}`},
		{"cache.get", `{"key":"old"}`, `{"found":true,"value":2}`},
		{"cache.delete", `{"key":"old"}`, `{}`},
		{"cache.get", `{"key":"old"}`, `{"found":false}`},
	} {
		s.equal(step.method, step.args, step.want)
	}
	changes, _ := s.call.Dry.Changes()
	var lines []string
	for _, c := range changes {
		lines = append(lines, fmt.Sprintf("%s.%s %s %s -> %s", c.Service, c.Method, c.Target, c.Before, c.After))
	}
	want := []string{
		`storage.put old {"n":1} -> {"n":2}`, `storage.delete old {"n":2} -> `, `storage.put ns/new  -> 7`,
		`cursor.set adhoc:kb:kb "monday" -> "tuesday"`, `cursor.delete adhoc:kb:kb "tuesday" -> `,
		`secrets.set api_key "set" -> "changed"`, `cache.set old 1 -> 2`, `cache.delete old 2 -> `,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}

	s.call.Dry = &plugin.DryRecorder{}
	s.equal("storage.get", `{"key":"old"}`, `{"found":true,"value":{"n":1}}`)
	s.equal("cache.get", `{"key":"old"}`, `{"found":true,"value":1}`)
	s.equal("secrets.get", `{"name":"api_key"}`, `{"found":true,"value":"the real value"}`)
	real.equal("storage.get", `{"key":"old"}`, `{"found":true,"value":{"n":1}}`)
	real.equal("cursor.get", `{"kb_id":"kb"}`, `{"found":true,"value":"monday"}`)
}

// The ids and counts of documents are those that a real call would give.
func TestADryRunCountsWhatItWouldTakeIn(t *testing.T) {
	t.Parallel()
	s, _ := newDryScene(t)
	base := strings.ToLower(t.Name())
	real := newScene(t).base(base)
	s.call.Overlay = json.RawMessage(`{"exec":{"schedule_id":"feed"}}`)
	args := []any{"kb_id", base, "title", "News", "content", "One two three.", "source_id", "n1"}
	dry := s.requested(kbText, args...)
	if again := s.requested(kbText, args...); again["skipped"] != true || again["skip_reason"] != "hash_match" {
		t.Errorf("the same once more: %v", again)
	}
	found := s.requested(kbGetDocument, "kb_id", base, "document_id", "n1")
	if found["content"] != "One two three." {
		t.Errorf("it reads %v", found["content"])
	}
	if documents, err := real.broker.Knowledge.Get(t.Context(), "t", base); err != nil || documents.Documents != 0 {
		t.Fatalf("%d documents: %v", documents.Documents, err)
	}
	got := real.requested(kbText, args...)
	for _, member := range []string{"ko_id", "document_id", "word_count", "character_count", "chunk_count"} {
		if dry[member] != got[member] {
			t.Errorf("%s: %v in the dry run, %v for real", member, dry[member], got[member])
		}
	}
	s.call.Dry = &plugin.DryRecorder{}
	s.requested(kbText, append(slices.Clone(args[:4]), "content", "Another text.", "source_id", "n1")...)
	if deleted := s.requested(kbDelete, "kb_id", base, "external_id", "n1"); deleted["deleted"] != true {
		t.Errorf("%v", deleted)
	}
	if deleted := s.requested(kbDelete, "kb_id", base, "external_id", "n1"); deleted["deleted"] != false {
		t.Errorf("once more: %v", deleted)
	}
	if _, err := s.request(kbGetDocument, "kb_id", base, "document_id", "n1"); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("it is there: %v", err)
	}
	changes, _ := s.call.Dry.Changes()
	if len(changes) != 2 || !strings.Contains(string(changes[0].Before), "One two three.") || !strings.Contains(string(changes[0].After), "Another text.") || len(changes[1].After) != 0 {
		t.Errorf("%+v", changes)
	}
}

// A request is shown without what may be a credential, and a secret nowhere.
func TestADryRunShowsNoCredentials(t *testing.T) {
	t.Parallel()
	s, _ := newDryScene(t)
	s.broker.Scrubber.Know("hunter2hunter2")
	got := s.must("http://api.example.com/a?key=hunter2hunter2", "method", "POST", "headers",
		map[string]any{"Authorization": "Bearer abcdefgh", "X-Odd": "qwertzuiop", "Accept": "text/plain"}, "json", map[string]any{"password": "hunter2hunter2", "n": 1})
	if got["status_code"] != 200.0 || got["headers"].(map[string]any)[dryHeader] != "1" || len(got["json"].(map[string]any)) != 0 {
		t.Errorf("answer %v", got)
	}
	s.ask(secretsSet, `{"name":"api_key","value":"topsecretvalue"}`)
	s.must("http://api.example.com/b", "method", "PUT", "body", "it is topsecretvalue")
	changes, _ := s.call.Dry.Changes()
	raw, err := json2.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{"hunter2", "abcdefgh", "qwertzuiop", "topsecret"} {
		if strings.Contains(string(raw), hidden) {
			t.Errorf("%s is shown: %s", hidden, raw)
		}
	}
	for _, visible := range []string{`POST http://api.example.com/a`, `"accept":"text/plain"`, `"authorization":"[redacted]"`, `"n":1`} {
		if !strings.Contains(string(raw), visible) {
			t.Errorf("%s is not shown: %s", visible, raw)
		}
	}
}

// Where reading was asked for, a GET is really sent and a model really asked; a
// POST is not.
func TestADryRunThatReads(t *testing.T) {
	t.Parallel()
	s, m := newDryScene(t)
	s.call.Dry.Reads = true
	got := []string{}
	s.serve(func(w http.ResponseWriter, r *http.Request) { got = append(got, r.Method); fmt.Fprint(w, "there") })
	if answer := s.must("http://api.example.com/"); answer["body"] != "there" {
		t.Errorf("%v", answer)
	}
	s.must("http://api.example.com/", "method", "DELETE")
	s.ask(llmText, `{"prompt":"p"}`)
	if !slices.Equal(got, []string{"GET"}) || len(m.asked) != 1 {
		t.Errorf("sent %v, asked %d", got, len(m.asked))
	}
	changes, _ := s.call.Dry.Changes()
	if len(changes) != 1 || changes[0].Target != "DELETE http://api.example.com/" {
		t.Errorf("%+v", changes)
	}
}

// What asks below belongs to the same dry run, and the plugin does not hear what
// that found out.
func TestACallBelowADryRunIsDry(t *testing.T) {
	t.Parallel()
	s, _ := newDryScene(t)
	s.broker.Call = func(_ context.Context, call plugin.Call) (plugin.Result, error) {
		if call.Dry != s.call.Dry {
			t.Error("it is not dry")
		}
		return plugin.Result{Status: plugin.Succeeded, DryRun: &plugin.DryRun{Verdict: plugin.AllowWithApproval, Reasons: []string{"it leaves the house"}}}, nil
	}
	if answer := s.ask(operationsCall, `{"call":"t","operation":"other/op","input":{}}`); strings.Contains(answer, "dry_run") {
		t.Errorf("the plugin hears %s", answer)
	}
	changes, _ := s.call.Dry.Changes()
	if len(changes) != 1 || changes[0].Target != "other/op" || changes[0].Summary != "would wait for approval: it leaves the house" {
		t.Errorf("%+v", changes)
	}
}

// A file that would be registered is among the artifacts of the dry run.
func TestADryRunListsWhatItWouldHaveMade(t *testing.T) {
	t.Parallel()
	s, _ := newDryScene(t)
	session := &kept{}
	s.broker.Sessions, s.call.Session = session, "sess_000000000001"
	services := s.services()
	services.(*grant).Attach(fstest.MapFS{"out/made.json": {Data: []byte(`{}`)}}, "/scratch")
	made := s.query(services, artifactsRegister, `{"file_path":"out/made.json","artifact_type":"json_events"}`)
	listed := s.query(services, artifactsList, `{}`)["artifacts"].([]any)
	if len(listed) != 1 || listed[0].(map[string]any)["artifact_id"] != made["artifact_id"] || made["file_path"] != "/scratch/out/made.json" {
		t.Errorf("%v %v", made, listed)
	}
	if len(session.list) != 0 || len(services.(*grant).Artifacts()) != 0 {
		t.Error("it was registered")
	}
}

// A dry run is bounded, whatever it asks for.
func TestADryRunIsBounded(t *testing.T) {
	t.Parallel()
	s, _ := newDryScene(t)
	services := s.services()
	for i := range plugin.MaxChanges + 5 {
		args := fmt.Sprintf(`{"key":"%d","value":"%s"}`, i, strings.Repeat("x", 5000))
		if _, err := services.Serve(t.Context(), storagePut, json.RawMessage(args)); err != nil {
			t.Fatal(err)
		}
	}
	changes, left := s.call.Dry.Changes()
	size := 0
	for _, c := range changes {
		size += len(c.After)
	}
	if len(changes) != plugin.MaxChanges || left != 5 || size > 1<<20 || !changes[0].Cut || !strings.Contains(string(changes[0].After), "(5002 bytes)") || len(changes[999].After) != 0 {
		t.Errorf("%d changes, %d left out, %d bytes, %.80s", len(changes), left, size, changes[0].After[4050:])
	}
	big := strings.Repeat("y", 60_000)
	var err error
	for i := 0; i < 2000 && err == nil; i++ {
		_, err = services.Serve(t.Context(), storagePut, json.RawMessage(fmt.Sprintf(`{"key":"b%d","value":"%s"}`, i, big)))
	}
	if plugin.CodeOf(err) != plugin.CodeLimitExceeded {
		t.Errorf("it holds everything: %v", err)
	}
}
