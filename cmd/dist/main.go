// Command dist makes a release: archives of the host for each system, bundles for Claude Desktop, a
// plugin for Claude Code, and the sums of them all.
//
// Every byte follows from the sources and the Go toolchain: the same sources give the same files in
// any directory, on any machine and at any time. Nothing in the source directory is written, other
// than the release.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	out := flags.String("o", "dist", "directory to write, which is empty or not there")
	source := flags.String("source", ".", "root of the sources")
	only := flags.String("targets", "", "systems to build for, such as linux/amd64,darwin/arm64; all where it is empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag: dist takes -o, -source and -targets", flags.Arg(0))
	}
	targets, err := parseTargets(*only)
	if err != nil {
		return err
	}
	root, err := filepath.Abs(*source)
	if err != nil {
		return err
	}
	made, err := release{source: root, targets: targets, say: func(line string) { fmt.Fprintln(os.Stderr, line) }}.write(ctx, *out)
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(made, "\n"))
	return nil
}
