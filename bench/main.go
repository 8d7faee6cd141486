// Command bench measures Mortise beside its floors and peers, in the rows of
// the README: warm calls (A), cold calls (B), hooks within the host (C), durable
// entries (D), an Event Mill tool in a session (E), commands from start to end (G), calls over HTTP (H), a knowledge base (K), calls over MCP (M), one real
// plugin on a large file (P), the cage (S).
//
//	go run . [-quick] [-only A,B,C,D,E,G,H,K,M,P,S] [-json FILE]
//	go run . -profile A|H|M [-plugin-profile] [-out DIR]
//
// Absolute figures drift with the machine. Contestants therefore take turns in
// short rounds, each is held against the floor of the same round, and what is
// printed is the median of the rounds.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// A section is one table.
type section struct {
	name string
	run  func(ctx context.Context, l *lab) ([]table, error)
}

var sections = []section{{"A", warm}, {"B", cold}, {"C", hooks}, {"D", durable}, {"E", mills}, {"G", starts}, {"H", web}, {"K", knowledge}, {"M", protocolTables}, {"P", patterns}, {"S", caged}, {"S3", beside}}

func main() {
	if len(os.Args) > 1 {
		if role := roles[os.Args[1]]; role != nil {
			if err := role(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	log.SetOutput(io.Discard) // go-plugin's multiplexer complains there when its peer is killed

	quick := flag.Bool("quick", false, "a short run that only shows that everything works")
	only := flag.String("only", "", "the tables to make, such as A,B (default all)")
	file := flag.String("json", "", "write the figures to this `file` as well")
	profile := flag.String("profile", "", "instead of measuring, profile the host's side of this `table` (A, H, M)")
	inside := flag.Bool("plugin-profile", false, "with -profile: profile the Go plugin too")
	out := flag.String("out", "profiles", "with -profile: the `directory` to write to")
	soaked := flag.Int("soak", 0, "instead of measuring, make so many `calls` of a host with 200 plugins and print its memory")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	l, err := newLab(ctx, *quick)
	if err == nil {
		switch {
		case *soaked > 0:
			err = soak(ctx, l, *soaked)
		case *profile == "":
			err = measure(ctx, l, *only, *file)
		case *profile == "H":
			err = profileWeb(ctx, l, *out)
		case *profile == "M":
			err = profileProtocol(ctx, l, *out)
		case *profile == "A":
			err = profileWarm(ctx, l, *out, *inside)
		default:
			err = fmt.Errorf("-profile %s: only A, H and M can be profiled", *profile)
		}
		l.close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, l *lab, only, file string) error {
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' || r == ' ' })
	for _, name := range wanted {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			return fmt.Errorf("-only %s: there is no table %s", only, name)
		}
	}
	var all []table
	var failures []error
	for _, s := range sections {
		if len(wanted) > 0 && !slices.Contains(wanted, s.name) {
			continue
		}
		tables, err := s.run(ctx, l)
		if err != nil {
			failures = append(failures, fmt.Errorf("table %s: %w", s.name, err))
		}
		for _, t := range tables {
			t.print(os.Stdout)
		}
		all = append(all, tables...)
	}
	if file != "" {
		raw, err := json.MarshalIndent(map[string]any{"at": time.Now().UTC().Truncate(time.Second), "quick": l.quick, "tables": all}, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, append(raw, '\n'), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(failures...)
}
