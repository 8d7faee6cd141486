package plugins_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"mime"
	"mime/quotedprintable"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	_ "github.com/mortise-dev/mortise/internal/catalog/contract/all"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/internal/surface/check"
	"github.com/mortise-dev/mortise/plugin"
)

// receiver is the address that the plugins of the outreach set have for a
// receiver on this machine.
const receiver = "127.0.0.1:8025"

// professor is what the backend has of a professor.
const professor = `{"name":"Marie Curie","field":"radioactivity","email":"m.curie@physics.example.edu","about":"Her group measures the radioactivity of minerals.",
	"papers":[{"title":"On a new substance in pitchblende"},{"title":"Rays emitted by compounds of uranium and of thorium","abstract":"Compounds of uranium emit rays."}]}`

// writeOutcome is the plugin of the set that is compiled.
var writeOutcome []byte

func TestMain(m *testing.M) {
	if err := buildWriteOutcome(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func buildWriteOutcome() error {
	dir, err := os.MkdirTemp("", "mortise-outreach-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "write_outcome")
	if out, err := exec.Command("go", "build", "-o", path, "./outreach/write_outcome").CombinedOutput(); err != nil {
		return fmt.Errorf("building write_outcome: %w\n%s", err, out)
	}
	writeOutcome, err = os.ReadFile(path)
	return err
}

// A backend takes what the plugins send, as Gmail and the backend would.
type backend struct {
	addr string

	mu       sync.Mutex // guards the rest
	requests []string   // method and path
	mails    [][]byte
	emails   map[string][]byte
	outcomes map[string][]byte // by idempotency key
	hangUp   string            // once, at the next request that writes: unstored or stored; "" is never
}

func newBackend(t *testing.T) *backend {
	b := &backend{emails: map[string][]byte{}, outcomes: map[string][]byte{}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.addr = server.Listener.Addr().String()
	return b
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = append(b.requests, r.Method+" "+r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	if how := b.hangUp; how != "" && r.Method != "GET" {
		b.hangUp = ""
		if how == "stored" {
			b.answer(httptest.NewRecorder(), r, body)
		}
		panic(http.ErrAbortHandler) // no answer at all
	}
	b.answer(w, r, body)
}

// answer does what one request asks for. The caller holds the lock.
func (b *backend) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	switch email, isEmail := strings.CutPrefix(r.URL.Path, "/funding_emails/"); {
	case r.Method == "POST" && r.URL.Path == "/gmail/v1/users/me/messages/send":
		var in struct {
			Raw string `json:"raw"`
		}
		raw, err := []byte(nil), json.Unmarshal(body, &in)
		if err == nil {
			raw, err = base64.URLEncoding.DecodeString(in.Raw)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b.mails = append(b.mails, raw)
		fmt.Fprintf(w, `{"id":"m%d","threadId":"t1","labelIds":["SENT"]}`, len(b.mails))
	case r.Method == "PUT" && isEmail:
		b.emails[email] = body
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	case r.Method == "POST" && r.URL.Path == "/outcomes":
		b.outcomes[r.Header.Get("Idempotency-Key")] = body
		w.WriteHeader(http.StatusCreated)
	case r.Method == "GET" && r.URL.Path == "/gmail/v1/users/me/messages":
		b.search(w, r.URL.Query().Get("q"))
	case r.Method == "GET" && r.URL.Path == "/professors/910":
		_, _ = w.Write([]byte(professor))
	case r.Method == "GET" && strings.HasPrefix(r.URL.Path, "/credits/"):
		_, _ = w.Write([]byte(`{"balance":2}`))
	case r.Method == "GET" && isEmail && b.emails[email] != nil:
		_, _ = w.Write(b.emails[email])
	default:
		http.Error(w, "{}", http.StatusNotFound)
	}
}

// search finds mails by rfc822msgid:, and none by anything else.
func (b *backend) search(w http.ResponseWriter, query string) {
	found := []map[string]string{}
	for i, raw := range b.mails {
		m, err := mail.ReadMessage(bytes.NewReader(raw))
		if id, ok := strings.CutPrefix(query, "rfc822msgid:"); err == nil && ok && m.Header.Get("Message-ID") == "<"+id+">" {
			found = append(found, map[string]string{"id": fmt.Sprintf("m%d", i+1), "threadId": "t1"})
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"messages": found, "resultSizeEstimate": len(found)})
}

func (b *backend) seen() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

// A scene is a host with the whole set, and what it can reach.
type scene struct {
	*testing.T
	*backend
	app *app.App
}

// plain allows everything that the set does.
const plain = `
policy:
  allow:
    - {kinds: [tool, agent, adapter]}
    - {kinds: [operator], effects: [gmail_send, http_write]}
egress:
  loopback: [Gmail.Send, Apply.EmailDraft, ExternalSystem.WriteOutcome, Professor.Summarize, Backend.Adapter, Gmail.Adapter]
`

func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
}

// openScene registers the whole set in a host that allows what it does.
func openScene(t *testing.T) *scene {
	t.Helper()
	return openConfigured(t, plain)
}

// openConfigured registers the whole set, as it lies in plugins/outreach, in a
// host of its own. Only the port of the receiver is another one.
func openConfigured(t *testing.T, config string) *scene {
	t.Helper()
	needs(t, "python3", "node")
	b := newBackend(t)
	set := t.TempDir()
	copySet(t, set, b.addr)
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "mortise.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	policy, err := os.ReadFile("outreach/policy.cedar")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "policy.cedar"), policy, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.Open(t.Context(), app.Options{Home: home, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	report, err := a.Registry.Register(t.Context(), set, registry.RegisterOptions{Enable: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, failed := range report.Failed {
		t.Fatalf("%s: %v", failed.Path, failed.Err)
	}
	for _, one := range report.Registered {
		if one.NotEnabled != nil {
			t.Fatalf("%s: %v", one.Name, one.NotEnabled)
		}
	}
	return &scene{t, b, a}
}

// copySet copies plugins/outreach to dir, compiled, with the receiver at addr.
func copySet(t *testing.T, dir, addr string) {
	t.Helper()
	err := filepath.WalkDir("outreach", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "write_outcome" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(path, "outreach"))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, bytes.ReplaceAll(raw, []byte(receiver), []byte(addr)), 0o600)
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "write_outcome", "write_outcome"), writeOutcome, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// call makes a call with a key, in the name of a principal with these scopes.
func (s *scene) call(operation, input, key string, scopes ...string) (plugin.Result, error) {
	s.Helper()
	return s.app.Kernel.Call(s.Context(), plugin.Call{
		Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "local:owner", Scopes: scopes}, Origin: plugin.OriginCLI,
		Operation: operation, Input: json.RawMessage(input), Key: key,
	})
}

// must makes a call that succeeds and decodes its data.
func (s *scene) must(operation, input, key string, data any) plugin.Result {
	s.Helper()
	res, err := s.call(operation, input, key, "*")
	if err != nil {
		s.Fatalf("%s: %v", operation, err)
	}
	if res.Status != plugin.Succeeded {
		s.Fatalf("%s: %s", operation, res.Status)
	}
	if data != nil {
		if err := json.Unmarshal(res.Data, data); err != nil {
			s.Fatal(err)
		}
	}
	return res
}

// example is an example of a plugin, for this scene's receiver.
func (s *scene) example(dir, name string) string {
	s.Helper()
	raw, err := os.ReadFile(filepath.Join("outreach", dir, "examples", name+".input.json"))
	if err != nil {
		s.Fatal(err)
	}
	return strings.ReplaceAll(string(raw), receiver, s.addr)
}

// TestOutreachExamplesRun calls every operation of the set with each of its
// examples; an answer that lies beside an example is the answer.
func TestOutreachExamplesRun(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	paths, err := filepath.Glob("outreach/*/examples/*.input.json")
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for _, path := range paths {
		dir := filepath.Base(filepath.Dir(filepath.Dir(path)))
		name := strings.TrimSuffix(filepath.Base(path), ".input.json")
		operation := name[:strings.LastIndex(name, ".")]
		operation = map[string]string{
			"chat_adapter": "Chat.Adapter/", "examples_adapter": "Examples.Adapter/", "backend_adapter": "Backend.Adapter/", "gmail_adapter": "Gmail.Adapter/",
		}[dir] + operation
		called[operation] = true
		res := s.must(operation, s.example(dir, name), name, nil)
		if want, err := os.ReadFile(strings.TrimSuffix(path, ".input.json") + ".output.json"); err == nil {
			if got, want := compact(t, res.Data), compact(t, want); got != want {
				t.Errorf("%s answered %s, not %s", path, got, want)
			}
		}
	}
	if len(called) != 22 {
		t.Errorf("%d operations have examples: %v", len(called), called)
	}
}

func compact(t *testing.T, raw []byte) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestGmailSendOneMailForAKey sends one mail, whose parts are read by another
// library than wrote them, and no second one under the same key.
func TestGmailSendOneMailForAKey(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	input := fmt.Sprintf(`{"from":"Zoë Ångström <zoe@students.example.edu>","to":["\"Curie, M.\" <m@physics.example.edu>","p@physics.example.edu"],
		"subject":"Grüße: 10 € für Röntgens Nächste, und noch etwas mehr Text, damit gefaltet wird","body":"Liebe Frau Curie,\n= so =\n.\n%s\n","base":"http://%s"}`,
		strings.Repeat("é", 200), s.addr)
	var first, again struct {
		ID        string `json:"id"`
		MessageID string `json:"message_id"`
	}
	s.must("Gmail.Send", input, "demo-1", &first)
	s.must("Gmail.Send", input, "demo-1", &again)
	if len(s.mails) != 1 || first != again || first.ID != "m1" {
		t.Fatalf("%d mails, %+v, %+v", len(s.mails), first, again)
	}
	raw := s.mails[0]
	if bytes.Contains(bytes.ReplaceAll(raw, []byte("\r\n"), nil), []byte("\n")) {
		t.Error("a line does not end with CRLF")
	}
	for _, line := range bytes.Split(raw, []byte("\r\n")) {
		if len(line) > 78 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
	m := readMail(t, raw)
	if want := "Grüße: 10 € für Röntgens Nächste, und noch etwas mehr Text, damit gefaltet wird"; m.subject != want {
		t.Errorf("subject %q", m.subject)
	}
	from, err := m.AddressList("From")
	if err != nil || from[0].Name != "Zoë Ångström" || from[0].Address != "zoe@students.example.edu" {
		t.Errorf("from %v, %v", from, err)
	}
	to, err := m.AddressList("To")
	if err != nil || len(to) != 2 || to[0].Name != "Curie, M." || to[1].Address != "p@physics.example.edu" {
		t.Errorf("to %v, %v", to, err)
	}
	if _, err := m.Date(); err != nil {
		t.Error(err)
	}
	if got := m.Get("Message-ID"); got != first.MessageID || !strings.HasSuffix(got, "@students.example.edu>") {
		t.Errorf("Message-ID %s, answered %s", got, first.MessageID)
	}
	if want := "Liebe Frau Curie,\r\n= so =\r\n.\r\n" + strings.Repeat("é", 200) + "\r\n"; m.body != want {
		t.Errorf("body %q", m.body)
	}
}

// A letter is a mail as another library than wrote it reads it.
type letter struct {
	mail.Header
	subject, body string
}

func readMail(t *testing.T, raw []byte) letter {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		t.Fatal(err)
	}
	return letter{m.Header, subject, string(body)}
}

// TestGmailSendRefusesInjection shows that no text of a caller becomes a header.
func TestGmailSendRefusesInjection(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	for _, member := range []string{"from", "to", "subject"} {
		for _, text := range []string{"a@example.org\r\nBcc: eve@example.org", "a@example.org\nBcc: eve@example.org", "a\u2028b@example.org"} {
			in := map[string]string{"from": "a@example.edu", "to": "b@example.org", "subject": "Hi", "body": "Hi", "base": "http://" + s.addr}
			in[member] = text
			raw, err := json.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.call("Gmail.Send", string(raw), "", "*"); plugin.CodeOf(err) != plugin.CodeInvalidInput {
				t.Errorf("%s %q: %v", member, text, err)
			}
		}
	}
	if seen := s.seen(); len(seen) != 0 {
		t.Errorf("it was asked: %v", seen)
	}
}

// TestOutreachOperatorsNeedTheirScopes calls each operator that has effects as a
// principal without its scopes.
func TestOutreachOperatorsNeedTheirScopes(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	for operation, example := range map[string][2]string{
		"Gmail.Send":                  {"gmail_send", "Gmail.Send.plain"},
		"Apply.EmailDraft":            {"apply_email_draft", "Apply.EmailDraft.one"},
		"ExternalSystem.WriteOutcome": {"write_outcome", "ExternalSystem.WriteOutcome.done"},
	} {
		if _, err := s.call(operation, s.example(example[0], example[1]), "", "email:read"); plugin.CodeOf(err) != plugin.CodeScopeDenied {
			t.Errorf("%s: %v", operation, err)
		}
	}
	if seen := s.seen(); len(seen) != 0 {
		t.Errorf("it was asked: %v", seen)
	}
}

// TestApplyEmailDraftWritesTheFinalEmail puts the draft, whole.
func TestApplyEmailDraftWritesTheFinalEmail(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	input := s.example("apply_email_draft", "Apply.EmailDraft.one")
	input = strings.Replace(input, `"id"`, fmt.Sprintf(`"backend": "http://%s", "id"`, s.addr), 1)
	s.must("Apply.EmailDraft", input, "demo-1", nil)
	s.must("Apply.EmailDraft", input, "demo-1", nil)
	if seen := s.seen(); !slices.Equal(seen, []string{"PUT /funding_emails/demo-910"}) {
		t.Errorf("asked %v", seen)
	}
	var in struct {
		Draft map[string]string `json:"draft"`
	}
	if err := json.Unmarshal([]byte(input), &in); err != nil {
		t.Fatal(err)
	}
	in.Draft["state"] = "final"
	want, err := json.Marshal(in.Draft)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := compact(t, s.emails["demo-910"]), compact(t, want); got != want {
		t.Errorf("the backend has %s, not %s", got, want)
	}
}

// TestGenerateDraftCallsTheTool finds the nested call in the ledger, and none
// that has effects.
func TestGenerateDraftCallsTheTool(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	var out struct {
		Draft map[string]string `json:"draft"`
		Words int               `json:"words"`
	}
	s.must("Email.GenerateDraft", s.example("email_generate_draft", "Email.GenerateDraft.formal"), "", &out)
	if !strings.Contains(out.Draft["body"], "Rays emitted by compounds of uranium and of thorium") || out.Words < 80 {
		t.Errorf("%+v", out)
	}
	entries, err := s.app.Ledger.List(s.Context(), ledger.Filter{Operation: "Template.Fill/Template.Fill", Limit: 10})
	if err != nil || len(entries) == 0 {
		t.Errorf("no call of Template.Fill is on record: %v", err)
	}
	if seen := s.seen(); len(seen) != 0 {
		t.Errorf("it was asked: %v", seen)
	}
}

// TestTemplateFillNamesWhatIsMissing and evaluates nothing.
func TestTemplateFillNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	_, err := s.call("Template.Fill", `{"template":"{a} {b}","values":{"b":"x"}}`, "", "*")
	if plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), "no value for a") {
		t.Errorf("%v", err)
	}
	if _, err := s.call("Template.Fill", `{"template":"{a.__class__}","values":{"a":"x"}}`, "", "*"); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("%v", err)
	}
}

// TestAdaptersMapEventsToRequests: the three examples of the contract and the
// chat's own, each held against the published schema.
func TestAdaptersMapEventsToRequests(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	raw, err := os.ReadFile("../protocol/schemas/kernel_submit_request.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	published, err := schema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ operation, dir, example, intent, provider, user string }{
		{"Examples.Adapter/salesforce_case", "examples_adapter", "salesforce_case.created", "Support.Ticket.Resolve", "salesforce", "0055e000003SxPkAAK"},
		{"Examples.Adapter/university_portal", "examples_adapter", "university_portal.accepted", "Admission.Application.StatusUpdate", "university_portal", "example-edu/stu-77"},
		{"Examples.Adapter/slack_mention", "examples_adapter", "slack_mention.question", "Support.QA.Answer", "slack", "T061EG9R6/W021FGA1Z"},
		{"Chat.Adapter/inbound", "chat_adapter", "inbound.mention", "Support.QA.Answer", "slack", "T0G9PQBBK/U2147483697"},
		{"Backend.Adapter/inbound", "backend_adapter", "inbound.started", "Funding.Outreach.Email.Generate", "platform", "canapply/stu-77"},
		{"Gmail.Adapter/connected", "gmail_adapter", "connected.granted", "Mailbox.Connected", "google", "ada@students.example.edu"},
		{"Chat.Adapter/inbound", "chat_adapter", "inbound.command", "Funding.Outreach.Email.Send", "slack", "T0G9PQBBK/U2147483697"},
	} {
		var got struct {
			Intent struct {
				Type string `json:"type"`
			} `json:"intent"`
			Principal struct {
				Provider string `json:"provider"`
				ID       string `json:"external_id"`
			} `json:"principal"`
			Key string `json:"idempotency_key"`
		}
		res := s.must(c.operation, s.example(c.dir, c.example), "", &got)
		if err := published.Check(t.Context(), res.Data); err != nil {
			t.Errorf("%s: %v", c.example, err)
		}
		if got.Intent.Type != c.intent || got.Principal.Provider != c.provider || got.Principal.ID != c.user || got.Key == "" {
			t.Errorf("%s: %+v", c.example, got)
		}
	}
	for operation, event := range map[string]string{
		"Examples.Adapter/salesforce_case": strings.Replace(s.example("examples_adapter", "salesforce_case.created"), "CREATE", "DELETE", 1),
		"Chat.Adapter/inbound":             strings.Replace(s.example("chat_adapter", "inbound.command"), "/outreach send", "/outreach delete", 1),
	} {
		if _, err := s.call(operation, event, "", "*"); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%s: %v", operation, err)
		}
	}
}

// TestOutcomesAreWrittenByTheOperator: an adapter asks for the operator, once
// for an outcome however often it hears of it, and may not write itself.
func TestOutcomesAreWrittenByTheOperator(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	input := s.example("chat_adapter", "outbound.done")
	var out struct {
		Status string         `json:"status"`
		Data   map[string]any `json:"data"`
	}
	for range 2 {
		s.must("Chat.Adapter/outbound", input, "", &out)
	}
	if out.Status != "succeeded" || out.Data["reference"] != "chat:7f" {
		t.Errorf("%+v", out)
	}
	if seen := s.seen(); !slices.Equal(seen, []string{"POST /outcomes"}) || len(s.outcomes) != 1 || s.outcomes[""] != nil {
		t.Errorf("asked %v, and there is %s", seen, s.outcomes)
	}
	if _, err := s.call("Chat.Adapter/outbound", strings.Replace(input, "chat:7f", "chat:8", 1), "", "email:send"); err == nil {
		t.Error("the adapter had rights that its caller has not")
	}
}

// TestOutreachKeepsItsContract: every check passes, those of what has effects
// too, as README.md runs them.
func TestOutreachKeepsItsContract(t *testing.T) {
	t.Parallel()
	needs(t, "python3", "node")
	b := newBackend(t)
	set := t.TempDir()
	copySet(t, set, b.addr)
	ran := map[string]int{}
	report, err := check.Run(t.Context(), set, check.Options{Effects: true, Config: "outreach/check.yaml", Observe: func(r check.Result) {
		if r.Outcome == check.Fail || r.Outcome == check.Warn {
			t.Errorf("%s %s: %s: %s", r.Outcome, r.Plugin, r.Check, r.Detail)
		}
		if r.Outcome == check.Pass && r.Check == "a repeated key gives the first result and runs nothing" {
			ran[r.Plugin]++
		}
	}})
	if err != nil || report.Failed() > 0 || len(ran) != 8 {
		t.Errorf("%d failed, %v; the operators that ran are %v", report.Failed(), err, ran)
	}
}

// TestOutreachUnitTests runs the tests that the plugins bring along, and those
// of the receiver.
func TestOutreachUnitTests(t *testing.T) {
	t.Parallel()
	s := openScene(t)
	manifests, err := filepath.Glob("outreach/*/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range manifests {
		dir, err := filepath.Abs(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		m, err := contract.Read(dir)
		if m == nil || m.Runner.Entry == "" {
			continue // it is in Go, and may not be built where it lies
		}
		if err != nil {
			t.Fatal(err)
		}
		argv, err := s.app.Interpreters.TestCommand(t.Context(), plugin.Package{Dir: dir, Dev: true}, m, "")
		if err != nil {
			t.Fatal(err)
		}
		unitTests(t, m.Name, dir, argv)
	}
	unitTests(t, "receiver", "outreach/receiver", []string{"python3", "-B", "-m", "unittest", "discover", "-s", "tests"})
}

func unitTests(t *testing.T, name, dir string, argv []string) {
	t.Run(name, func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
