// Command mortise is the host: one binary that runs plugins under governance.
package main

import (
	"os"

	_ "github.com/mortise-dev/mortise/internal/base/startup"
	"github.com/mortise-dev/mortise/internal/surface/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
