package event

import (
	"context"
	"fmt"
	"testing"
)

// kilobyte is a payload of about 1 KB with 20 properties.
func kilobyte() *Payload {
	text := `{"agentId":"support","sessionId":"sess_2f6c19d0a4be","at":"2026-03-02T09:00:06Z","toolName":"orders/find","toolCallId":"call_1"`
	for i := range 15 {
		text += fmt.Sprintf(`,"property_%02d":"a value of some length, with an \"escape\" %02d"`, i, i)
	}
	p, err := NewPayload(text + "}")
	if err != nil {
		panic(err)
	}
	return p
}

var sink any

// BenchmarkFloor is what an event costs at the very least: a slice of functions.
func BenchmarkFloor(b *testing.B) {
	p := kilobyte()
	for _, n := range []int{0, 1, 10, 100} {
		heard := 0
		functions := make([]func(context.Context, *Payload) error, n)
		for i := range functions {
			functions[i] = func(context.Context, *Payload) error { heard++; return nil }
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			ctx := context.Background()
			for b.Loop() {
				for _, f := range functions {
					if f(ctx, p) != nil {
						b.Fatal()
					}
				}
			}
		})
		sink = heard
	}
}

func BenchmarkEmit(b *testing.B) {
	p := kilobyte()
	for _, n := range []int{0, 1, 10, 100} {
		heard := 0
		bus := full(b, ToolAfter, n, func(s *Subscription) {
			s.Listen = func(context.Context, *Payload) error { heard++; return nil }
		})
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			ctx := b.Context()
			for b.Loop() {
				if err := bus.Emit(ctx, ToolAfter, p); err != nil {
					b.Fatal(err)
				}
			}
		})
		sink = heard
	}
}

func BenchmarkTransform(b *testing.B) {
	p := kilobyte()
	for _, n := range []int{0, 1, 10, 100} {
		bus := full(b, PromptAssemble, n, func(s *Subscription) {
			s.Transform = func(context.Context, *Payload) (*Payload, error) { return nil, nil }
		})
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			ctx := b.Context()
			for b.Loop() {
				if _, err := bus.Transform(ctx, PromptAssemble, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVeto(b *testing.B) {
	p := kilobyte()
	for _, n := range []int{0, 1, 10, 100} {
		bus := full(b, ToolBefore, n, func(s *Subscription) {
			s.Veto = func(context.Context, *Payload) (Verdict, error) { return Verdict{Allow: true}, nil }
		})
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			ctx := b.Context()
			for b.Loop() {
				if v, err := bus.Veto(ctx, ToolBefore, p); err != nil || !v.Allow {
					b.Fatal(v, err)
				}
			}
		})
	}
}

// full returns a bus with n handlers of an event.
func full(tb testing.TB, event string, n int, set func(*Subscription)) *Bus {
	tb.Helper()
	bus := NewBus("agent", Options{})
	tb.Cleanup(bus.Close)
	for i := range n {
		s := Subscription{Event: event, Plugin: fmt.Sprintf("plugin_%d", i%10)}
		set(&s)
		if _, err := bus.On(s); err != nil {
			tb.Fatal(err)
		}
	}
	return bus
}

func BenchmarkPayload(b *testing.B) {
	p := kilobyte()
	b.Run("NewPayload", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := NewPayload(p.text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Index", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sink = scan(p.text)
		}
	})
	b.Run("Field", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := p.Field("property_14"); !ok {
				b.Fatal()
			}
		}
	})
	b.Run("String", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if p.String("toolName") != "orders/find" {
				b.Fatal()
			}
		}
	})
	b.Run("With", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sink = p.With("toolName", `"orders/list"`)
		}
	})
	b.Run("FieldThenWith", func(b *testing.B) { // of a payload that was never asked
		b.ReportAllocs()
		for b.Loop() {
			fresh := &Payload{text: p.text}
			if fresh.String("toolName") != "orders/find" {
				b.Fatal()
			}
			sink = fresh.With("toolName", `"orders/list"`)
		}
	})
}
