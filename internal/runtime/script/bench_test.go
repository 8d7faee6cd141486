package script

import (
	"context"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/event"
)

// A payload of about 1 KB, as a busy session has them.
const kilobyte = `{"agentId":"support","sessionId":"sess_2f6c19d0a4be","at":"2026-03-02T09:00:06Z","toolName":"bash","toolCallId":"call_01A9","args":{"command":"go test ./... -run TestHandlers -count=1 2>&1 | tail -50","timeout":120000,"cwd":"/home/dev/projects/acme-api","description":"Run the handler tests and show the tail"},"sections":[{"key":"project","content":"This repository holds the HTTP API. Handlers live in internal/handlers and follow the table driven test style."},{"key":"rules","content":"Never push to main. Keep commits small. Run the linters before handing the work to the reviewer."},{"key":"recent","content":"Edited handlers_test.go, routes.go; 3 failing tests left in TestHandlers/patch and TestHandlers/delete."}],"session":{"id":"0193-4c1e-7d55-aa31","depth":2,"user":{"name":"dev","roles":["admin","writer"],"email":"dev@example.com"}},"flags":{"dryRun":false,"interactive":true,"budget":0.75},"tags":["ci","go","handlers","retry"],"text":"hello","meta":{"trace":"4bf92f3577b34da6a3ce929d0e0e4736","span":"00f067aa0ba902b7"}}`

const threeFields = `export function register(ctx) {
  ctx.bus.on("tool.before@v1", (e) => ({ allow: !(e.toolName === "bash" && e.args.cwd.startsWith("/etc") && e.session.id === "x") }));
}`

func BenchmarkVetoReadsThreeFields(b *testing.B) {
	veto := opened(b, threeFields, Environment{}).Subscriptions()[0].Veto
	p, ctx := payload(b, kilobyte), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if v, err := veto(ctx, p); err != nil || !v.Allow {
			b.Fatal(v, err)
		}
	}
}

// A goVeto is what a script stands in for: the floor.
type goVeto interface {
	veto(ctx context.Context, p *event.Payload) (event.Verdict, error)
}

type threeFieldsInGo struct{}

func (threeFieldsInGo) veto(_ context.Context, p *event.Payload) (event.Verdict, error) {
	args, _ := p.Field("args")
	session, _ := p.Field("session")
	return event.Verdict{Allow: p.String("toolName") != "bash" || len(args) > 0 && len(session) > 0}, nil
}

func BenchmarkFloorGoThroughAnInterface(b *testing.B) {
	var v goVeto = threeFieldsInGo{}
	p, ctx := payload(b, kilobyte), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if v, err := v.veto(ctx, p); err != nil || !v.Allow {
			b.Fatal(v, err)
		}
	}
}

// BenchmarkVetoOfANewPayload has an event of its own for every call, so that no call
// finds what is cached beside a payload. The floor beside it makes the payload.
func BenchmarkVetoOfANewPayload(b *testing.B) {
	veto := opened(b, threeFields, Environment{}).Subscriptions()[0].Veto
	ctx := context.Background()
	for _, c := range []struct {
		name string
		call bool
	}{{"floor", false}, {"veto", true}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, err := event.NewPayload(kilobyte)
				if err != nil {
					b.Fatal(err)
				}
				if _, found := p.Field("toolName"); !found {
					b.Fatal("no toolName")
				}
				if !c.call {
					continue
				}
				if v, err := veto(ctx, p); err != nil || !v.Allow {
					b.Fatal(v, err)
				}
			}
		})
	}
}

func BenchmarkListenerOfOneField(b *testing.B) {
	listen := opened(b, `export function register(ctx) { ctx.bus.on("tool.after@v1", (e) => { e.toolName === "x" }) }`, Environment{}).Subscriptions()[0].Listen
	p, ctx := payload(b, kilobyte), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := listen(ctx, p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTransformPatchesOneField(b *testing.B) {
	transform := opened(b, `export function register(ctx) { ctx.bus.on("session.message.received@v1", (e) => ({ ...e, text: e.text + "!" })) }`, Environment{}).Subscriptions()[0].Transform
	p, ctx := payload(b, kilobyte), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if q, err := transform(ctx, p); err != nil || q.String("text") != "hello!" {
			b.Fatal(err)
		}
	}
}

func BenchmarkTransformWritesMemberByMember(b *testing.B) { // a copy that the engine fills
	transform := opened(b, `export function register(ctx) { ctx.bus.on("session.message.received@v1", (e) => Object.assign({}, e, { text: e.text + "!" })) }`, Environment{}).Subscriptions()[0].Transform
	p, ctx := payload(b, kilobyte), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if q, err := transform(ctx, p); err != nil || q.String("text") != "hello!" {
			b.Fatal(err)
		}
	}
}

func BenchmarkTenHandlersInTenEngines(b *testing.B) {
	var vetoes [10]func(context.Context, *event.Payload) (event.Verdict, error)
	for i := range vetoes {
		vetoes[i] = opened(b, threeFields, Environment{}).Subscriptions()[0].Veto
	}
	p, ctx := payload(b, kilobyte), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		for _, veto := range vetoes {
			if v, err := veto(ctx, p); err != nil || !v.Allow {
				b.Fatal(v, err)
			}
		}
	}
}

func BenchmarkOpenAndClose(b *testing.B) {
	program := compiled(b, threeFields)
	for b.Loop() {
		instance, err := Open(context.Background(), program, Environment{})
		if err != nil {
			b.Fatal(err)
		}
		instance.Close()
	}
}
