package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

var allKinds = []plugin.Kind{plugin.Agent, plugin.Operator, plugin.Tool, plugin.Adapter, "", "robot"}

// A matrixRow is a method with arguments, and what decides about it then.
type matrixRow struct {
	method, args string
	class        Class
	effect       string
}

// matrixRows are the methods with what decides about their class. Every method
// must be here.
var matrixRows = []matrixRow{
	{"cache.get", `{"key":"k"}`, Own, ""},
	{"cache.set", `{"key":"k","value":1}`, Own, ""},
	{"cache.delete", `{"key":"k"}`, Own, ""},
	{"session.open", `{}`, Read, ""},
	{"artifacts.list", `{}`, Read, ""},
	{"artifacts.register", `{"file_path":"made"}`, Own, ""},
	{"reference_data.get", `{"key":"k"}`, Read, ""},
	{"operations.call", `{"call":"t","operation":"other/op","input":{}}`, Nested, ""},
	{"llm.query_text", `{"prompt":"p"}`, Read, ""},
	{"llm.query_multimodal", `{"prompt":"p","image":{"$bytes":"eA=="},"image_format":"png"}`, Read, ""},
	{"llm.query_with_document", `{"prompt":"p","artifact_id":"art_1"}`, Read, ""},
	{"llm.supports_native_document", `{"mime_type":"application/pdf"}`, Read, ""},
	{"storage.get", `{"key":"k"}`, Read, ""},
	{"storage.put", `{"key":"k","value":1}`, Local, "storage_write"},
	{"storage.delete", `{"key":"k"}`, Local, "storage_write"},
	{"cursor.get", `{"kb_id":"kb"}`, Read, ""},
	{"cursor.set", `{"kb_id":"kb","value":1}`, Local, "cursor_write"},
	{"cursor.delete", `{"kb_id":"kb"}`, Local, "cursor_write"},
	{"secrets.get", `{"name":"api_key"}`, Read, ""},
	{"secrets.set", `{"name":"api_key","value":"value"}`, Local, "secret_write"},
	{"secrets.delete", `{"name":"api_key"}`, Local, "secret_write"},
	{"rate_limit.take", `{"bucket":"b"}`, Own, ""},
	{"identity.current", `{}`, Read, ""},
	{"identity.lookup", `{"kind":"google","value":"ada"}`, Read, ""},
	{"identity.primary_email", `{"provider":"google"}`, Read, ""},
	{"auth.resolve", `{"provider":"google"}`, Read, ""},
	{"audit.log", `{"event":"seen"}`, Own, ""},
	{"kb.ingest_document", `{"kb_id":"notes","file":{"$bytes":"eA=="},"mime_type":"text/plain","source_id":"m1"}`, Local, "kb_write"},
	{"kb.ingest_email", `{"kb_id":"notes","subject":"s","message_id":"m2","body_text":"x"}`, Local, "kb_write"},
	{"kb.ingest_thread", `{"kb_id":"notes","title":"t","content":"x","thread_id":"m3"}`, Local, "kb_write"},
	{"kb.ingest_text", `{"kb_id":"notes","title":"t","content":"x","source_id":"m4"}`, Local, "kb_write"},
	{"kb.upsert_knowledge_object", `{"kb_id":"notes","ko":{"external_id":"m5","content":"x","source":"s"}}`, Local, "kb_write"},
	{"kb.delete", `{"external_id":"m6"}`, Local, "kb_write"},
	{"kb.search_chunks", `{"kb_ids":["notes"],"query":"x"}`, Read, ""},
	{"kb.search_documents", `{"query":"x"}`, Read, ""},
	{"kb.get_document", `{"document_id":"always"}`, Read, ""},
	{"kb.find_chunks", `{"field":"content","operator":"icontains","value":"x"}`, Read, ""},
	{"kb.find_documents", `{"field":"title","operator":"eq","value":"x","page":1,"sort_order":"asc"}`, Read, ""},
	{"kb.find_document", `{"document_id":"always"}`, Read, ""},
	{"query.list", `{}`, Read, ""},
	{"query.get", `{"kb_id":"notes","document_id":"always"}`, Read, ""},
	{"ocr.extract_text", `{"file":{"$bytes":"eA=="},"mime_type":"text/plain"}`, Read, ""},
	{"scheduler.enqueue", `{"operation":"other/op","params":{}}`, Local, "schedule_write"},
	{"http.fetch", `{"url":"http://api.example.com/"}`, Read, ""},
	{"http.fetch", `{"url":"http://api.example.com/","method":"GET"}`, Read, ""},
	{"http.fetch", `{"url":"http://api.example.com/","method":"head"}`, Read, ""},
	{"http.fetch", `{"url":"http://api.example.com/","method":"POST"}`, External, "http_write"},
	{"http.fetch", `{"url":"http://api.example.com/","method":"post","json":{}}`, External, "http_write"},
	{"http.fetch", `{"url":"http://api.example.com/","method":"PUT"}`, External, "http_write"},
	{"http.fetch", `{"url":"http://api.example.com/","method":"PATCH"}`, External, "http_write"},
	{"http.fetch", `{"url":"http://api.example.com/","method":"DELETE"}`, External, "http_write"},
	{"http.fetch", `{"url":"http://api.example.com/","method":"OPTIONS"}`, External, "http_write"},
}

var declaredEffects = [][]string{nil, {"http_write"}, {"storage_write", "cursor_write", "secret_write", "kb_write", "schedule_write"}, {"db_write", "http_write"}, {"HTTP_WRITE"}, {"http_write "}, {"*"}}

func TestEveryMethodIsInTheMatrix(t *testing.T) {
	t.Parallel()
	for name := range methods {
		found := false
		for _, row := range matrixRows {
			found = found || row.method == name
		}
		if !found {
			t.Errorf("%s is not tested", name)
		}
	}
}

// TestKindsAndEffects walks kind x method x declared effects x what asked for
// the call: only an operator that declares the effect, and that nothing
// effect-free stands above, gets through.
func TestKindsAndEffects(t *testing.T) {
	t.Parallel()
	cells := 0
	for _, kind := range allKinds {
		for _, row := range matrixRows {
			for _, effects := range declaredEffects {
				for _, effectFree := range []bool{false, true} {
					cells++
					s := newScene(t)
					s.target.Operation.Kind, s.target.Operation.Effects = kind, effects
					s.call.EffectFree = effectFree
					s.call.Overlay = json.RawMessage(`{"exec":{"schedule_id":"feed"},"kb":{"knowledge_base_ids":["notes"]}}`)
					var below *plugin.Call
					s.broker.Call = func(_ context.Context, call plugin.Call) (plugin.Result, error) {
						below = &call
						return plugin.Result{Status: plugin.Succeeded}, nil
					}
					s.broker.Enqueue = s.broker.Call
					s.broker.Sessions, s.call.Session = &kept{}, "sess_000000000001"
					services := s.services()
					services.(*grant).Attach(fstest.MapFS{"made": {Data: []byte("made")}}, "/scratch")
					_, err := services.Serve(t.Context(), row.method, json.RawMessage(row.args))

					allowed := row.effect == "" || kind == plugin.Operator && slices.Contains(effects, row.effect) && !effectFree
					cell := fmt.Sprintf("%s %s %s with effects %q, effect-free %v", kind, row.method, row.args, effects, effectFree)
					switch {
					case allowed && err != nil:
						t.Errorf("%s: refused: %v", cell, err)
					case !allowed && (plugin.CodeOf(err) != plugin.CodeEffectUndeclared || !strings.Contains(err.Error(), row.effect)):
						t.Errorf("%s: got %v", cell, err)
					case !allowed && (len(s.refusals) != 1 || s.connections() != 0):
						t.Errorf("%s: %d refusals reported, %d connections", cell, len(s.refusals), s.connections())
					case allowed && len(s.refusals) != 0:
						t.Errorf("%s: a refusal was reported", cell)
					}
					if row.class == Nested && below.EffectFree != (effectFree || kind == plugin.Tool || kind == plugin.Agent) {
						t.Errorf("%s: the call below is effect-free: %v", cell, below.EffectFree)
					}
					if used := services.(interface{ Used() bool }).Used(); used != (allowed && (row.method == fetchName || row.method == secretsGet || row.method == authResolve)) {
						t.Errorf("%s: used %v", cell, used)
					}
				}
			}
		}
	}
	t.Logf("%d cells", cells)
}

// TestAnAdapterAsksForOperatorsOnly walks the kind of who asks x the kind of
// what is asked for. What means nothing goes to the kernel, which refuses it.
func TestAnAdapterAsksForOperatorsOnly(t *testing.T) {
	t.Parallel()
	for _, asking := range allKinds {
		for _, asked := range allKinds {
			s := newScene(t)
			s.target.Operation.Kind = asking
			var resolved string
			s.broker.Kind = func(_ context.Context, call *plugin.Call) (plugin.Kind, error) {
				resolved = call.Operation
				return asked, nil
			}
			called := 0
			s.broker.Call = func(context.Context, plugin.Call) (plugin.Result, error) {
				called++
				return plugin.Result{Status: plugin.Succeeded}, nil
			}
			_, err := s.services().Serve(t.Context(), operationsCall, json.RawMessage(`{"call":"t","operation":"other/op","input":{}}`))
			allowed := asking != plugin.Adapter || asked == plugin.Operator || asked == ""
			cell := fmt.Sprintf("%q asks for %q", asking, asked)
			switch {
			case allowed && (err != nil || called != 1 || len(s.refusals) != 0):
				t.Errorf("%s: %v, %d calls, %d refusals", cell, err, called, len(s.refusals))
			case !allowed && (plugin.CodeOf(err) != plugin.CodeServiceDenied || called != 0 || len(s.refusals) != 1):
				t.Errorf("%s: %v, %d calls, %d refusals", cell, err, called, len(s.refusals))
			case asking == plugin.Adapter && resolved != "other/op":
				t.Errorf("%s: %q was looked up", cell, resolved)
			}
		}
	}
	s := newScene(t)
	s.target.Operation.Kind, s.broker.Kind = plugin.Adapter, nil
	if err := s.fail(operationsCall, `{"call":"t","operation":"other/op","input":{}}`); plugin.CodeOf(err) != plugin.CodeServiceDenied {
		t.Errorf("where the broker knows no kinds: %v", err)
	}
}

// What the principal of a call does not see is of no kind: the adapter hears what is
// said of what there is not, and the refusal is reported with its reason.
func TestAnAdapterHearsNothingOfWhatIsHidden(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.target.Operation.Kind = plugin.Adapter
	none := plugin.Errorf(plugin.CodeNotFound, "no plugin is called other")
	s.broker.Kind = func(_ context.Context, call *plugin.Call) (plugin.Kind, error) {
		if call.Principal.ID != s.call.Principal.ID || call.Actor == "" || call.Depth != s.call.Depth+1 {
			t.Errorf("asked for %+v", call)
		}
		return plugin.Tool, none
	}
	err := s.fail(operationsCall, `{"call":"t","operation":"other/op","input":{}}`)
	if plugin.CodeOf(err) != plugin.CodeNotFound || err.Error() != none.Error() || len(s.refusals) != 1 || s.refusals[0].Err.Code != plugin.CodeServiceDenied {
		t.Errorf("%v, reported %+v", err, s.refusals)
	}
}

// TestWhoActsGoesOnActing: an agent or a service that acts in a call limits what
// the call asks for as well.
func TestWhoActsGoesOnActing(t *testing.T) {
	t.Parallel()
	for actor, want := range map[string]string{
		"": "plugin:sample", "plugin:other": "plugin:sample", "service:Chat.Adapter": "service:Chat.Adapter", "agent:planner": "agent:planner",
	} {
		s := newScene(t)
		s.call.Actor = actor
		var got string
		s.broker.Call = func(_ context.Context, call plugin.Call) (plugin.Result, error) {
			got = call.Actor
			return plugin.Result{Status: plugin.Succeeded}, nil
		}
		if _, err := s.services().Serve(t.Context(), operationsCall, json.RawMessage(`{"call":"t","operation":"other/op","input":{}}`)); err != nil || got != want {
			t.Errorf("below a call of %q %q acts: %v", actor, got, err)
		}
	}
}

// TestEveryClassIsPermittedOrNot walks the rule itself, with the classes that no method
// has yet, and an unknown one.
func TestEveryClassIsPermittedOrNot(t *testing.T) {
	t.Parallel()
	for _, class := range []Class{Own, Read, Local, External, Nested, "", "new"} {
		for _, kind := range allKinds {
			for _, declared := range declaredEffects {
				for _, effect := range []string{"", "http_write", "kb_write"} {
					target := &plugin.Target{Manifest: &plugin.Manifest{Name: "p"}, Operation: &plugin.Operation{Name: "o", Kind: kind, Effects: declared}}
					err := permit(target, &plugin.Call{}, "x.y", task{class: class, effect: effect})
					allowed := class == Own || class == Read || class == Nested ||
						kind == plugin.Operator && effect != "" && slices.Contains(declared, effect)
					if allowed != (err == nil) {
						t.Errorf("class %q kind %q effect %q declared %q: %v", class, kind, effect, declared, err)
					}
				}
			}
		}
	}
}

func TestAServiceThatIsNotGranted(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.target.Manifest.Capabilities = []string{"cache"}
	for _, name := range []string{"http.fetch", "secrets.get", "http", ".", "HTTP.fetch", "httpx.fetch", strings.Repeat("x", 500) + ".y"} {
		if err := s.fail(name, `{"url":"http://api.example.com/"}`); plugin.CodeOf(err) != plugin.CodeServiceDenied {
			t.Errorf("%.20s: %v", name, err)
		}
	}
	if len(s.refusals) != 7 {
		t.Errorf("%d refusals reported", len(s.refusals))
	}
	if r := s.refusals[6]; len(r.Method) != 120 || len(r.Err.Message) > 400 {
		t.Errorf("an overlong name came through: %d %d", len(r.Method), len(r.Err.Message))
	}
}

func TestRefusalsOfOneCallAreBounded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.target.Manifest.Capabilities = nil
	services := s.services()
	for range 100 {
		_, err := services.Serve(t.Context(), "secrets.get", json.RawMessage(`{}`))
		if plugin.CodeOf(err) != plugin.CodeServiceDenied {
			t.Fatal(err)
		}
	}
	if len(s.refusals) != maxRefusals {
		t.Errorf("%d refusals reported", len(s.refusals))
	}
	if last := s.refusals[maxRefusals-1].Err.Message; !strings.HasPrefix(last, "secrets.get: ") || !strings.HasSuffix(last, "further refusals of this call are not recorded") {
		t.Errorf("last: %s", last)
	}
}

func TestAnAnswerFitsOneLine(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.broker.MaxAnswer = 100
	if _, err := s.services().Serve(t.Context(), "cache.set", json.RawMessage(`{"key":"k","value":"`+strings.Repeat("x", 200)+`"}`)); err != nil {
		t.Fatal(err)
	}
	if err := s.fail("cache.get", `{"key":"k"}`); plugin.CodeOf(err) != plugin.CodeLimitExceeded {
		t.Error(err)
	}
}

// TestThePageAboutServicesIsComplete ties docs/services.md to the tables here.
func TestThePageAboutServicesIsComplete(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/services.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range methods {
		if !strings.Contains(string(page), "### "+name+"\n") {
			t.Errorf("docs/services.md has no section on %s", name)
		}
	}
	for _, row := range matrixRows {
		at := strings.Index(string(page), "### "+row.method+"\n")
		section, _, _ := strings.Cut(string(page)[max(at, 0)+4:], "\n### ")
		if !strings.Contains(section, "`"+string(row.class)+"`") || !strings.Contains(section, row.effect) {
			t.Errorf("docs/services.md, %s, does not say %s %s", row.method, row.class, row.effect)
		}
	}
	for _, header := range egress.RefusedHeaders() {
		if !regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(header) + `\b`).Match(page) {
			t.Errorf("docs/services.md does not name the header %s", header)
		}
	}
}

// connectTo returns a way to connect that notes the addresses and leads them
// all to one listener.
func (s *scene) connectTo(address string) func(context.Context, netip.AddrPort, func(netip.AddrPort) error) (net.Conn, error) {
	return func(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
		if err := check(to); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.dialled = append(s.dialled, to)
		s.mu.Unlock()
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}
}
