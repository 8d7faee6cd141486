package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"
)

// A table is what one measurement found.
type table struct {
	Title string `json:"title"`
	Unit  string `json:"unit"`
	Rows  []row  `json:"rows"`

	Absent []string `json:"absent,omitempty"` // contestants that cannot take part here
}

// A row is one contestant.
type row struct {
	Name   string  `json:"name"`
	Figure float64 `json:"figure"`          // in the table's unit
	Ratio  float64 `json:"ratio,omitempty"` // to the floor of the same round; 0 where there is no floor
	Target string  `json:"target,omitempty"`
	Met    bool    `json:"met,omitempty"` // means something where there is a target
}

func (t table) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n\n", t.Title)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight|tabwriter.TabIndent)
	fmt.Fprintf(tw, "%s\tx floor\ttarget\t\t  contestant\n", t.Unit)
	for _, r := range t.Rows {
		ratio, verdict := "", ""
		if r.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", r.Ratio)
		}
		if r.Target != "" {
			verdict = "missed"
			if r.Met {
				verdict = "met"
			}
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t  %s\n", number(r.Figure), ratio, r.Target, verdict, r.Name)
	}
	for _, name := range t.Absent {
		fmt.Fprintf(tw, "not run\t\t\t\t  %s\n", name)
	}
	_ = tw.Flush()
}

// number prints three significant digits, and thousands whole.
func number(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}

// rounds holds one figure of each contestant for each round: rounds[i][j] is
// the j-th contestant's in the i-th round. The first contestant is the floor.
type rounds [][]float64

// median returns a contestant's median over the rounds, and that of its ratio
// to the floor of the same round.
func (r rounds) median(contestant int) (figure, ratio float64) {
	var figures, ratios []float64
	for _, round := range r {
		figures = append(figures, round[contestant])
		ratios = append(ratios, round[contestant]/round[0])
	}
	return median(figures), median(ratios)
}

func median(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(xs))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// p50 returns the median of durations, in units of unit. It sorts them.
func p50(ds []time.Duration, unit time.Duration) float64 {
	slices.Sort(ds)
	return float64(ds[len(ds)/2]) / float64(unit)
}

// A target is what a contestant has to keep.
type target struct {
	text string
	met  func(figure, ratio float64) bool
}

func atMostRatio(limit float64) target {
	return target{fmt.Sprintf("<= %gx", limit), func(_, ratio float64) bool { return ratio <= limit }}
}

func atLeastRatio(limit float64) target {
	return target{fmt.Sprintf(">= %gx", limit), func(_, ratio float64) bool { return ratio >= limit }}
}

func atMost(limit float64) target {
	return target{fmt.Sprintf("<= %g", limit), func(figure, _ float64) bool { return figure <= limit }}
}

func atLeast(limit float64) target {
	return target{fmt.Sprintf(">= %g", limit), func(figure, _ float64) bool { return figure >= limit }}
}

// judged returns the row of a contestant, held against its target if it has one.
func judged(name string, figure, ratio float64, t target) row {
	r := row{Name: name, Figure: figure, Ratio: ratio, Target: t.text}
	r.Met = t.met != nil && t.met(figure, ratio)
	return r
}
