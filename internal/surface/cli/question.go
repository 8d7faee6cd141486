package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// showQuestion shows everything that an approval is bound to. Arguments and
// preview stand there as JSON in which no character can pass for another.
func (c *command) showQuestion(w io.Writer, q *host.Question) error {
	t := terminal.Details(w)
	t.Row("approval", q.ID)
	t.Row("state", stateOf(q))
	t.Row(q.SubjectKind, q.Subject)
	if q.SubjectKind == host.SubjectCall {
		t.Row("operation", q.Operation+" "+q.Version)
		t.Row("effects", terminal.Dash(strings.Join(q.Effects, ", ")))
		if len(q.PolicyTags) > 0 {
			t.Row("tags", strings.Join(q.PolicyTags, ", "))
		}
		if len(q.Labels) > 0 {
			t.Row("labels", strings.Join(q.Labels, ", "))
		}
		t.Row("package", q.Digest)
		if q.Changed {
			t.Row("", "the plugin is not this package any more: approving lets nothing run")
		}
	}
	t.Row("requester", terminal.OneLine(q.Requester, 300))
	if q.Actor != "" {
		t.Row("actor", q.Actor)
	}
	t.Row("why", terminal.OneLine(q.Why, 2000)) // nothing in it may pass for a line of its own
	t.Row("policies", q.PolicyVersion)
	t.Row("binding", q.Binding)
	if q.DecidedBy != "" {
		t.Row("decided by", q.DecidedBy+", "+terminal.Clock(q.DecidedAt))
	}
	if q.Reason != "" {
		t.Row("reason", terminal.OneLine(q.Reason, 200))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if q.SubjectKind == host.SubjectPlan {
		return c.showSteps(w, q)
	}
	if len(q.Input) > 0 {
		if _, err := fmt.Fprintf(w, "\narguments:\n%s\n", spelt(jsontext.Value(q.Input))); err != nil {
			return err
		}
	}
	if len(q.Preview) > 0 {
		if _, err := fmt.Fprintf(w, "\npreview:\n%s\n", spelt(jsontext.Value(q.Preview))); err != nil {
			return err
		}
	}
	return nil
}

// showSteps shows the steps of a plan that is put up for approval.
func (c *command) showSteps(w io.Writer, q *host.Question) error {
	for _, s := range q.Steps {
		gate := ""
		if s.Gate != "none" {
			gate = ", " + s.Gate + ": " + s.Why
		}
		needs := ""
		if len(s.Needs) > 0 {
			needs = ", after " + strings.Join(s.Needs, " and ")
		}
		if _, err := fmt.Fprintf(w, "\n%s\n%s\n", terminal.OneLine("step "+s.ID+" "+s.Operation+" "+s.Version+needs+gate, 2000), spelt(jsontext.Value(s.Input))); err != nil {
			return err
		}
	}
	return nil
}

// stateOf is how a question stands.
func stateOf(q *host.Question) string {
	if q.State == host.ApprovalOpen {
		return "open until " + terminal.Clock(q.ExpiresAt)
	}
	return string(q.State)
}

// spelt formats JSON for a person who approves it: indented, and with every
// character that may pass for another escaped.
func spelt(raw jsontext.Value) string {
	own := raw.Clone()
	if err := own.Indent(jsontext.WithIndentPrefix("  "), jsontext.WithIndent("  ")); err != nil {
		return "  " + terminal.Revealed(string(raw))
	}
	return "  " + terminal.Revealed(string(own))
}
