package protocol_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

func TestWhatWasFoundOutIsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ result, outcome, data, evidence, code string }{
		{`{"outcome":"succeeded","data":{"id":9007199254740993},"evidence":[1]}`, "succeeded", `{"id":9007199254740993}`, `[1]`, ""},
		{`{"outcome":"succeeded"}`, "succeeded", "", "", ""},
		{`{"outcome":"succeeded","data":null,"error":null}`, "succeeded", "null", "", ""},
		{`{"outcome":"not_done","data":null,"from_the_future":1}`, "not_done", "", "", ""},
		{`{"outcome":"unknown","evidence":"no answer"}`, "unknown", "", `"no answer"`, ""},
		{`{"outcome":"failed"}`, "failed", "", "", ""},
		{`{"outcome":"failed","error":{"code":"BOUNCED","message":"no such address"}}`, "failed", "", "", "plugin_error"},
		{`{"outcome":"failed","error":{"code":"policy_denied","message":"it speaks with the host's voice"}}`, "failed", "", "", "plugin_error"},
	} {
		r, err := protocol.ParseReconciled([]byte(c.result))
		if err != nil || r.Outcome != c.outcome || string(r.Data) != c.data || string(r.Evidence) != c.evidence || c.code != "" != (r.Err != nil) {
			t.Errorf("%s: %+v, %v", c.result, r, err)
		}
		if r.Err != nil && string(r.Err.Code) != c.code {
			t.Errorf("%s: code %s", c.result, r.Err.Code)
		}
	}
	for _, bad := range []string{
		`1`, `{}`, `{"outcome":1}`, `{"outcome":"done"}`, `{"outcome":"Succeeded"}`, `{"outcome":"not_done","data":1}`,
		`{"outcome":"unknown","error":{"code":"a","message":"b"}}`, `{"outcome":"succeeded","data":1,"error":{}}`, `{"outcome":"failed","error":[]}`,
	} {
		if _, err := protocol.ParseReconciled([]byte(bad)); err == nil || plugin.CodeOf(err) != plugin.CodeInternal {
			t.Errorf("%s: %v", bad, err)
		}
	}
	_, err := protocol.ParseReconciled([]byte(`{"outcome":"unknown","evidence":"` + strings.Repeat("a", protocol.MaxEvidence) + `"}`))
	if plugin.CodeOf(err) != plugin.CodeOutputTooLarge {
		t.Errorf("too much evidence: %v", err)
	}
}

func TestPreviewsAreRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ result, want string }{{`{"preview":{"to":"ann"}}`, `{"to":"ann"}`}, {`{"x":1, "preview" : null}`, `null`}} {
		if got, err := protocol.ParsePreview([]byte(c.result)); err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v", c.result, got, err)
		}
	}
	for _, bad := range []string{`"preview"`, `{}`, `{"Preview":1}`} {
		if _, err := protocol.ParsePreview([]byte(bad)); err == nil || plugin.CodeOf(err) != plugin.CodeInternal {
			t.Errorf("%s: %v", bad, err)
		}
	}
	long := `{"preview":"` + strings.Repeat("a", protocol.MaxPreview-2) + `"}`
	if _, err := protocol.ParsePreview([]byte(long)); err != nil {
		t.Errorf("a preview of just 64 KiB: %v", err)
	}
	if _, err := protocol.ParsePreview([]byte(strings.Replace(long, "aa", "aaa", 1))); plugin.CodeOf(err) != plugin.CodeOutputTooLarge {
		t.Errorf("one byte more: %v", err)
	}
}

// What answered an effect is left out where the line has no room for it; the
// effect itself never is.
func TestAReconcileLineKeepsItsLimit(t *testing.T) {
	t.Parallel()
	call := &plugin.Call{Tenant: "t", Principal: plugin.Principal{Type: "user", ID: "p"}, Attempt: 2}
	effects := []protocol.Effect{
		{Method: "http.fetch", Effect: "http_write", RequestHash: "sha256:1", State: "done", ProviderKey: "k", Response: jsontext.Value("{\n\"a\": 1}")},
		{Method: "http.fetch", Effect: "http_write", RequestHash: "sha256:2", Occurrence: 1, State: "done", Response: jsontext.Value(`"` + strings.Repeat("b", 2000) + `"`)},
		{Method: "http.fetch", Effect: "http_write", RequestHash: "sha256:3", State: "intent"},
	}
	before := []byte("what waits to be written")
	for _, c := range []struct {
		limit int
		kept  []bool
	}{{1 << 20, []bool{true, true, false}}, {1000, []bool{true, false, false}}, {700, []bool{false, false, false}}} {
		b := protocol.AppendReconcile(bytes.Clone(before), 7, "tok", "a/b", []byte(`{"x":1}`), call, 5, effects, c.limit)
		line := b[len(before):]
		if bytes.Count(line, []byte("\n")) != 1 || !bytes.HasSuffix(line, []byte("\n")) || len(line) > c.limit {
			t.Fatalf("limit %d: %d bytes: %s", c.limit, len(line), line)
		}
		f, err := protocol.ParseFrame(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		var got protocol.Reconcile
		if err := json.Unmarshal(f.Params, &got); err != nil || got.Operation != "a/b" || got.Context.Attempt != 2 || len(got.Effects) != 3 {
			t.Fatalf("%v: %+v", err, got)
		}
		for i, e := range got.Effects {
			if (len(e.Response) > 0) != c.kept[i] || e.RequestHash != effects[i].RequestHash || e.Occurrence != effects[i].Occurrence || e.State != effects[i].State {
				t.Errorf("limit %d, effect %d: %+v", c.limit, i, e)
			}
		}
	}
}

func TestTheContextSaysWhatPolicyDecided(t *testing.T) {
	t.Parallel()
	call := &plugin.Call{Tenant: "t", Principal: plugin.Principal{Type: "user", ID: "p", Scopes: []string{"a:b"}}, Key: "k", ID: "i", Attempt: 3,
		Trace:    plugin.Trace{Correlation: "c", Workflow: "w", Step: "s"},
		Decision: &plugin.Decision{Verdict: plugin.AllowWithApproval, Reasons: []string{"a \"person\""}, Policy: "v1"}}
	for method, line := range map[string][]byte{
		"execute": protocol.AppendExecute(nil, 3, "tok", "a/b", []byte(`1`), call, 5),
		"preview": protocol.AppendPreview(nil, 3, "tok", "a/b", []byte(`1`), call, 5),
	} {
		f, err := protocol.ParseFrame(bytes.TrimSpace(line))
		if err != nil || f.Method != method {
			t.Fatalf("%s: %v %s", method, err, line)
		}
		var got protocol.Execute
		if err := json.Unmarshal(f.Params, &got); err != nil {
			t.Fatal(err)
		}
		c := got.Context
		if p := c.Policy; p == nil || p.Version != "v1" || p.Verdict != plugin.AllowWithApproval || len(p.Reasons) != 1 || p.Reasons[0] != `a "person"` {
			t.Errorf("%s: policy %+v", method, p)
		}
		if c.Attempt != 3 || c.Key != "k" || c.CallID != "i" || c.Auth.Scopes[0] != "a:b" || c.Auth.PrincipalID != "p" || c.Trace.Step != "s" || string(got.Input) != "1" {
			t.Errorf("%s: %+v", method, got)
		}
	}
	if line := protocol.AppendExecute(nil, 3, "tok", "a/b", nil, &plugin.Call{}, 5); !bytes.Contains(line, []byte(`"attempt":1`)) || bytes.Contains(line, []byte("policy")) {
		t.Errorf("a call that policy has not decided: %s", line)
	}
}
