// Command pack compresses programs for the host to carry: make build runs it before it
// builds the host.
//
//	pack PROGRAM PACKED [PROGRAM PACKED]...
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/mortise-dev/mortise/internal/base/carried"
)

func main() {
	args := os.Args[1:]
	if len(args) == 0 || len(args)%2 != 0 {
		fmt.Fprintln(os.Stderr, "usage: pack PROGRAM PACKED [PROGRAM PACKED]...")
		os.Exit(2)
	}
	for ; len(args) > 0; args = args[2:] {
		if err := pack(args[0], args[1]); err != nil {
			fmt.Fprintf(os.Stderr, "packing %s: %v\n", args[0], err)
			os.Exit(1)
		}
	}
}

func pack(program, to string) error {
	code, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	packed, err := carried.Pack(code)
	if err != nil {
		return err
	}
	if had, err := os.ReadFile(to); err == nil && bytes.Equal(had, packed) {
		return nil // and keeps its time: results of tests that read it stay cached
	}
	return os.WriteFile(to, packed, 0o644)
}
