package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

// A prompt asks the owner at a terminal to agree to their own call.
type prompt struct {
	c     *command
	q     *ask
	id    string // of the approval
	in    *os.File
	asked bool
}

// newPrompt returns the prompt of an approval. Standard input is a terminal.
func newPrompt(c *command, q *ask, id string) *prompt {
	return &prompt{c: c, q: q, id: id, in: c.in.(*os.File)}
}

// wait asks, and waits for an answer until ctx ends. done reports that there is nothing
// more to ask. The reader is not left in the background: nothing is read before
// there is a line.
func (p *prompt) wait(ctx context.Context) (done bool, err error) {
	if !p.asked {
		p.asked = true
		fmt.Fprint(p.c.errs, "\nApprove? [y/N] ")
	}
	ready, err := terminal.Readable(ctx, p.in)
	if ctx.Err() != nil || !ready && err == nil {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("waiting for an answer: %w", err)
	}
	line, err := terminal.Line(p.in)
	if errors.Is(err, io.EOF) {
		p.c.say("\nno answer from this terminal; the call waits for another approver")
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	if yes, known := terminal.Agrees(line); known {
		return true, p.decide(context.WithoutCancel(ctx), yes) // it is news, which ends ctx
	}
	p.asked = false // any other input is not an answer
	return false, nil
}

// leave ends the line of a prompt that is no longer answered here. A nil prompt
// has none.
func (p *prompt) leave() {
	if p != nil && p.asked {
		fmt.Fprintln(p.c.errs)
	}
}

// decide answers the approval. If another answer came first, that one counts.
func (p *prompt) decide(ctx context.Context, approve bool) error {
	_, err := p.q.Approvals().Answer(ctx, p.id, approve, true, "answered at the terminal")
	switch plugin.CodeOf(err) {
	case plugin.CodeApprovalUsed, plugin.CodeApprovalExpired, plugin.CodeApprovalVoid:
		p.c.say("%s", view.Message(err))
		return nil
	}
	return err
}
