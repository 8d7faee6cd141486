//go:build !linux

// Command cage is the launcher of package sandbox, which works on Linux only.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "cage works on Linux only")
	os.Exit(2)
}
