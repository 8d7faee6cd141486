// Command speed runs the benchmarks whose figures do not depend on the machine, and holds them
// against those that are kept in baseline.txt: allocations and bytes of an iteration, and
// ratios of two benchmarks that run side by side.
//
//	go run ./test/speed                # all of them
//	go run ./test/speed -allocations   # without the ratios, which a busy machine falsifies
//	go run ./test/speed -update        # write what is measured into baseline.txt
//
// It ends with status 1 where a figure is more than 15 % worse than the one that is kept, a
// ratio more than half.
package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A bench is a benchmark and how often it iterates.
type bench struct {
	pkg, name string
	times     string
}

// counted are the benchmarks whose allocations and bytes are held.
var counted = []bench{
	{"internal/core/kernel", "BenchmarkPureTool", "5000x"},
	{"internal/core/ledger", "BenchmarkRecordSparse", "5000x"},
	{"internal/core/ledger", "BenchmarkRecordBehind", "20000x"},
	{"internal/core/policy", "BenchmarkDecide/50/tool", "5000x"},
	{"internal/core/schema", "BenchmarkCheck", "5000x"},
	{"internal/base/canon", "BenchmarkHash/ordered", "5000x"},
	{"internal/runtime/process", "BenchmarkWarmCall$", "5000x"},
	{"protocol", "BenchmarkParseFrame", "5000x"},
}

// A ratio is the time of one benchmark in that of another of the same package.
type ratio struct {
	pkg, name, floor string
	times            string
}

var ratios = []ratio{
	{"internal/base/event", "BenchmarkEmit/10", "BenchmarkFloor/10", "200ms"},
	{"internal/store/sqlite", "BenchmarkWrite16", "BenchmarkFloor16", "1s"},
}

// Margins of loss.
const (
	most      = 1.15
	mostRatio = 1.5
)

// A figure is one that is held.
type figure struct {
	name  string
	value float64
}

//go:embed baseline.txt
var baseline string

func main() {
	allocations := flag.Bool("allocations", false, "leave out the ratios, which a busy machine falsifies")
	update := flag.Bool("update", false, "write what is measured into test/speed/baseline.txt")
	flag.Parse()
	err := run(*allocations, *update)
	if err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func run(allocations, update bool) error {
	kept, err := read(baseline)
	if err != nil {
		return err
	}
	var figures []figure
	for _, b := range counted {
		found, err := measure(b)
		if err != nil {
			return err
		}
		for _, one := range found {
			figures = append(figures, figure{b.pkg + " " + one.name + " allocs", one.allocs}, figure{b.pkg + " " + one.name + " bytes", one.bytes})
		}
	}
	if !allocations {
		for _, r := range ratios {
			found, err := r.measure()
			if err != nil {
				return err
			}
			figures = append(figures, found)
		}
	}
	if update {
		return write(figures)
	}
	return hold(figures, kept)
}

// hold prints each figure beside the one that is kept, and returns which are worse.
func hold(figures []figure, kept map[string]float64) error {
	var worse []string
	fmt.Printf("%-72s %10s %10s\n", "FIGURE", "KEPT", "NOW")
	for _, f := range figures {
		before, known := kept[f.name]
		mark := ""
		switch {
		case !known:
			mark = "  new: run with -update"
			worse = append(worse, f.name+" is not kept yet")
		case f.value > before*margin(f.name)+rounding(f.name):
			mark = "  worse"
			worse = append(worse, fmt.Sprintf("%s: %.4g, kept %.4g", f.name, f.value, before))
		}
		fmt.Printf("%-72s %10.4g %10.4g%s\n", f.name, before, f.value, mark)
	}
	if len(worse) > 0 {
		return fmt.Errorf("%d figures are worse than test/speed/baseline.txt has them: %s", len(worse), strings.Join(worse, "; "))
	}
	return nil
}

// rounding is what a figure may differ by where it is small.
func rounding(name string) float64 {
	switch {
	case strings.HasSuffix(name, " bytes"):
		return 64
	case strings.HasSuffix(name, " allocs"):
		return 1
	}
	return 0
}

func margin(name string) float64 {
	if strings.HasSuffix(name, " ratio") {
		return mostRatio
	}
	return most
}

// A line is what go test says of one benchmark.
type line struct {
	name                 string
	nanos, bytes, allocs float64
}

var benchLine = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// measure runs a benchmark, and returns its lines.
func measure(b bench) ([]line, error) {
	cmd := exec.Command("go", "test", "./"+b.pkg, "-run", "^$", "-bench", "^"+b.name, "-benchtime", b.times, "-benchmem", "-count", "1")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w\n%s", b.name, b.pkg, err, out)
	}
	var all []line
	scan := bufio.NewScanner(bytes.NewReader(out))
	for scan.Scan() {
		m := benchLine.FindStringSubmatch(scan.Text())
		if m == nil {
			continue
		}
		l := line{name: m[1]}
		parts := strings.Fields(m[2])
		for i := 0; i+1 < len(parts); i += 2 {
			value, err := strconv.ParseFloat(parts[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %q is no figure", l.name, parts[i])
			}
			switch parts[i+1] {
			case "ns/op":
				l.nanos = value
			case "B/op":
				l.bytes = value
			case "allocs/op":
				l.allocs = value
			}
		}
		all = append(all, l)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no benchmark %s\n%s", b.pkg, b.name, out)
	}
	return all, nil
}

// measure returns the least ratio of three rounds.
func (r ratio) measure() (figure, error) {
	least := 0.0
	for range 3 {
		mine, err := measure(bench{r.pkg, r.name, r.times})
		if err != nil {
			return figure{}, err
		}
		floor, err := measure(bench{r.pkg, r.floor, r.times})
		if err != nil {
			return figure{}, err
		}
		if floor[0].nanos <= 0 {
			return figure{}, errors.New(r.floor + " took no time")
		}
		if now := mine[0].nanos / floor[0].nanos; least == 0 || now < least {
			least = now
		}
	}
	return figure{r.pkg + " " + r.name + " of " + r.floor + " ratio", least}, nil
}

// read returns the figures of a text of lines, each a name and a figure.
func read(text string) (map[string]float64, error) {
	kept := map[string]float64{}
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if l == "" {
			continue
		}
		at := strings.LastIndexByte(l, ' ')
		value, err := strconv.ParseFloat(l[at+1:], 64)
		if err != nil || at < 0 {
			return nil, fmt.Errorf("baseline.txt: %q is no name and figure", l)
		}
		kept[strings.TrimSpace(l[:at])] = value
	}
	return kept, nil
}

func write(figures []figure) error {
	var text strings.Builder
	for _, f := range figures {
		fmt.Fprintf(&text, "%s %.4g\n", f.name, f.value)
	}
	return os.WriteFile(filepath.Join("test", "speed", "baseline.txt"), []byte(text.String()), 0o644)
}
