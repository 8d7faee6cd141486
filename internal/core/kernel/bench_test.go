package kernel_test

import (
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
)

// BenchmarkPureTool is what the kernel itself costs a warm call: a tool without effects,
// a runner that answers at once, an entry that is written behind.
func BenchmarkPureTool(b *testing.B) {
	k := newBundle(b, policy.Default, target(b, "text.count", "words"))
	inputs := make([]string, 64)
	for i := range inputs {
		inputs[i] = fmt.Sprintf(`{"n":%d}`, i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		call := asking("text.count/words", inputs[i%len(inputs)])
		call.Fresh = true // no answer of the cache
		if _, err := k.Call(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}
