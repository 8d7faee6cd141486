package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// hears lets a plugin hear of three events, as its payloads ask for.
func hears(p *mortise.Plugin) {
	opened := 0
	mortise.Listen(p, "session.opened@v1", func(*mortise.Call, mortise.Payload) error { opened++; return nil })
	mortise.Transform(p, "channel.message.in@v1", func(_ *mortise.Call, p mortise.Payload) (mortise.Payload, error) {
		var in struct {
			Text string `json:"text"`
			Add  string `json:"add"`
		}
		if err := p.Decode(&in); err != nil || in.Add == "" {
			return nil, err
		}
		return p.With("text", in.Text+in.Add)
	})
	mortise.Veto(p, "tool.before@v1", func(c *mortise.Call, p mortise.Payload) (mortise.Verdict, error) {
		var in struct {
			Do string `json:"do"`
		}
		if err := p.Decode(&in); err != nil {
			return mortise.Verdict{}, err
		}
		switch in.Do {
		case "who":
			return mortise.Verdict{Reason: identity()}, nil
		case "where":
			return mortise.Verdict{Reason: fmt.Sprint(c.Operation, " ", c.Agent, " ", c.About().Session, " ", c.Limit > 0, " ", opened)}, nil
		case "serve":
			return mortise.Verdict{Reason: c.Service("cache.get", map[string]string{"key": "a"}, nil).Error()}, nil
		case "wait":
			<-c.Done()
			return mortise.Verdict{}, c.Err()
		case "hang":
			testwait.Block()
		case "exit":
			fmt.Fprintln(os.Stderr, "these are my last words")
			os.Exit(7)
		}
		return mortise.Verdict{Allow: true}, nil
	})
}

// here is where the events of most tests take place.
var here = process.HookScope{Tenant: "local", Agent: "support", Session: "sess_1"}

// tell asks a hook and waits for at most that long.
func tell(t testing.TB, r *process.Runner, target *plugin.Target, of process.HookScope, limit time.Duration, event, payload string) (protocol.Hooked, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	shape := map[string]string{"session.opened@v1": protocol.ShapeListener, "channel.message.in@v1": protocol.ShapeTransform}[event]
	if shape == "" {
		shape = protocol.ShapeVeto
	}
	raw, err := r.Hook(ctx, target, of, event, shape, payload)
	if err != nil {
		return protocol.Hooked{}, err
	}
	said, err := protocol.ParseHooked(shape, raw)
	if err != nil {
		t.Errorf("the runner passed on %s: %v", raw, err)
	}
	return said, nil
}

func TestHooksListenTransformAndVeto(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	good := target("good", "")
	if _, err := tell(t, r, good, here, time.Minute, "session.opened@v1", `{}`); err != nil {
		t.Errorf("a listener: %v", err)
	}
	for payload, want := range map[string]string{
		`{"text":"a","n":9007199254740993,"add":"b"}`:      `{"text":"ab","n":9007199254740993,"add":"b"}`,
		"{\n\"text\": \"a\\n\",\r\n \"add\":\"\u2028\"\n}": `{"text":"a\n` + "\u2028" + `","add":"` + "\u2028" + `"}`,
		`{"text":"a"}`: "",
	} {
		said, err := tell(t, r, good, here, time.Minute, "channel.message.in@v1", payload)
		if err != nil || string(said.Payload) != want {
			t.Errorf("%s became %s, %v; want %s", payload, said.Payload, err, want)
		}
	}
	said, err := tell(t, r, good, here, time.Minute, "tool.before@v1", `{"do":"where"}`)
	if want := "tool.before@v1 support sess_1 true 1"; err != nil || said.Allow || said.Reason != want {
		t.Errorf("a veto says %+v, %v; want %s", said, err, want)
	}
	if said, err := tell(t, r, good, here, time.Minute, "tool.before@v1", `{}`); err != nil || !said.Allow {
		t.Errorf("a veto says %+v, %v", said, err)
	}
}

// A hook is told what the calls of its plugin are told: in the process of the
// session, the agent, the tenant, or in one of its own.
func TestAHookSharesTheProcessOfItsScope(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	who := func(isolation plugin.Isolation, of process.HookScope) string {
		said, err := tell(t, r, target("good", "", func(m *plugin.Manifest) { m.Isolation = isolation }), of, time.Minute, "tool.before@v1", `{"do":"who"}`)
		if err != nil || said.Reason == "" {
			t.Fatalf("%+v, %v", said, err)
		}
		return said.Reason
	}
	other := process.HookScope{Tenant: "local", Agent: "sales", Session: "sess_2"}
	for isolation, shared := range map[plugin.Isolation]struct{ again, other bool }{
		plugin.IsolationTenant: {true, true}, plugin.IsolationAgent: {true, false}, plugin.IsolationSession: {true, false}, plugin.IsolationCall: {false, false},
	} {
		first := who(isolation, here)
		if again := who(isolation, here); (again == first) != shared.again {
			t.Errorf("%s: the next event of the same agent and session: the same process is %t", isolation, !shared.again)
		}
		if again := who(isolation, other); (again == first) != shared.other {
			t.Errorf("%s: an event of another agent: the same process is %t", isolation, !shared.other)
		}
	}
	c := call(`{}`)
	c.Agent, c.Session = here.Agent, here.Session
	res, err := run(t, r, target("good", "pid", func(m *plugin.Manifest) { m.Isolation = plugin.IsolationAgent }), c)
	if want := fmt.Sprintf("%q", who(plugin.IsolationAgent, here)); err != nil || string(res.Data) != want {
		t.Errorf("a call of the agent runs in %s, its hooks in %s, %v", res.Data, want, err)
	}
	nowhere := process.HookScope{Tenant: "local", Agent: "support"}
	if first := who(plugin.IsolationSession, nowhere); who(plugin.IsolationSession, nowhere) == first {
		t.Error("events outside any session share a process")
	}
}

func TestAHookHasNoServices(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	said, err := tell(t, r, target("good", ""), here, time.Minute, "tool.before@v1", `{"do":"serve"}`)
	if err != nil || !strings.Contains(said.Reason, "service_denied") || !strings.Contains(said.Reason, "not available in hooks") {
		t.Errorf("%+v, %v", said, err)
	}
}

// slack is how much later than its deadline a hook may be given up.
const slack = 250 * time.Millisecond

func TestAHookThatHangsIsGivenUpInTimeAndEnded(t *testing.T) {
	t.Parallel()
	const deadline = 300 * time.Millisecond
	for _, do := range []string{"wait", "hang"} {
		grace := time.Minute // the process that hears of it ends the hook in that time
		if do == "hang" {
			grace = 100 * time.Millisecond
		}
		r := newRunner(t, process.Options{PerTenant: 1, CancelGrace: grace})
		said, err := tell(t, r, target("serial", ""), here, time.Minute, "tool.before@v1", `{"do":"who"}`)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = tell(t, r, target("serial", ""), here, deadline, "tool.before@v1", fmt.Sprintf(`{"do":%q}`, do))
		testwait.AtMost(t, "giving up a hook that must "+do, time.Since(began), deadline+slack)
		wantCode(t, err, plugin.CodeTimeout, "test.plugin/tool.before@v1", "in time")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want a deadline", do, err)
		}
		// One that heard of it serves on; one that did not is ended, and another serves.
		next, err := tell(t, r, target("serial", ""), here, time.Minute, "tool.before@v1", `{"do":"who"}`)
		if err != nil || (next.Reason == said.Reason) != (do == "wait") {
			t.Errorf("%s: before it %s, after it %s, %v", do, said.Reason, next.Reason, err)
		}
	}
}

func TestAHookWhoseProcessEndsFailsInTime(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	_, err := tell(t, r, target("good", ""), here, time.Minute, "tool.before@v1", `{"do":"exit"}`)
	wantCode(t, err, plugin.CodeCrashed, "test.plugin: ", "these are my last words")

	res, err := run(t, r, target("good", "pid"), call(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	pid := hostPID(t, res.Data)
	killed := make(chan error, 1)
	time.AfterFunc(200*time.Millisecond, func() { killed <- syscall.Kill(pid, syscall.SIGKILL) })
	const deadline = time.Minute
	began := time.Now()
	_, err = tell(t, r, target("good", ""), here, deadline, "tool.before@v1", `{"do":"hang"}`)
	wantCode(t, err, plugin.CodeCrashed, "test.plugin: ")
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("it took %s, want at least 200 ms", took)
	}
	if err := <-killed; err != nil {
		t.Error(err)
	}
	if said, err := tell(t, r, target("good", ""), here, time.Minute, "tool.before@v1", `{}`); err != nil || !said.Allow {
		t.Errorf("afterwards: %+v, %v", said, err)
	}
}

// What no line holds never leaves the host, and the process serves on.
func TestAPayloadThatNoLineHoldsIsRefused(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	sized := func(n int) string { return `{"text":"` + strings.Repeat("a", n-len(`{"text":""}`)) + `"}` }
	for _, n := range []int{10 << 20, protocol.MaxFrame2} {
		_, err := tell(t, r, target("good", ""), here, time.Minute, "tool.before@v1", sized(n))
		wantCode(t, err, plugin.CodeInputTooLarge, "a line holds at most 4194304")
	}
	if said, err := tell(t, r, target("good", ""), here, time.Minute, "tool.before@v1", sized(protocol.MaxFrame2-400)); err != nil || !said.Allow {
		t.Errorf("the longest: %+v, %v", said, err)
	}
}

func TestAnEventThatTheCodeDoesNotHearIsTold(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	for _, target := range []*plugin.Target{target("good", ""), target("hears/no such method", ""), bound("v1/good")} {
		_, err := tell(t, r, target, here, time.Minute, "memory.upsert@v1", `{}`)
		wantCode(t, err, plugin.CodeToolNotExposed, "test.plugin", "memory.upsert@v1", "no hook")
	}
}

// Whatever a plugin says of an event, it fails with the right code and the host
// goes on.
func TestLiesAboutEvents(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1, CancelGrace: 100 * time.Millisecond})
	want := map[string]plugin.Code{
		"no such method": plugin.CodeToolNotExposed, "an error": plugin.CodePluginError, "exits": plugin.CodeCrashed,
		"never": plugin.CodeTimeout, "never reads": plugin.CodeTimeout,
	}
	for role := range liars {
		kind, lie, _ := strings.Cut(role, "/")
		if kind != "hears" {
			continue
		}
		code, special := want[lie]
		if !special {
			code = plugin.CodeMalformedResponse
		}
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			limit := time.Minute
			if code == plugin.CodeTimeout {
				limit = time.Second
			}
			began := time.Now()
			said, err := tell(t, r, target(role, ""), here, limit, "tool.before@v1", `{"toolName":"shell"}`)
			testwait.AtMost(t, "the hook", time.Since(began), limit+slack)
			wantCode(t, err, code)
			if said.Allow || said.Payload != nil {
				t.Errorf("it came with %+v", said)
			}
		})
	}
}

// A hook whose caller sets no bound has one.
func TestAHookIsBounded(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	began := time.Now()
	_, err := r.Hook(context.Background(), target("good", ""), here, "tool.before@v1", protocol.ShapeVeto, `{"do":"wait"}`)
	wantCode(t, err, plugin.CodeTimeout, "in time")
	testwait.AtMost(t, "the hook", time.Since(began), 7*time.Second)
}
