package process_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
)

// payload is 1 KB of 20 properties.
func payload() string {
	var b strings.Builder
	for i := range 20 {
		b.WriteString(`,"property_` + string(rune('a'+i)) + `":"` + strings.Repeat("v", 34) + `"`)
	}
	return "{" + b.String()[1:] + "}"
}

func BenchmarkWarmCall(b *testing.B) {
	r := newRunner(b, process.Options{PerTenant: 1})
	echo, c := target("broad", "echo"), call(payload())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Run(b.Context(), echo, c, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWarmCall16(b *testing.B) {
	r := newRunner(b, process.Options{PerTenant: 1})
	echo := target("broad", "echo")
	b.SetParallelism(8) // of 2 CPUs
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		c := call(payload())
		for pb.Next() {
			if _, err := r.Run(b.Context(), echo, c, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkStandbyCall(b *testing.B) {
	r := newRunner(b, process.Options{Standby: true})
	echo, c := target("good", "echo", isolated(plugin.IsolationCall)), call(payload())
	for b.Loop() {
		if _, err := r.Run(b.Context(), echo, c, nil); err != nil {
			b.Fatal(err)
		}
	}
}
