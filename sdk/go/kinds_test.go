package mortise_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/protocol"
	"github.com/mortise-dev/mortise/protocol/protocoltest"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// A talk is a conversation with a plugin in this process.
type talk struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Reader
	last int
}

func talkTo(t *testing.T, p *mortise.Plugin) *talk {
	hostIn, pluginOut := io.Pipe()
	pluginIn, hostOut := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- p.Serve(pluginIn, pluginOut) }()
	t.Cleanup(func() {
		_ = hostOut.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &talk{t: t, in: hostOut, out: bufio.NewReader(hostIn)}
}

func (c *talk) say(line string) {
	c.t.Helper()
	if _, err := c.in.Write(append(protocol.Line([]byte(line)), '\n')); err != nil {
		c.t.Fatal(err)
	}
}

func (c *talk) hear() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return line
}

// ask asks something and returns the result member of the answer, or its error.
func (c *talk) ask(method, params string) jsontext.Value {
	c.t.Helper()
	c.last++
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.last, method, params))
	return c.answer()
}

func (c *talk) answer() jsontext.Value {
	c.t.Helper()
	var frame struct {
		Result jsontext.Value `json:"result"`
		Error  jsontext.Value `json:"error"`
	}
	if err := json.Unmarshal([]byte(c.hear()), &frame); err != nil {
		c.t.Fatal(err)
	}
	if frame.Error != nil {
		return frame.Error
	}
	return frame.Result
}

func want(t *testing.T, got jsontext.Value, want string) {
	t.Helper()
	if differs := protocoltest.Match(want, string(got)); differs != "" {
		t.Errorf("%s\nwant %s\ngot  %s", differs, want, got)
	}
}

func params(operation, input string) string {
	return `{"call":"c","operation":"p/` + operation + `","input":` + input + `,"context":{},"deadline_ms":1000}`
}

func TestAgentsGetTheirBriefAndAnswerAProposal(t *testing.T) {
	t.Parallel()
	p := mortise.New("p", "1.0.0")
	mortise.Agent(p, "decide", "Decide.", func(c *mortise.Call, in mortise.AgentInput) (mortise.Proposal, error) {
		if in.Intent.Type == "" {
			return mortise.Proposal{}, mortise.NeedsContext("student.profile")
		}
		none := []string{}
		return mortise.Proposal{
			AgentName: "p", AgentVersion: "1.0.0", Kind: mortise.PlanProposal, Confidence: 0.5,
			Rationale:       mortise.Rationale{Short: "because", Signals: []string{"intent_type:" + in.Intent.Type}},
			RequiredActions: []mortise.RequiredAction{{Operator: in.ToolRegistry[0].Name, Payload: in.Intent.Payload}},
			ProposedPlan:    &mortise.ProposedPlan{Steps: []mortise.ProposedStep{{ID: "s1", Action: "Mail.Send", Gate: mortise.GateHumanApply, Needs: &none}}},
		}, nil
	}, mortise.AllowedActions("Mail.Send@1.x"), mortise.ContextFields("student.profile"), mortise.Produces[string](), mortise.Labels("untrusted"))
	c := talkTo(t, p)
	want(t, c.ask("describe", "{}"), `{"plugins":[{"name":"p","version":"1.0.0","description":"","capabilities":[],"operations":{"decide":{"kind":"agent","description":"Decide.",
		"input":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["intent"],"properties":{
			"intent":{"type":"object","properties":{"type":{"type":"string"},"payload":{"type":"object"}},"required":["type"]},"context":{"type":"object"},"constraints":{"type":"object"}}},
		"output":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"string"},
		"labels":["untrusted"],"allowed_actions":["Mail.Send@1.x"],"context_fields":["student.profile"]}}}]}`)
	got := c.ask("execute", params("decide", `{"intent":{"type":"Mail.Write","payload":{"to":"ann"},"from_the_future":1},"context":{},
		"policy_snapshot":{"version":"1","operations":{"Mail.Send/send":"allow"}},"tool_registry":[{"name":"Mail.Send","effects":[],"new":1}],"constraints":{},"runtime":{"deadline_ms":5},"later":{}}`))
	var result struct {
		Data jsontext.Value `json:"data"`
	}
	if err := json.Unmarshal(got, &result); err != nil {
		t.Fatal(err)
	}
	want(t, result.Data, `{"agent_name":"p","agent_version":"1.0.0","kind":"plan_proposal","confidence":0.5,"rationale":{"short":"because","signals":["intent_type:Mail.Write"]},
		"required_actions":[{"operator":"Mail.Send","payload":{"to":"ann"}}],"proposed_plan":{"steps":[{"step_id":"s1","action":"Mail.Send","gate":"human_apply","needs":[]}]}}`)
	fits(t, protocol.AgentOutput, result.Data)
	want(t, c.ask("execute", params("decide", `{}`)), `{"code":-32000,"message":"<any>","data":{"code":"needs_context","plugin_code":"","details":{"missing":["student.profile"]},"retryable":false,"retry_after_ms":0}}`)
}

func TestAdaptersMakeSubmitRequests(t *testing.T) {
	t.Parallel()
	p := mortise.New("p", "1.0.0")
	mortise.Adapter(p, "inbound", "Translate.", func(_ *mortise.Call, in struct {
		Case string `json:"case"`
	}) (mortise.SubmitRequest, error) {
		return mortise.SubmitRequest{
			Intent:         mortise.SubmitIntent{Type: "Support.Ticket.Resolve", Payload: map[string]any{"case": in.Case}},
			Principal:      mortise.ExternalPrincipal{Provider: "salesforce", ExternalID: "u1"},
			IdempotencyKey: "salesforce:" + in.Case,
		}, nil
	})
	c := talkTo(t, p)
	if got := string(c.ask("describe", "{}")); !strings.Contains(got, `"kind":"adapter"`) {
		t.Error(got)
	}
	got := c.ask("execute", params("inbound", `{"case":"17"}`))
	want(t, got, `{"status":"succeeded","data":{"intent":{"type":"Support.Ticket.Resolve","payload":{"case":"17"}},"principal":{"provider":"salesforce","external_id":"u1"},"idempotency_key":"salesforce:17"}}`)
	var result struct {
		Data jsontext.Value `json:"data"`
	}
	if err := json.Unmarshal(got, &result); err != nil {
		t.Fatal(err)
	}
	fits(t, protocol.SubmitRequest, result.Data)
}

// fits holds a value against a schema that the host checks it with.
func fits(t *testing.T, raw []byte, value jsontext.Value) {
	t.Helper()
	s, err := schema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context(), value); err != nil {
		t.Errorf("%s %v", value, err)
	}
}

func TestRequestsAreMadeByTheHost(t *testing.T) {
	t.Parallel()
	p := mortise.New("p", "1.0.0")
	mortise.Operator(p, "close", "Close.", func(c *mortise.Call, in struct{}) ([]any, error) {
		read, err := c.HTTPGet("https://a.example/1")
		if err != nil {
			return nil, err
		}
		follow := false
		if _, err := c.HTTPFetch(mortise.HTTPRequest{URL: "https://a.example/2", BodyBase64: []byte{1}, Method: "PUT", FollowRedirects: &follow, MaxBytes: 10}); err != nil {
			return nil, err
		}
		wrote, err := c.HTTPPost("https://a.example/3", []int{})
		return []any{read.StatusCode, read.JSON, read.Headers["etag"], wrote.StatusCode, wrote.BodyBase64}, err
	}, mortise.Effects("http_write"), mortise.Brokered())
	c := talkTo(t, p)
	if got := string(c.ask("describe", "{}")); !strings.Contains(got, `"brokered":true`) {
		t.Error(got)
	}
	c.last++
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"execute","params":%s}`, c.last, params("close", `{}`)))
	for _, x := range []struct{ asks, gets string }{
		{`{"url":"https://a.example/1"}`, `{"status_code":200,"headers":{"etag":"x"},"json":{"n":9007199254740993},"url":"https://a.example/1","truncated":false}`},
		{`{"method":"PUT","url":"https://a.example/2","body_base64":"AQ==","follow_redirects":false,"max_bytes":10}`, `{"status_code":204,"headers":{},"body":"","url":"","truncated":false}`},
		{`{"method":"POST","url":"https://a.example/3","json":[]}`, `{"status_code":500,"headers":{},"body_base64":"AAE=","url":"","truncated":false}`},
	} {
		var asked struct {
			ID     string `json:"id"`
			Method string `json:"method"`
			Params protocol.ServiceCall
		}
		if err := json.Unmarshal([]byte(c.hear()), &asked, json.MatchCaseInsensitiveNames(true)); err != nil || asked.Method != "http.fetch" {
			t.Fatalf("%+v, %v", asked, err)
		}
		want(t, asked.Params.Args, x.asks)
		c.say(`{"jsonrpc":"2.0","id":"` + asked.ID + `","result":` + x.gets + `}`)
	}
	want(t, c.answer(), `{"status":"succeeded","data":[200,{"n":9007199254740993},"x",500,"AAE="]}`)
}

func TestWhatCannotBeRightPanics(t *testing.T) {
	t.Parallel()
	type a struct{ A int }
	type b struct{ B int }
	run := func(*mortise.Call, a) (int, error) { return 0, nil }
	for what, declare := range map[string]func(p *mortise.Plugin){
		"takes": func(p *mortise.Plugin) {
			mortise.Operator(p, "x", "", run, mortise.WithPreview(func(*mortise.Call, b) (int, error) { return 0, nil }))
		},
		"of kind": func(p *mortise.Plugin) { mortise.Tool(p, "x", "", run, mortise.WithPreview(run)) },
		"an agen": func(p *mortise.Plugin) { mortise.Operator(p, "x", "", run, mortise.AllowedActions("y")) },
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, what) {
					t.Errorf("%s: %q", what, said)
				}
			}()
			declare(mortise.New("p", "1.0.0"))
		}()
	}
}
