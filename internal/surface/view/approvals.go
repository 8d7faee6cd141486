package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/consent"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Approvals are approvals as they are listed.
var Approvals = List[*host.Question]{
	Key:    "approvals",
	Titles: []string{"APPROVAL", "STATE", "WHAT", "REQUESTER", "AGE", "EXPIRES", "WHY"},
	None:   "nothing waits for approval that you asked for or may decide",
	Fit:    Always,
	Row: func(q *host.Question) []string {
		expires := "-"
		if q.State == host.ApprovalOpen {
			expires = "in " + terminal.Short(time.Until(q.ExpiresAt))
		}
		return []string{q.ID, string(q.State), subjectOf(q), q.Requester, terminal.Short(time.Since(q.CreatedAt)), expires, terminal.OneLine(q.Why, 500)}
	},
}

// Question shows everything that an approval is bound to. Arguments and preview stand there as
// package consent writes them: a line for each leaf, in which no character can pass for another.
func Question(w io.Writer, q *host.Question) error {
	t := terminal.Details(w)
	t.Row("approval", q.ID)
	t.Row("state", approvalState(q))
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
		return questionSteps(w, q)
	}
	if err := leaves(w, "arguments", q.Input); err != nil {
		return err
	}
	if len(q.Preview) == 0 {
		return nil
	}
	return leaves(w, "preview", q.Preview)
}

// Decided says how an approval stands after an answer, and what comes of it.
func Decided(w, errs io.Writer, q *host.Question) {
	fmt.Fprintf(w, "%s %s\n", q.ID, q.State)
	switch {
	case q.State == host.ApprovalDenied:
		Say(errs, "%s %s does not run", q.SubjectKind, q.Subject)
	case q.SubjectKind == host.SubjectPlan:
		Say(errs, "'mortise plans show %s' follows it; 'mortise serve' runs it, or 'mortise plans resume %s --wait' here", q.Subject, q.Subject)
	default:
		Say(errs, "'mortise calls wait %s' goes on with it, unless another process does", q.Subject)
	}
}

// subjectOf names what a question is about.
func subjectOf(q *host.Question) string {
	if q.SubjectKind == host.SubjectPlan {
		return fmt.Sprintf("plan of %d steps", len(q.Steps))
	}
	return q.Operation + "@" + q.Version
}

// questionSteps shows the steps of a plan that is put up for approval.
func questionSteps(w io.Writer, q *host.Question) error {
	for _, s := range q.Steps {
		gate := ""
		if s.Gate != "none" {
			gate = ", " + s.Gate + ": " + s.Why
		}
		needs := ""
		if len(s.Needs) > 0 {
			needs = ", after " + strings.Join(s.Needs, " and ")
		}
		if err := leaves(w, terminal.OneLine("step "+s.ID+" "+s.Operation+" "+s.Version+needs+gate, 2000), s.Input); err != nil {
			return err
		}
	}
	return nil
}

// approvalState is how a question stands.
func approvalState(q *host.Question) string {
	if q.State == host.ApprovalOpen {
		return "open until " + terminal.Clock(q.ExpiresAt)
	}
	return string(q.State)
}

// leaves shows all of a value that a person approves, below its title. The title is printed as
// it is. A value that cannot be shown in full is an error: it cannot be approved here.
func leaves(w io.Writer, title string, raw []byte) error {
	if len(raw) == 0 {
		_, err := fmt.Fprintf(w, "\n%s: none are kept\n", title)
		return err
	}
	if _, err := fmt.Fprintf(w, "\n%s:\n", title); err != nil {
		return err
	}
	return consent.Write(w, raw, width(w))
}
