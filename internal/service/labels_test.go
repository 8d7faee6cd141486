package service

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/plugin"
)

// tainted are the labels of the call that keeps something in the tests here.
// Whatever asks the network is untrusted by itself; nothing is private by itself.
var tainted = []string{"private", plugin.Untrusted}

// An answering says of a method how its answers come by what a call kept earlier:
// by no way, for a reason, or by each of ways.
type answering struct {
	nothing string
	ways    []telling
}

// A telling is how a method comes to tell of what another call kept.
type telling struct {
	name  string
	scene func(s *scene) // may be nil
	put   [2]string      // what keeps it, a method and its arguments
	read  string         // the arguments of the method
	tells string         // is in the answer: it does tell of it
	wrote string         // likewise, of a dry run in which it was kept; "" where such a one does not find it
	plain bool           // the reading host answers without asking: a dry run is told nothing
}

const found, deleted = `"found":true`, `"deleted":true`

// feed makes the calls of a scene those of a feed that is bound to a knowledge base.
func feed(s *scene) {
	s.call.Overlay = json.RawMessage(`{"exec":{"schedule_id":"s"},"kb":{"knowledge_base_ids":["labels"]}}`)
}

// shuFeed is feed for a plugin of Shu, whose sources are known by their hashes.
func shuFeed(s *scene) {
	feed(s)
	s.target.Manifest.Contract.DocumentsByHash = true
}

// inSession makes the calls of a scene those of a session.
func inSession(s *scene) {
	k := &kept{dir: s.t.TempDir()}
	write(s.t, filepath.Join(k.dir, "scratch", "made"), "made")
	s.broker.Sessions, s.call.Session = k, "sess_000000000001"
}

// echoing gives the scene a server of its own for api.example.com, to which secrets
// may be sent.
func echoing(s *scene) {
	server := httptest.NewTLSServer(http.HandlerFunc(repeat))
	s.t.Cleanup(server.Close)
	s.broker.web.connect = s.connectTo(server.Listener.Addr().String())
	s.broker.web.tls = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	s.broker.web.tls.InsecureSkipVerify = true // the certificate names example.com; who is asked is not what is tested here
}

// oneModel gives the scene a model that reads what is in a session.
func oneModel(s *scene) {
	s.broker.Models = llm.New(llm.Options{Allow: []string{"*"}, Models: []llm.Model{{
		Name: "small", Tier: llm.Heavy, Provider: "fake", ID: "small-1", Asks: &model{}, Context: 100_000,
		Documents: []string{"application/pdf"}, MaxInline: 1 << 20, Input: llm.Dollars(1), Output: llm.Dollars(1),
	}}})
	s.broker.Documents = anyDocument{}
}

// anyDocument is what an artifact of any session holds.
type anyDocument struct{}

func (anyDocument) Document(context.Context, string, string, string) (llm.Document, error) {
	return llm.Document{Name: "r.pdf", MIME: "application/pdf", Size: 4, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("%PDF")), nil }}, nil
}

// answersKept keeps the answer of a call below under its key, as the kernel does.
func answersKept(s *scene) {
	var first *plugin.Call
	s.broker.Call = func(_ context.Context, call plugin.Call) (plugin.Result, error) {
		res := plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`{"answer":"kept"}`), Replayed: first != nil}
		if first == nil {
			first = &call
		}
		res.Labels = first.Labels
		return res, nil
	}
}

// ingests are the methods that put a document into a knowledge base, with what
// they take beside its id: the source is called doc.
var ingests = map[string]func(text string) string{
	kbText: func(text string) string {
		return fmt.Sprintf(`{"kb_id":"labels","title":"apples","content":%q,"source_id":"doc"}`, text)
	},
	kbThread: func(text string) string {
		return fmt.Sprintf(`{"kb_id":"labels","title":"apples","content":%q,"thread_id":"doc"}`, text)
	},
	kbEmail: func(text string) string {
		return fmt.Sprintf(`{"kb_id":"labels","subject":"apples","body_text":%q,"message_id":"doc"}`, text)
	},
	kbObject: func(text string) string {
		return fmt.Sprintf(`{"kb_id":"labels","ko":{"external_id":"doc","title":"apples","content":%q,"source":"s"}}`, text)
	},
	kbDocument: func(text string) string {
		return fmt.Sprintf(`{"kb_id":"labels","file":{"$bytes":%q},"mime_type":"text/plain","filename":"apples.txt","source_id":"doc"}`, base64.StdEncoding.EncodeToString([]byte(text)))
	},
}

// afterEach is a way for each method that puts a document there.
func afterEach(read, tells, wrote string, scene func(*scene)) (ways []telling) {
	for method, args := range ingests {
		ways = append(ways, telling{name: "after " + method, scene: scene, put: [2]string{method, args("apples in the cellar")}, read: read, tells: tells, wrote: wrote})
	}
	return ways
}

// again is how a method that puts documents there tells of the one that is there.
func again(method string) answering {
	args := ingests[method]
	a := answering{ways: []telling{
		{name: "the same", put: [2]string{method, args("apples in the cellar")}, read: args("apples in the cellar"), tells: `"skip_reason":"hash_match"`, wrote: `"skip_reason":"hash_match"`},
		{name: "another text", put: [2]string{method, args("apples in the cellar")}, read: args("pears in the attic"), tells: `"created":false`},
	}}
	if method != kbEmail { // of which there is always text
		a.ways = append(a.ways, telling{name: "what cannot be read", scene: shuFeed, put: [2]string{method, args(" ")}, read: args(" "), tells: `"skip_reason":"hash_match_error_state"`})
	}
	for other := range ingests {
		if other != method {
			a.ways = append(a.ways, telling{name: "after " + other, put: [2]string{other, ingests[other]("apples in the cellar")}, read: args("pears in the attic"), tells: `"created":false`})
		}
	}
	return a
}

func only(ways ...telling) answering   { return answering{ways: ways} }
func nothingKept(why string) answering { return answering{nothing: why} }
func ofBase(read, tells string, scene func(*scene)) answering {
	return answering{ways: afterEach(read, tells, "", scene)}
}

// ofDocument is ofBase for what a dry run finds of the documents that it made.
func ofDocument(read, tells string, scene func(*scene)) answering {
	return answering{ways: afterEach(read, tells, tells, scene)}
}

// answerings are all methods. One that is not here fails the test.
var answerings = map[string]answering{
	"cache.get":    only(telling{put: [2]string{"cache.set", `{"key":"k","value":1}`}, read: `{"key":"k"}`, tells: found, wrote: found}),
	"cache.set":    nothingKept("it answers {}"),
	"cache.delete": nothingKept("it answers {}, whether or not there was a value"),

	storageGet:    only(telling{put: [2]string{storagePut, `{"key":"k","value":1}`}, read: `{"key":"k"}`, tells: found, wrote: found}),
	storagePut:    nothingKept("it answers {}"),
	storageDelete: only(telling{put: [2]string{storagePut, `{"key":"k","value":1}`}, read: `{"key":"k"}`, tells: deleted, wrote: deleted}),
	cursorGet:     only(telling{put: [2]string{cursorSet, `{"kb_id":"k","value":1}`}, read: `{"kb_id":"k"}`, tells: found, wrote: found}),
	cursorSet:     nothingKept("it answers {}"),
	cursorDelete:  only(telling{put: [2]string{cursorSet, `{"kb_id":"k","value":1}`}, read: `{"kb_id":"k"}`, tells: deleted, wrote: deleted}),

	secretsGet:    only(telling{put: [2]string{secretsSet, `{"name":"api_key","value":"a value"}`}, read: `{"name":"api_key"}`, tells: found, wrote: found}),
	secretsSet:    nothingKept("it answers {}"),
	secretsDelete: only(telling{put: [2]string{secretsSet, `{"name":"api_key","value":"a value"}`}, read: `{"name":"api_key"}`, tells: deleted, wrote: deleted}),
	fetchName: only(
		telling{name: "with a header by reference", scene: echoing, put: [2]string{secretsSet, `{"name":"api_key","value":"a value"}`},
			read: `{"url":"https://api.example.com/","headers":{"X-Key":{"$secret":"api_key"}}}`, tells: `"status_code":200`, wrote: `"status_code":200`},
		telling{name: "with an inserted header", scene: func(s *scene) {
			echoing(s)
			s.target.Manifest.HTTP.Inject = []plugin.Injection{{Host: "api.example.com", Header: "X-Key", Secret: "api_key"}}
		}, put: [2]string{secretsSet, `{"name":"api_key","value":"a value"}`}, read: `{"url":"https://api.example.com/"}`, tells: `"status_code":200`, wrote: `"status_code":200`},
	),

	"session.open": only(telling{scene: inSession, put: [2]string{artifactsRegister, `{"file_path":"made"}`}, read: `{}`, tells: "art_00000001", wrote: `"artifacts":[{`}),
	artifactsList:  only(telling{scene: inSession, put: [2]string{artifactsRegister, `{"file_path":"made"}`}, read: `{}`, tells: "art_00000001", wrote: `"artifacts":[{`}),
	artifactsRegister: only(telling{scene: inSession, put: [2]string{artifactsRegister, `{"file_path":"made"}`}, read: `{"file_path":"made"}`,
		tells: `"artifact_id"`, wrote: `"artifact_id"`}),

	operationsCall: only(
		telling{name: "an answer", scene: answersKept, put: [2]string{operationsCall, `{"call":"t","operation":"other/op","input":{},"key":"k"}`},
			read: `{"call":"t","operation":"other/op","input":{},"key":"k"}`, tells: "kept", wrote: "kept"},
	),

	llmDocument: only(telling{scene: func(s *scene) { inSession(s); oneModel(s) }, put: [2]string{artifactsRegister, `{"file_path":"made"}`},
		read: `{"prompt":"p","artifact_id":"art_00000001"}`, tells: "an answer", plain: true}),
	llmText:       nothingKept("a model answers, which is outside; what it was asked is the plugin's own"),
	llmMultimodal: nothingKept("a model answers, which is outside; the picture is the plugin's own"),
	llmSupports:   nothingKept("it tells of the configuration"),

	kbText: again(kbText), kbThread: again(kbThread), kbEmail: again(kbEmail), kbObject: again(kbObject), kbDocument: again(kbDocument),
	kbDelete:          ofDocument(`{"kb_id":"labels","external_id":"doc"}`, deleted, feed),
	kbSearchChunks:    ofBase(`{"kb_ids":["labels"],"query":"apples"}`, `"apples`, nil),
	kbSearchDocuments: ofBase(`{"kb_ids":["labels"],"query":"apples"}`, `"apples`, nil),
	kbGetDocument:     ofDocument(`{"kb_id":"labels","document_id":"doc"}`, "cellar", nil),
	queryGet:          ofDocument(`{"kb_id":"labels","document_id":"doc"}`, "cellar", nil),
	queryList:         ofBase(`{"kb_id":"labels"}`, `"doc"`, nil),
	kbFindChunks:      ofBase(`{"field":"content","operator":"icontains","value":"cellar"}`, `"total_results":1`, feed),
	kbFindDocuments:   ofBase(`{"field":"content","operator":"icontains","value":"cellar"}`, `"total_results":1`, feed),
	kbFindDocument:    ofDocument(`{"document_id":"doc"}`, "cellar", feed),

	schedulerEnqueue: nothingKept("it answers with the id of a new call"),
	auditLog:         nothingKept("it answers {}"),
	rateTake:         nothingKept("it tells of a counter, which no value can be read back from; see docs/threat-model.md"),
	ocrText:          nothingKept("the file is the plugin's own, and no text is kept"),
	referenceGet:     nothingKept("an administrator keeps it, and no call"),
	identityCurrent:  nothingKept("an administrator links accounts, and their owner connects them; no call does"),
	identityLookup:   nothingKept("an administrator links accounts"),
	identityPrimary:  nothingKept("an administrator links accounts, and their owner connects them; no call does"),
	authResolve:      nothingKept("the token is one that the account's provider gave to the host"),
}

// TestEveryAnswerOfWhatWasKeptHasItsLabels: every method of the table either
// answers with nothing that a call kept, or carries the labels of the call that
// kept it: by each way, and in dry runs.
func TestEveryAnswerOfWhatWasKeptHasItsLabels(t *testing.T) {
	t.Parallel()
	for method := range answerings {
		if methods[method] == nil {
			t.Errorf("there is no method %s", method)
		}
	}
	for method := range methods {
		is, classified := answerings[method]
		if !classified || (is.nothing == "") == (len(is.ways) == 0) {
			t.Errorf("say in answerings how %s comes to tell of what a call kept, or why it never does", method)
		}
		for _, w := range is.ways {
			t.Run(method+"/"+w.name, func(t *testing.T) {
				t.Parallel()
				w.walk(t, method)
			})
		}
	}
}

// walk keeps something with labels and reads it, and then without labels.
func (w telling) walk(t *testing.T, method string) {
	for _, run := range []struct {
		name                string
		labels              []string
		dryWrite, dryReader bool
		tells               string
	}{
		{"with labels", tainted, false, false, w.tells},
		{"without", nil, false, false, w.tells},
		{"read in a dry run", tainted, false, true, w.tells},
		{"kept and read in a dry run", tainted, true, true, w.wrote},
	} {
		if run.tells == "" || run.dryReader && w.plain {
			continue
		}
		s := keepingIn(t, t.Name()+"/"+run.name)
		if w.scene != nil {
			w.scene(s)
		}
		rehearsal := &plugin.DryRecorder{}
		if s.call.Labels = run.labels; run.dryWrite {
			s.call.Dry = rehearsal
		}
		if _, err := s.attached().Serve(t.Context(), w.put[0], json.RawMessage(w.put[1])); err != nil {
			t.Fatalf("%s: %v", run.name, err)
		}
		if s.call.Labels, s.call.ID = nil, "call-2"; run.dryReader {
			s.call.Dry = rehearsal
		}
		reader := s.attached()
		got, err := reader.Serve(t.Context(), method, json.RawMessage(w.read))
		if err != nil || !strings.Contains(string(got), run.tells) {
			t.Fatalf("%s: %s, %v; want %s in it", run.name, got, err, run.tells)
		}
		labels := reader.Labels()
		for _, label := range run.labels {
			if !slices.Contains(labels, label) {
				t.Errorf("%s: the call that hears %.200s has the labels %q", run.name, got, labels)
			}
		}
		if run.labels == nil && slices.Contains(labels, "private") {
			t.Errorf("%s: the call that hears %.200s has the labels %q", run.name, got, labels)
		}
	}
}

// TestASecretHasTheLabelsOfItsOwnValue: the labels of an earlier value go with it,
// and what the call heard before it set the secret counts like its own labels.
func TestASecretHasTheLabelsOfItsOwnValue(t *testing.T) {
	t.Parallel()
	s := keepingIn(t, t.Name())
	read := func() []string {
		t.Helper()
		reader := s.attached()
		if got, err := reader.Serve(t.Context(), secretsGet, json.RawMessage(`{"name":"api_key"}`)); err != nil || !strings.Contains(string(got), found) {
			t.Fatalf("%s, %v", got, err)
		}
		return reader.Labels()
	}
	s.call.Labels = tainted
	s.ask(secretsSet, `{"name":"api_key","value":"one"}`)
	s.ask(storagePut, `{"key":"k","value":1}`)
	s.call.Labels = nil
	if got := read(); !slices.Equal(got, tainted) {
		t.Errorf("set by a call with labels: %q", got)
	}
	s.ask(secretsSet, `{"name":"api_key","value":"two"}`)
	if got := read(); len(got) != 0 {
		t.Errorf("set again by a call without: %q", got)
	}
	reader := s.attached()
	for _, request := range [][2]string{{storageGet, `{"key":"k"}`}, {secretsSet, `{"name":"api_key","value":"three"}`}} {
		if _, err := reader.Serve(t.Context(), request[0], json.RawMessage(request[1])); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(); !slices.Equal(got, tainted) {
		t.Errorf("set by a call that has read something with labels: %q", got)
	}
}

// attached are the services of a call, with the scratch directory of the scene.
func (s *scene) attached() *grant {
	g := s.services().(*grant)
	if k, ok := s.broker.Sessions.(*kept); ok {
		g.Attach(os.DirFS(filepath.Join(k.dir, "scratch")), "/scratch/p-1")
	}
	return g
}
