package sandbox_test

import (
	"os"
	"testing"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
)

// BenchmarkStart is the price of a cage: a program that ends at once, without
// one and with.
func BenchmarkStart(b *testing.B) {
	for _, mode := range []sandbox.Mode{sandbox.Off, sandbox.BestEffort} {
		b.Run(string(mode), func(b *testing.B) {
			s := newSandbox(b, mode)
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer null.Close()
			spec := shell(b, "exit 0")
			spec.Scratch, spec.Limits = b.TempDir(), usual
			for b.Loop() {
				p, err := s.Start(b.Context(), spec, sandbox.Files{Stdin: null, Stdout: null, Stderr: null})
				if err != nil {
					b.Fatal(err)
				}
				if state := p.Wait(); !state.OK() {
					b.Fatal(state)
				}
				p.Release()
			}
		})
	}
}
