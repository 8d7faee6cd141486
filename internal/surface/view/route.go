package view

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// maxShown is how many exclusions a person is shown.
const maxShown = 10

// Route shows a route to a person.
func Route(w, errs io.Writer, a host.Route, everything bool) error {
	fmt.Fprintf(w, "pillar: %s, because %s\n", terminal.Safe(a.Pillar), terminal.Safe(a.PillarReason))
	fmt.Fprintf(w, "about:  %s\n\n", terminal.Dash(terminal.Safe(strings.Join(a.Facets, " "))))
	if a.Cut {
		Say(errs, "mortise: only the first %d bytes of the text were read", host.MaxRouteText)
	}
	if len(a.Included) == 0 {
		fmt.Fprintln(w, "nothing fits")
	} else {
		t := fitted(w, OnScreen, "RANK", "OPERATION", "SCORE", "WHY")
		for i, choice := range a.Included {
			t.Row(fmt.Sprint(i+1), choice.Operation, points(choice.Score), why(choice))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(a.Excluded) > 0 {
		fmt.Fprintln(w)
		shown := a.Excluded
		if !everything {
			shown = shown[:min(maxShown, len(shown))]
		}
		t := fitted(w, OnScreen, "LEFT OUT", "SCORE", "WHY")
		for _, e := range shown {
			t.Row(e.Operation, points(e.Score), e.Reason)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if rest := len(a.Excluded) - len(shown); rest > 0 {
			fmt.Fprintf(w, "and %d more: --all shows them\n", rest)
		}
	}
	if len(a.Chains) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := fitted(w, OnScreen, "AFTER", "GOES ON WITH", "THROUGH", "WHY")
	for _, chain := range a.Chains {
		t.Row(chain.From, chain.To, terminal.Dash(chain.Through), chain.Reason)
	}
	return t.Flush()
}

// points spells a score, 2.34.
func points(score float64) string { return strconv.FormatFloat(score, 'f', 2, 64) }

// why says on one line what a score is made of.
func why(choice host.RouteChoice) string {
	var parts []string
	for _, mark := range choice.Reasons {
		parts = append(parts, fmt.Sprintf("+%s %s", points(mark.Points), mark.Why))
	}
	return strings.Join(append(parts, choice.Notes...), "; ")
}
