package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
)

// showQuestion shows everything that an approval is bound to. Arguments and
// preview stand there as JSON in which no character can pass for another.
func (c *command) showQuestion(w io.Writer, q *host.Question) error {
	t := &table{w: w}
	t.row("approval", q.ID)
	t.row("state", stateOf(q))
	t.row(q.SubjectKind, q.Subject)
	if q.SubjectKind == store.SubjectCall {
		t.row("operation", q.Operation+" "+q.Version)
		t.row("effects", orDash(strings.Join(q.Effects, ", ")))
		if len(q.PolicyTags) > 0 {
			t.row("tags", strings.Join(q.PolicyTags, ", "))
		}
		if len(q.Labels) > 0 {
			t.row("labels", strings.Join(q.Labels, ", "))
		}
		t.row("package", q.Digest)
		if q.Changed {
			t.row("", "the plugin is not this package any more: approving lets nothing run")
		}
	}
	t.row("requester", oneLine(q.Requester, 300))
	if q.Actor != "" {
		t.row("actor", q.Actor)
	}
	t.row("why", oneLine(q.Why, 2000)) // nothing in it may pass for a line of its own
	t.row("policies", q.PolicyVersion)
	t.row("binding", q.Binding)
	if q.DecidedBy != "" {
		t.row("decided by", q.DecidedBy+", "+clock(q.DecidedAt))
	}
	if q.Reason != "" {
		t.row("reason", oneLine(q.Reason, 200))
	}
	if err := t.flush(); err != nil {
		return err
	}
	if q.SubjectKind == store.SubjectPlan {
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
		if _, err := fmt.Fprintf(w, "\n%s\n%s\n", oneLine("step "+s.ID+" "+s.Operation+" "+s.Version+needs+gate, 2000), spelt(jsontext.Value(s.Input))); err != nil {
			return err
		}
	}
	return nil
}

// stateOf is how a question stands.
func stateOf(q *host.Question) string {
	if q.State == store.ApprovalOpen {
		return "open until " + clock(q.ExpiresAt)
	}
	return string(q.State)
}

// spelt formats JSON for a person who approves it: indented, and with every
// character that may pass for another escaped.
func spelt(raw jsontext.Value) string {
	own := raw.Clone()
	if err := own.Indent(jsontext.WithIndentPrefix("  "), jsontext.WithIndent("  ")); err != nil {
		return "  " + revealed(string(raw))
	}
	return "  " + revealed(string(own))
}
