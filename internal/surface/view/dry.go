package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

// verdicts are what policy would say, in words.
var verdicts = map[plugin.Verdict]string{
	plugin.Allow: "would be allowed", plugin.AllowWithApproval: "would wait for approval", plugin.Deny: "would be denied",
}

// DryRun prints the verdict, and the changes as lines: + for what would be new
// or sent, ~ for what would change, - for what would be gone, and none for what
// was not asked.
func DryRun(w io.Writer, d *plugin.DryRun) error {
	fmt.Fprintf(w, "the call %s: %s\n", verdicts[d.Verdict], terminal.OneLine(strings.Join(d.Reasons, "; "), 2000))
	if d.NotRun != "" {
		_, err := fmt.Fprintln(w, "the plugin did not run")
		return err
	}
	if len(d.Changes) == 0 {
		_, err := fmt.Fprintln(w, "it would change nothing")
		return err
	}
	method, target := 0, 0
	for _, ch := range d.Changes {
		method = max(method, terminal.Cells(ch.Service+"."+ch.Method))
		target = max(target, terminal.Cells(terminal.OneLine(ch.Target, dryTarget)))
	}
	fmt.Fprintln(w)
	for _, ch := range d.Changes {
		line := fmt.Sprintf("%s %s  %s  %s", sign(&ch), terminal.Padded(terminal.Safe(ch.Service+"."+ch.Method), method), terminal.Padded(terminal.OneLine(ch.Target, dryTarget), target), terminal.OneLine(ch.Summary, 200))
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
		for _, side := range []struct {
			sign string
			raw  []byte
		}{{"-", ch.Before}, {"+", ch.After}} {
			if len(side.raw) == 0 || ch.Service == "secrets" {
				continue
			}
			if _, err := fmt.Fprintf(w, "    %s %s\n", side.sign, terminal.OneLine(inJSON(side.raw), max(width(w), 80)-6)); err != nil {
				return err
			}
		}
	}
	if d.LeftOut > 0 {
		_, err := fmt.Fprintf(w, "and %d more\n", d.LeftOut)
		return err
	}
	return nil
}

// inJSON is a value as JSON spells it, so that text and numbers are told apart.
func inJSON(raw []byte) string {
	value := jsontext.Value(raw).Clone()
	_ = value.Compact() // as it is, where it cannot be
	return string(value)
}

// dryTarget is how many cells a target takes.
const dryTarget = 60

// sign says what becomes of the target of a change.
func sign(c *plugin.Change) string {
	switch {
	case c.Class == "read" || c.Class == "nested":
		return " "
	case len(c.Before) > 0 && len(c.After) > 0:
		return "~"
	case len(c.Before) > 0:
		return "-"
	}
	return "+"
}
