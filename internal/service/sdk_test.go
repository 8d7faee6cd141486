package service

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// A sdkHost serves one call of a plugin that is written with the Go SDK, and
// answers its requests with the services of a scene. It notes what was asked.
func sdkHost(t *testing.T, services plugin.Services, do func(*mortise.Call) error) (asked map[string]bool) {
	t.Helper()
	p := mortise.New("sample", "1.0.0")
	mortise.Operator(p, "op", "Do it.", func(c *mortise.Call, _ struct{}) (string, error) { return "", do(c) })
	fromPlugin, out := io.Pipe()
	in, toPlugin := io.Pipe()
	go func() { _ = p.Serve(in, out) }()
	defer toPlugin.Close()
	say := func(frame []byte) {
		if _, err := toPlugin.Write(frame); err != nil {
			t.Error(err)
		}
	}
	say([]byte(`{"jsonrpc":"2.0","id":1,"method":"execute","params":{"call":"t","operation":"sample/op","input":{},"context":{},"deadline_ms":30000}}` + "\n"))
	asked = map[string]bool{}
	for lines := bufio.NewReader(fromPlugin); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		f, err := protocol.ParseFrame(line)
		if err != nil {
			t.Fatal(err)
		}
		if f.Method == "" {
			if f.Error != nil {
				t.Errorf("the plugin failed: %s", f.Error)
			}
			return asked
		}
		asked[f.Method] = true
		args := json.RawMessage(f.Params)
		if f.Method != operationsCall {
			var request struct{ Args json.RawMessage }
			if err := json.Unmarshal(f.Params, &request); err != nil {
				t.Fatal(err)
			}
			args = request.Args
		}
		answer, err := services.Serve(t.Context(), f.Method, args)
		if err != nil {
			say(protocol.AppendError(nil, f.ID, &protocol.Error{Number: protocol.RPCError, Message: err.Error(), Data: &protocol.ErrorData{Code: string(plugin.CodeOf(err))}}))
			continue
		}
		say(protocol.AppendResult(nil, f.ID, answer))
	}
}

// TestTheGoSDKHasEveryService asks for each service as a plugin in Go does: the
// host takes the arguments, and the SDK reads the answers.
func TestTheGoSDKHasEveryService(t *testing.T) {
	t.Parallel()
	s, _ := withModel(t, nil)
	s.serve(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.Method, r.URL.Query().Get("q"))
	})
	s.base("sdk")
	s.broker.Sessions = &kept{dir: t.TempDir()}
	s.broker.TypeOf = func(string, []byte) string { return "text" }
	s.broker.Reference = table{"k": `{"name":"n"}`}
	s.broker.Call = func(_ context.Context, call plugin.Call) (plugin.Result, error) {
		if call.Key != "" {
			return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`"with the key ` + call.Key + `"`)}, nil
		}
		return plugin.Result{Status: plugin.Succeeded, Data: call.Input}, nil
	}
	s.broker.Enqueue = func(_ context.Context, call plugin.Call) (plugin.Result, error) {
		return plugin.Result{CallID: "later of " + call.Operation}, nil
	}
	s.target.Operation.Effects = []string{httpWrite, kbWrite, storageWrite, cursorWrite, secretWrite, scheduleWrite}
	s.target.Operation.Timeout = 30 * time.Second
	s.call.ID, s.call.Session = "call-sdk", "sess_000000000001"
	s.call.Principal.ID = "user:sdk"
	s.call.Overlay = json.RawMessage(`{"exec":{"schedule_id":"feed"},"kb":{"knowledge_base_ids":["sdk"]}}`)
	services := s.services()
	scratch := t.TempDir()
	services.(*grant).Attach(os.DirFS(scratch), "/scratch/p-1")
	if err := os.WriteFile(filepath.Join(scratch, "made.txt"), []byte("A text of a file."), 0o600); err != nil {
		t.Fatal(err)
	}

	asked := sdkHost(t, services, func(c *mortise.Call) error { askEverything(t, c); return nil })
	for name := range methods {
		if !asked[name] {
			t.Errorf("%s was not asked for: the Go SDK has no method for it, or this test does not use it", name)
		}
	}
}

// askEverything asks for every service there is.
func askEverything(t *testing.T, c *mortise.Call) {
	askForValues(t, c)
	askForPeople(t, c)
	askForFiles(t, c)
	askForKnowledge(t, c)
	askForModels(t, c)
}

// expect checks an answer of the host.
func expect[T comparable](t *testing.T, method string, err error, got, want T) {
	t.Helper()
	if err != nil || got != want {
		t.Errorf("%s: got %v and the error %v; want %v", method, got, err, want)
	}
}

func askForValues(t *testing.T, c *mortise.Call) {
	type point struct{ X, Y int }
	var got point
	expect(t, "cache.set", c.CacheSet("k", point{1, 2}, time.Minute), true, true)
	found, err := c.CacheGet("k", &got)
	expect(t, "cache.get", err, found, true)
	expect(t, "cache.get", err, got, point{1, 2})
	expect(t, "cache.delete", c.CacheDelete("k"), true, true)
	found, err = c.CacheGet("k", nil)
	expect(t, "cache.get", err, found, false)

	expect(t, "storage.put", c.StoragePut("n", "k", point{3, 4}), true, true)
	found, err = c.StorageGet("n", "k", &got)
	expect(t, "storage.get", err, found, true)
	expect(t, "storage.get", err, got, point{3, 4})
	found, err = c.StorageGet("", "k", nil)
	expect(t, "storage.get in another namespace", err, found, false)
	found, err = c.StorageDelete("n", "k")
	expect(t, "storage.delete", err, found, true)

	expect(t, "cursor.set", c.CursorSet("sdk", point{5, 6}), true, true)
	found, err = c.CursorGet("sdk", &got)
	expect(t, "cursor.get", err, found, true)
	expect(t, "cursor.get", err, got, point{5, 6})
	found, err = c.CursorDelete("sdk")
	expect(t, "cursor.delete", err, found, true)

	var reference struct {
		Name string `json:"name"`
	}
	found, err = c.ReferenceDataGet("k", &reference)
	expect(t, "reference_data.get", err, found, true)
	expect(t, "reference_data.get", err, reference.Name, "n")

	allowed, wait, err := c.RateLimitTake("b", 60)
	expect(t, "rate_limit.take", err, allowed, true)
	expect(t, "rate_limit.take", err, wait, 0)
	allowed, wait, err = c.RateLimitTake("b", 60)
	expect(t, "rate_limit.take", err, allowed, false)
	expect(t, "rate_limit.take", err, wait > 50*time.Second, true)

	expect(t, "audit.log", c.AuditLog("seen", map[string]int{"n": 1}), true, true)
	expect(t, "audit.log", c.AuditLog("seen", nil), true, true)
	id, err := c.SchedulerEnqueue("op", map[string]int{"n": 1}, time.Now().Add(time.Hour))
	expect(t, "scheduler.enqueue", err, id, "later of sample/op")
	id, err = c.SchedulerEnqueue("other/op", nil, time.Time{})
	expect(t, "scheduler.enqueue", err, id, "later of other/op")

	var data point
	err = c.Call("other/op", point{7, 8}, &data)
	expect(t, "operations.call", err, data, point{7, 8})
	var keyed string
	err = c.CallOnce("other/op", "order-1", point{7, 8}, &keyed)
	expect(t, "operations.call", err, keyed, "with the key order-1")
	response, err := c.HTTPFetch(mortise.HTTPRequest{URL: "http://api.example.com/", Params: map[string]any{"q": "x"}, Retries: 1})
	expect(t, "http.fetch", err, response.Body, "GET x")
}

func askForPeople(t *testing.T, c *mortise.Call) {
	expect(t, "secrets.set", c.SecretsSet("api_key", "a value of the SDK's test"), true, true)
	value, found, err := c.SecretsGet("api_key")
	expect(t, "secrets.get", err, found, true)
	expect(t, "secrets.get", err, value, "a value of the SDK's test")
	found, err = c.SecretsDelete("api_key")
	expect(t, "secrets.delete", err, found, true)

	who, err := c.IdentityCurrent()
	expect(t, "identity.current", err, who.UserID != "", true)
	_, found, err = c.IdentityLookup("google", "ada")
	expect(t, "identity.lookup", err, found, false)
	email, err := c.IdentityPrimaryEmail("google")
	expect(t, "identity.primary_email", err, email, "")
	token, err := c.AuthResolve(mortise.AuthRequest{Provider: "google"})
	expect(t, "auth.resolve of an account that is not declared", err, token, mortise.AuthToken{})
	_, err = c.AuthResolve(mortise.AuthRequest{Provider: "google", Mode: "none of them"})
	refused, ok := err.(*mortise.ServiceError)
	expect(t, "auth.resolve in a mode that does not exist", nil, ok && refused.Code != "", true)
}

func askForFiles(t *testing.T, c *mortise.Call) {
	made, err := c.ArtifactsRegister(mortise.ArtifactFile{FilePath: "made.txt", Type: "text", Metadata: map[string]any{"n": 1}})
	expect(t, "artifacts.register", err, made.ID, "art_00000001")
	list, err := c.ArtifactsList()
	expect(t, "artifacts.list", err, len(list) == 1 && list[0].ID == made.ID, true)
	session, err := c.SessionOpen()
	expect(t, "session.open", err, session.ID, "sess_000000000001")
	expect(t, "session.open", err, session.Pillar, "log_analysis")
	expect(t, "session.open", err, session.Limits.TimeoutSeconds, 30.0)
	text, err := c.OCRExtractText(mortise.OCRFile{File: mortise.File{Path: "made.txt"}, MIMEType: "text/plain"})
	expect(t, "ocr.extract_text", err, text.Text, "A text of a file.")
	text, err = c.OCRExtractText(mortise.OCRFile{File: mortise.File{Bytes: []byte("bytes")}, MIMEType: "text/plain", Filename: "b.txt", Mode: "auto"})
	expect(t, "ocr.extract_text", err, text.Text, "bytes")
}

func askForKnowledge(t *testing.T, c *mortise.Call) {
	target := mortise.KBTarget{KB: "sdk", SourceURL: "https://example.com/", Attributes: map[string]any{"summary": "short"}}
	text, err := c.KBIngestText(mortise.KBTextSource{KBTarget: target, Title: "A walk", Content: "A heron stands in the river.", SourceID: "walk"})
	expect(t, "kb.ingest_text", err, text.Created && text.Words == 6 && text.Chunks == 1, true)
	text, err = c.KBIngestText(mortise.KBTextSource{KBTarget: target, Title: "A walk", Content: "A heron stands in the river.", SourceID: "walk"})
	expect(t, "kb.ingest_text", err, text.Skipped && text.SkipReason != "", true)
	done, err := c.KBIngestDocument(mortise.KBDocumentSource{KBTarget: target, File: mortise.File{Path: "made.txt"}, Filename: "made.txt", MIMEType: "text/plain", SourceID: "file"})
	expect(t, "kb.ingest_document", err, done.Created, true)
	done, err = c.KBIngestEmail(mortise.KBEmailSource{KBTarget: mortise.KBTarget{KB: "sdk"}, Subject: "Hello", Sender: "ann@example.com",
		Recipients: mortise.KBRecipients{To: []string{"bob@example.com"}}, Date: "Mon, 2 Mar 2026 09:00:00 +0000", MessageID: "<1@example.com>", BodyText: "A letter.", Labels: []string{"inbox"}})
	expect(t, "kb.ingest_email", err, done.Created, true)
	done, err = c.KBIngestThread(mortise.KBThreadSource{Title: "Talk", Content: "Yes. No.", ThreadID: "th"})
	expect(t, "kb.ingest_thread", err, done.Created, true)
	done, err = c.KBUpsertKnowledgeObject("sdk", mortise.KnowledgeObject{ExternalID: "x1", Source: "crm", Title: "A deal", Content: "A deal about boats."})
	expect(t, "kb.upsert_knowledge_object", err, done.Created, true)

	hits, err := c.KBSearchChunks(mortise.KBQuery{KBs: []string{"sdk"}, Query: "heron", Limit: 5})
	expect(t, "kb.search_chunks", err, len(hits) == 1 && hits[0].SourceID == "walk", true)
	hits, err = c.KBSearchDocuments(mortise.KBQuery{Query: "heron"})
	expect(t, "kb.search_documents", err, len(hits) == 1 && hits[0].DocumentID == text.DocumentID, true)
	document, err := c.KBGetDocument("sdk", text.DocumentID)
	expect(t, "kb.get_document", err, document.Content, "A heron stands in the river.")
	expect(t, "kb.get_document", err, document.CreatedAt.IsZero(), false)
	document, err = c.QueryGet("", "walk")
	expect(t, "query.get", err, document.ID, text.DocumentID)
	all, err := c.QueryList(mortise.QueryListing{KB: "sdk", Limit: 10})
	expect(t, "query.list", err, len(all), 5)

	chunks, err := c.KBFindChunks(mortise.KBCondition{Field: "summary", Operator: "eq", Value: "short"})
	expect(t, "kb.find_chunks", err, chunks.Total == len(chunks.Results) && chunks.Total > 0 && chunks.Results[0].Summary == "short", true)
	documents, err := c.KBFindDocuments(mortise.KBCondition{Field: "title", Operator: "eq", Value: "A walk", Page: 1, SortOrder: "desc"})
	expect(t, "kb.find_documents", err, documents.Total == 1 && documents.Results[0].ID == text.DocumentID, true)
	found, err := c.KBFindDocument(text.DocumentID)
	expect(t, "kb.find_document", err, found.Content, "A heron stands in the river.")
	_, err = c.KBFindDocument("none")
	missing, ok := err.(*mortise.KBSearchError)
	expect(t, "kb.find_document of none", nil, ok && missing.Code == "not_found", true)
	_, err = c.KBFindChunks(mortise.KBCondition{Field: "colour", Operator: "eq", Value: "red"})
	wrong, ok := err.(*mortise.KBSearchError)
	expect(t, "kb.find_chunks by no field", nil, ok && wrong.Code == "invalid_field", true)

	gone, err := c.KBDelete("sdk", "x1")
	expect(t, "kb.delete", err, gone.Deleted && gone.Chunks == 1, true)
	gone, err = c.KBDelete("", "x1")
	expect(t, "kb.delete", err, gone, mortise.KBDeletion{})
}

func askForModels(t *testing.T, c *mortise.Call) {
	answer, err := c.LLMQueryText(mortise.LLMQuery{Prompt: "p", SystemContext: "s", MaxTokens: 50, GroundingData: []string{"d"},
		Hints: &mortise.LLMHints{Tier: "light", MaxBudgetCents: 5}})
	expect(t, "llm.query_text", err, answer.OK && answer.Text == "an answer" && answer.ModelUsed == "small" && *answer.TokenUsage == mortise.LLMTokens{Input: 7, Output: 3, Total: 10}, true)
	answer, err = c.LLMQueryMultimodal(mortise.LLMImageQuery{Prompt: "p", Image: mortise.File{Bytes: []byte("x")}, ImageFormat: "png"})
	expect(t, "llm.query_multimodal", err, answer.OK, true)
	answer, err = c.LLMQueryWithDocument(mortise.LLMDocumentQuery{Prompt: "p", Document: mortise.File{Path: "made.txt"}, MIMEType: "text/plain"})
	expect(t, "llm.query_with_document", err, answer.OK || answer.Error != "", true)
	native, err := c.LLMSupportsNativeDocument("application/pdf")
	expect(t, "llm.supports_native_document", err, native, true)
}
