package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/plugin"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// guardianDeadline is long enough for a process to start on a busy machine: one that
// crashed is started again within it.
const guardianDeadline = 10 * time.Second

// A guardian hears of three events, and its veto does what the args say. There is
// one in each language that has an SDK.
const guardianHead = "\nversion: 1.0.0\nowner: test\ndescription: Guards.\nisolation: agent\n"

func guardianPlugin() {
	p := mortise.New("guardian_go", "1.0.0")
	opened := 0
	mortise.Tool(p, "seen", "What was heard, and by which process.", func(*mortise.Call, struct{}) (map[string]any, error) {
		space, err := os.Readlink("/proc/self/ns/pid")
		return map[string]any{"opened": opened, "pid": os.Getpid(), "space": space}, err
	})
	mortise.Listen(p, "session.opened@v1", func(*mortise.Call, mortise.Payload) error { opened++; return nil })
	mortise.Transform(p, "channel.message.in@v1", func(_ *mortise.Call, p mortise.Payload) (mortise.Payload, error) {
		var in struct {
			Text string `json:"text"`
		}
		if err := p.Decode(&in); err != nil || in.Text == "leave me" {
			return nil, err
		}
		return p.With("text", in.Text+"!")
	})
	mortise.Veto(p, "tool.before@v1", func(c *mortise.Call, p mortise.Payload) (mortise.Verdict, error) {
		var in struct {
			Args map[string]any `json:"args"`
		}
		if err := p.Decode(&in); err != nil {
			return mortise.Verdict{}, err
		}
		changed := func(value string) (mortise.Verdict, error) {
			in.Args["text"] = value
			payload, err := p.With("args", in.Args)
			return mortise.Verdict{Allow: true, Payload: payload}, err
		}
		switch in.Args["text"] {
		case "refuse":
			return mortise.Verdict{Reason: "not for " + c.Agent}, nil
		case "rewrite":
			return changed("rewritten")
		case "much":
			return changed(strings.Repeat("a", 10<<20))
		case "nonsense":
			return mortise.Verdict{Allow: true, Payload: mortise.Payload(`[]`)}, nil
		case "fail":
			return mortise.Verdict{}, mortise.Errorf("NO_RULES", "it did not look")
		case "crash":
			os.Exit(9)
		case "hang":
			if err := os.WriteFile("hangs", nil, 0o600); err != nil {
				return mortise.Verdict{}, err
			}
			testwait.Block()
		}
		return mortise.Verdict{Allow: true}, nil
	}, mortise.Priority(7), mortise.Deadline(guardianDeadline))
	p.Run()
}

const guardianPython = `
import os, threading
from mortise import Context, Plugin, PluginError

plugin = Plugin("guardian_python", version="1.0.0")
heard = []

@plugin.tool
def seen() -> dict:
    """What was heard, and by which process."""
    return {"opened": len(heard), "pid": os.getpid(), "space": os.readlink("/proc/self/ns/pid")}

@plugin.hook("session.opened@v1")
def opened(payload):
    heard.append(payload)

@plugin.hook("channel.message.in@v1")
async def louder(payload: dict):
    return None if payload["text"] == "leave me" else {**payload, "text": payload["text"] + "!"}

@plugin.hook("tool.before@v1", priority=7, deadline_ms=10000)
def guard(payload: dict, ctx: Context) -> dict:
    text = payload["args"].get("text")
    def changed(value):
        return {"allow": True, "payload": {**payload, "args": {**payload["args"], "text": value}}}
    if text == "refuse":
        return {"allow": False, "reason": "not for " + ctx.agent}
    if text == "rewrite":
        return changed("rewritten")
    if text == "much":
        return changed("a" * (10 << 20))
    if text == "nonsense":
        return [True]
    if text == "fail":
        raise PluginError("it did not look", code="NO_RULES")
    if text == "crash":
        os._exit(9)
    if text == "hang":
        open("hangs", "w").close()
        threading.Event().wait()
    return {"allow": True}

plugin.run()
`

const guardianTypescript = `
import { readlinkSync, writeFileSync } from "node:fs";
import { Plugin, PluginError, t, type ToolBeforeV1, type Verdict } from "mortise";

const plugin = new Plugin("guardian_typescript", { version: "1.0.0" });
let heard = 0;

plugin.tool("seen", { description: "What was heard, and by which process.", output: t.any() }, () =>
  ({ opened: heard, pid: process.pid, space: readlinkSync("/proc/self/ns/pid") }));
plugin.hook("session.opened@v1", {}, () => heard++);
plugin.hook("channel.message.in@v1", {}, async (payload) => payload.text === "leave me" ? undefined : { ...payload, text: payload.text + "!" });
plugin.hook("tool.before@v1", { priority: 7, deadlineMs: 10000 }, (payload, ctx): Verdict<ToolBeforeV1> => {
  const changed = (text: string) => ({ allow: true, payload: { ...payload, args: { ...payload.args, text } } });
  switch (payload.args["text"]) {
    case "refuse": return { allow: false, reason: "not for " + ctx.agent };
    case "rewrite": return changed("rewritten");
    case "much": return changed("a".repeat(10 << 20));
    case "nonsense": return [true] as unknown as Verdict<ToolBeforeV1>;
    case "fail": throw new PluginError("it did not look", { code: "NO_RULES" });
    case "crash": process.exit(9);
    case "hang": writeFileSync("hangs", ""); for (;;);
  }
  return { allow: true };
});

plugin.run();
`

func TestProcessesHearOfEvents(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	golang, python, typescript := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, golang, "manifest.yaml", "name: guardian_go\nrunner: {kind: process, command: ["+strconv.Quote(self)+", guardian]}"+guardianHead)
	write(t, python, "manifest.yaml", "name: guardian_python\nrunner: {kind: process, entry: plugin.py}"+guardianHead, "plugin.py", guardianPython)
	write(t, typescript, "manifest.yaml", "name: guardian_typescript\nrunner: {kind: process, entry: plugin.ts}"+guardianHead, "plugin.ts", guardianTypescript)
	dirs := map[string]string{"guardian_go": golang}
	for interpreter, g := range map[string][2]string{"python3": {"guardian_python", python}, "node": {"guardian_typescript", typescript}} {
		if _, err := exec.LookPath(interpreter); err != nil {
			t.Logf("%s is not installed: %s is left out", interpreter, g[0])
			continue
		}
		dirs[g[0]] = g[1]
	}
	a := agentHome(t, newTalker(t), "")
	register(t, a, upper(t), true)
	whole := t
	var hangs sync.WaitGroup // for their deadlines, all at the same time
	for name, dir := range dirs {
		t.Run(name, func(t *testing.T) {
			id := "agent-of-" + strings.TrimPrefix(name, "guardian_")
			hire(t, a, id, agent.Settings{})
			register(t, a, dir, false)
			assign(t, a, id, name, true)
			assign(t, a, id, "upper", true)
			i, err := a.Agents.Instance(t.Context(), "local", id)
			if err != nil {
				t.Fatal(err)
			}
			guarded(t, a.Kernel.Call, i, id, name)
			if t.Failed() {
				return
			}
			hangs.Go(func() {
				v, err := askGuardian(context.Background(), i, "hang")
				if err != nil || !failedWith(v, name, plugin.CodeTimeout) {
					whole.Errorf("%s, which does not answer: %+v, %v", name, v, err)
				}
			})
		})
	}
	hangs.Wait()
	for name := range dirs {
		i, err := a.Agents.Instance(t.Context(), "local", "agent-of-"+strings.TrimPrefix(name, "guardian_"))
		if err != nil {
			t.Fatal(err)
		}
		healthy(t, i)
	}
}

// askGuardian emits a veto event with a text in its arguments.
func askGuardian(ctx context.Context, i *agent.Instance, text string) (event.Verdict, error) {
	e, _ := event.Find(event.ToolBefore)
	p, err := event.NewPayload(e.Example)
	if err != nil {
		return event.Verdict{}, err
	}
	return i.Bus().Veto(ctx, event.ToolBefore, p.With("args", fmt.Sprintf(`{"text":%q}`, text)))
}

// guarded puts a guardian to the test.
func guarded(t *testing.T, call func(context.Context, plugin.Call) (plugin.Result, error), i *agent.Instance, id, name string) {
	ctx := t.Context()
	use := func(operation, input string) (plugin.Result, error) {
		return call(ctx, plugin.Call{Tenant: "local", Principal: theOwner, Agent: id, Origin: plugin.OriginAgent, Operation: operation, Input: json.RawMessage(input), Fresh: true})
	}
	example := func(name string) *event.Payload {
		e, _ := event.Find(name)
		p, err := event.NewPayload(e.Example)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	// A listener hears, in the process that serves the calls of the agent.
	if err := i.Bus().Emit(ctx, event.SessionOpened, example(event.SessionOpened)); err != nil {
		t.Fatal(err)
	}
	type sight struct {
		Opened, PID int
		Space       string
	}
	seen := func() (s sight) {
		res, err := use(name+"/seen", `{}`)
		if err != nil || json.Unmarshal(res.Data, &s) != nil {
			t.Fatalf("%s, %v", res.Data, err)
		}
		return s
	}
	if s := seen(); s.Opened != 1 {
		t.Errorf("it heard of %d sessions", s.Opened)
	}

	// A transform rewrites, or leaves alone.
	in := example(event.ChannelMessageIn).With("metadata", `{"n":9007199254740993}`)
	p, err := i.Bus().Transform(ctx, event.ChannelMessageIn, in)
	if err != nil || p.String("text") != "Where is my order?!" {
		t.Errorf("it made %s, %v", p.Text(), err)
	} else if n, _ := p.Field("metadata"); n != `{"n":9007199254740993}` {
		t.Errorf("the rest became %s", n)
	}
	in = in.With("text", `"leave me"`)
	if p, err := i.Bus().Transform(ctx, event.ChannelMessageIn, in); err != nil || p.Text() != in.Text() {
		t.Errorf("it made %s, %v", p.Text(), err)
	}

	// A veto allows, refuses, and rewrites.
	if res, err := use("upper/upper", `{"text":"a"}`); err != nil || string(res.Data) != `"A"` {
		t.Errorf("%s, %v", res.Data, err)
	}
	if res, err := use("upper/upper", `{"text":"rewrite"}`); err != nil || string(res.Data) != `"REWRITTEN"` {
		t.Errorf("%s, %v", res.Data, err)
	}
	_, err = use("upper/upper", `{"text":"refuse"}`)
	if plugin.CodeOf(err) != plugin.CodeHookVetoed || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "not for "+id) {
		t.Errorf("a refusal: %v", err)
	}

	// One that fails is told, and the next event finds it well.
	for text, codes := range map[string][]plugin.Code{
		"fail": {plugin.CodePluginError}, "nonsense": {plugin.CodePluginError}, "crash": {plugin.CodeCrashed},
		// Under the race detector a Go plugin may be at 10 MB longer than its deadline.
		"much": {plugin.CodeLimitExceeded, plugin.CodeMalformedResponse, plugin.CodeTimeout},
	} {
		v, err := askGuardian(ctx, i, text)
		if err != nil || !failedWith(v, name, codes...) {
			t.Errorf("%s: %+v, %v", text, v, err)
		}
		healthy(t, i)
	}

	// So is one that is killed while it is asked.
	s := seen()
	pid := outside(t, s.Space, s.PID)
	type answer struct {
		event.Verdict
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		v, err := askGuardian(ctx, i, "hang")
		answered <- answer{v, err}
	}()
	testwait.Until(t, "the guardian hangs", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d/cwd/hangs", pid))
		return err == nil
	})
	_ = syscall.Kill(pid, syscall.SIGKILL)
	if v := testwait.Receive(t, "the answer for a killed guardian", answered); v.err != nil || !failedWith(v.Verdict, name, plugin.CodeCrashed) {
		t.Errorf("killed: %+v, %v", v.Verdict, v.err)
	}
	healthy(t, i)
}

// healthy waits until a guardian answers again.
func healthy(t *testing.T, i *agent.Instance) {
	t.Helper()
	testwait.Until(t, "the guardian refuses", func() bool {
		v, err := askGuardian(t.Context(), i, "refuse")
		return err == nil && !v.Allow && len(v.Failed) == 0
	})
}

// failedWith reports whether a guardian, and no other plugin, failed with one of the codes.
func failedWith(v event.Verdict, name string, codes ...plugin.Code) bool {
	return len(v.Failed) == 1 && v.Failed[0].Plugin == name && v.Failed[0].Guards && slices.Contains(codes, plugin.CodeOf(v.Failed[0].Err))
}

// outside returns by which number the host knows a process of a PID namespace.
func outside(t *testing.T, space string, number int) int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if its, err := os.Readlink("/proc/" + e.Name() + "/ns/pid"); err != nil || its != space {
			continue
		}
		status, _ := os.ReadFile("/proc/" + e.Name() + "/status")
		for line := range strings.Lines(string(status)) {
			if f := strings.Fields(line); f[0] == "NSpid:" && f[len(f)-1] == strconv.Itoa(number) {
				if pid, err := strconv.Atoi(e.Name()); err == nil {
					return pid
				}
			}
		}
	}
	t.Fatalf("process %d of %s is not there", number, space)
	return 0
}
