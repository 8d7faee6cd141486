package view

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Models shows the models that there are, and what was spent today.
func Models(w, errs io.Writer, s host.ModelStates) error {
	if len(s.Models) == 0 {
		Say(errs, "no model is configured; name some under models in mortise.yaml")
	}
	t := terminal.NewTable(w, "TIER", "NAME", "PROVIDER", "MODEL", "CAN", "CONTEXT", "PRICE", "KEY")
	for i := range s.Models {
		m := &s.Models[i]
		key := "there"
		switch {
		case m.KeyProblem != "":
			key = "missing"
		case m.Key == "":
			key = "none needed"
		}
		t.Row(m.Tier, m.Name, m.Provider, m.Model, terminal.Dash(abilities(m)), strconv.Itoa(m.Context), price(m.InputPrice)+" / "+price(m.OutputPrice), key)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range s.Models {
		if m := &s.Models[i]; m.KeyProblem != "" {
			Say(errs, "%s: %s", m.Name, m.KeyProblem)
		}
	}
	limit := "no limit"
	if s.Budget.Day > 0 {
		limit = fmt.Sprintf("$%.2f", s.Budget.Day)
	}
	_, err := fmt.Fprintf(w, "spent today: $%.4f of %s\n", s.Spent, limit)
	return err
}

// ModelTest says how a model answered.
func ModelTest(t host.ModelTest) string {
	if !t.OK {
		return fmt.Sprintf("%s: %s", t.Name, t.Error)
	}
	return fmt.Sprintf("%s: answered %.60q in %s; %d tokens in, %d out, $%.6f", t.Name, t.Answer, terminal.Milliseconds(t.Took), t.In, t.Out, t.Cost)
}

// abilities are what a model can do beside text.
func abilities(m *host.ModelState) string {
	var can []string
	if m.Vision {
		can = append(can, "vision")
	}
	if m.JSON {
		can = append(can, "json")
	}
	can = append(can, m.Documents...)
	for _, scheme := range m.URIs {
		can = append(can, scheme+"://")
	}
	return strings.Join(can, ",")
}

func price(dollars float64) string { return strconv.FormatFloat(dollars, 'f', -1, 64) }
