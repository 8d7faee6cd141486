// Command suite runs the tests of this repository in parts.
//
//	make test                    # what every change has to pass
//	make test-race               # the race detector
//	make test-long               # campaigns and measurements
//	make test-long PART=hostile  # one part
//	make test-long LIST=1        # print the parts
//	make check PKG=./plugin      # while you work
//
// The Makefile sets the flags of Go and starts this command.
//
// Each part prints one line with its result and time. The last lines name each
// failed test with its package and its output. With -json, standard output has
// one JSON object for each part and one for the whole run.
//
// Exit status: 0 if no part failed, 1 if one failed, 2 if the arguments are
// wrong, 130 if the run was interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("suite", flag.ContinueOnError)
	set := flags.String("set", "test", "parts to run: test, race, long or check")
	only := flags.String("part", "", "names of the parts to run, separated by commas (default: all)")
	list := flags.Bool("list", false, "print the parts of the set, and run none")
	asJSON := flags.Bool("json", false, "print one JSON object for each part and one for the run")
	fresh := flags.Bool("fresh", false, "run every Go test again, also if a cached result is valid")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	parts, err := chooseParts(*set, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		return 2
	}
	if *list {
		printParts(os.Stdout, parts)
		return 0
	}
	if flags.NArg() > 0 && *set != "check" {
		fmt.Fprintf(os.Stderr, "suite: unexpected argument %q: only -set check takes packages\n", flags.Arg(0))
		return 2
	}
	env, err := newEnvironment(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		return 1
	}
	defer env.close()
	env.fresh, env.packages = *fresh, flags.Args()
	r := newReport(os.Stdout, *asJSON)
	runParts(ctx, env, parts, r)
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "suite: interrupted")
		return 130
	}
	return r.finish()
}

// chooseParts returns the parts of a set. If only is not empty, it returns the
// parts named there and the parts that they need.
func chooseParts(set, only string) ([]part, error) {
	sets := map[string]func() []part{"test": testParts, "race": raceParts, "long": longParts, "check": checkParts}
	make, ok := sets[set]
	if !ok {
		return nil, fmt.Errorf("unknown set %q: use test, race, long or check", set)
	}
	parts := make()
	if only == "" {
		return parts, nil
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no part %q in set %s: use one of %s", name, set, strings.Join(partNames(parts), ", "))
		}
		for ; i >= 0; i = slices.IndexFunc(parts, func(p part) bool { return p.name == parts[i].after }) {
			if wanted[parts[i].name] {
				break
			}
			wanted[parts[i].name] = true
		}
	}
	if len(wanted) == 0 {
		return nil, errors.New("-part names no part")
	}
	return slices.DeleteFunc(parts, func(p part) bool { return !wanted[p.name] }), nil
}
