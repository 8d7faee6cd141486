package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) chat() *cobra.Command {
	var session, message string
	var fresh bool
	cmd := &cobra.Command{
		Use:   "chat AGENT",
		Short: "Talk to an agent at the terminal",
		Long: `Talk to an agent at the terminal, with your own rights. Answers are shown as they
come, and each use of a tool on a line of its own. What needs approval is
asked here if you may give it; otherwise you read who may, and the conversation goes
on without it.

The agent need not be started: this command has an instance of its own, and starting
is for channels and schedules. The newest conversation that is open goes on; each is
a session and stays when you leave.

Ctrl-C stops the turn, a second one leaves, as Ctrl-D does. Where standard input is no
terminal each line of it is a message, and the first turn that fails ends the command.`,
		Example: `  mortise chat support
  mortise chat support --message "Where is order 17?"
  mortise chat support --new --json < questions.txt`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			one := cmd.Flags().Changed("message")
			switch {
			case one && strings.TrimSpace(message) == "":
				return usage{errors.New("--message is empty; it is what the agent is told")}
			case session != "" && fresh:
				return usage{errors.New("--session and --new: only one of them")}
			}
			return c.reach(cmd.Context(), inHost, func(q *ask) error {
				talk, err := inSession(cmd.Context(), q.Host, session, func(id string) (client.Talk, error) { return q.Agents().Talk(cmd.Context(), args[0], id, fresh) })
				if err != nil {
					return err
				}
				s := c.newChat(cmd.Context(), q, talk)
				defer s.end()
				if one {
					return s.turn(message)
				}
				return s.loop()
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&session, "session", "", "the conversation that goes on, by its id or the beginning of it; 'mortise agents conversations' has them")
	flags.BoolVar(&fresh, "new", false, "begin another conversation")
	flags.StringVar(&message, "message", "", "say this, print the answer and leave")
	flags.BoolVar(&c.json, "json", false, "print one JSON object a line: text, tool, approval and answer, each with its type")
	_ = cmd.RegisterFlagCompletionFunc("session", c.ofAgent(client.Offers.Conversations))
	return cmd
}

// A chat is a person at a terminal, or a program, that talks to an agent.
type chat struct {
	c        *command
	q        *ask
	talk     client.Talk
	terminal bool            // a person types here, and reads
	ctx      context.Context // until the user leaves; a turn has one of its own within it
	stops    *terminal.Stops
	middle   bool // of a line, on standard output
}

func (c *command) newChat(ctx context.Context, q *ask, talk client.Talk) *chat {
	s := &chat{c: c, q: q, talk: talk, terminal: terminal.Is(c.in) && terminal.Is(c.errs) && !c.json}
	s.stops = terminal.HearStops(ctx, terminal.StopOptions{Twice: s.terminal, Reason: errStopped, Stopped: s.stopped})
	s.ctx = s.stops.Context
	return s
}

func (s *chat) end() { s.stops.Close() }

// stopped tells a person what their Ctrl-C did.
func (s *chat) stopped(turn bool) {
	if turn {
		s.c.say("\nstopping the turn; Ctrl-C once more leaves")
		return
	}
	s.c.say("\nCtrl-C once more leaves, /quit does too")
	s.prompt()
}

func (s *chat) prompt() {
	if s.terminal {
		fmt.Fprint(s.c.errs, "> ")
	}
}

// loop takes one message after another until there are no more.
func (s *chat) loop() error {
	if s.terminal {
		so := "a new conversation"
		if n := s.talk.With().Turns; n > 0 {
			so = fmt.Sprintf("which goes on after %d turns", n)
		}
		s.c.say("%s, conversation %s, %s; /help has what can be typed here", s.talk.With().Agent, s.talk.With().Session, so)
	}
	lines := &terminal.Lines{In: s.c.in, Most: host.MaxMessage}
	for {
		s.prompt()
		line, err := lines.Next(s.ctx)
		switch {
		case errors.Is(err, io.EOF):
			if s.terminal {
				s.c.say("")
			}
			return nil
		case s.ctx.Err() != nil:
			return reported{context.Canceled}
		case err != nil:
			return err
		}
		s.stops.Typed()
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if name, is := slash(line); is {
			if name == "/quit" {
				return nil
			}
			if err := s.order(name); err != nil {
				return err
			}
			continue
		}
		err = s.turn(line)
		if s.ctx.Err() != nil {
			return reported{context.Canceled}
		}
		if err != nil && !s.terminal {
			return err
		}
		if err != nil {
			s.c.say("mortise: %s", view.Message(err))
		}
	}
}

// slash reports whether a line is an order to this command, and which.
func slash(line string) (name string, is bool) {
	name, _, _ = strings.Cut(line, " ")
	return name, len(name) > 1 && name[0] == '/' && strings.Trim(name[1:], "abcdefghijklmnopqrstuvwxyz") == ""
}

const orders = `/help    this
/tools   the operations that the agent has; in a turn it is offered the few that fit
/new     begin another conversation; the one before stays as it is
/quit    leave; the conversation stays
anything else is said to the agent`

// order does what was typed in place of a message.
func (s *chat) order(name string) error {
	switch name {
	case "/help":
		s.c.say("%s", orders)
	case "/new":
		if err := s.talk.Begin(s.ctx); err != nil {
			return err
		}
		s.c.say("conversation %s begins", s.talk.With().Session)
	case "/tools":
		tools, err := s.talk.Tools(s.ctx)
		if err != nil {
			return err
		}
		t := terminal.Details(s.c.errs)
		t.Fit = max(40, terminal.Width(s.c.errs, 120))
		for _, tool := range tools {
			t.Row(tool.Operation, terminal.OneLine(tool.Description, 200))
		}
		return t.Flush()
	default:
		s.c.say("there is no %s here; /help has what there is", name)
	}
	return nil
}

var errStopped = plugin.Errorf(plugin.CodeCancelled, "the turn was stopped; the conversation stays")

// turn says one message, and shows what comes of it.
func (s *chat) turn(text string) error {
	ctx, done := s.stops.Turn()
	defer done()
	to := host.Audience{Say: s.say, Using: s.using, Used: s.used, Waits: s.waits}
	if s.terminal { // a turn waits for an answer only if there is someone to give it
		to.Ask = func(u host.ToolUse) (*host.ToolReply, error) { return s.ask(ctx, u) }
	}
	answer, err := s.talk.Turn(ctx, text, to)
	s.idle()
	s.newline()
	if err != nil && ctx.Err() != nil {
		err = errStopped
	}
	if err != nil {
		if s.c.json {
			if failure := s.event("error", map[string]any{"error": errorOf(err)}); failure != nil {
				return failure
			}
			return reported{err}
		}
		return err
	}
	if s.c.json {
		return s.event("answer", map[string]any{
			"session": s.talk.With().Session, "text": answer.Text, "labels": answer.Labels, "steps": answer.Steps, "cut": answer.Cut,
		})
	}
	if answer.Text == "" && !answer.Cut {
		s.c.say("(it says nothing)")
	}
	if answer.Cut {
		s.c.say("it stopped after %d moves, the most that it may make in a turn; say something for it to go on", answer.Steps)
	}
	return nil
}

// say shows a part of an answer as it comes.
func (s *chat) say(text string) {
	if text == "" {
		return
	}
	if s.c.json {
		_ = s.event("text", map[string]any{"text": text})
		return
	}
	fmt.Fprint(s.c.out, terminal.Safe(text))
	s.middle = !strings.HasSuffix(text, "\n")
}

// newline ends a line that an answer left open.
func (s *chat) newline() {
	if s.middle {
		fmt.Fprintln(s.c.out)
		s.middle = false
	}
}

// using shows a person which tool is at work.
func (s *chat) using(u host.ToolUse) {
	if !s.terminal {
		return
	}
	s.newline()
	s.c.errs.DimStatus(u.Operation + " is at work")
}

// idle takes that away.
func (s *chat) idle() { s.c.errs.Status("") }

// used shows how the use of a tool ended, on one line.
func (s *chat) used(u host.ToolUse) {
	if s.c.json {
		_ = s.event("tool", map[string]any{
			"name": u.Name, "operation": u.Operation, "call_id": u.CallID, "input": u.Input, "status": u.Status, "code": u.Code,
			"approval": u.Approval, "text": u.Text, "ms": u.Took.Milliseconds(),
		})
		return
	}
	s.idle()
	s.newline()
	end := string(u.Status)
	switch {
	case u.Approval != "":
		end = "waits for approval " + u.Approval
	case u.Code != "":
		end = u.Text
	}
	line := terminal.OneLine(cmp.Or(u.Operation, u.Name)+" "+terminal.OneLine(string(u.Input), 60)+": "+terminal.OneLine(end, 80), 200) + ", " + terminal.Milliseconds(float64(u.Took.Milliseconds()))
	fmt.Fprintln(s.c.errs, terminal.Dim(s.c.errs, line))
}

// event prints one line for a program.
func (s *chat) event(kind string, members map[string]any) error {
	members["type"] = kind
	raw, err := json2.Marshal(members, json2.Deterministic(true), jsontext.EscapeForHTML(false), durations)
	if err != nil {
		return err
	}
	_, err = s.c.out.Write(append(raw, '\n'))
	return err
}

// waits shows the question that a call waits for, and who may decide: the turn goes on without
// it.
func (s *chat) waits(u host.ToolUse) {
	if asked, err := s.show(s.ctx, u); err == nil && asked != nil {
		s.goesOn(asked)
	}
}

// show shows the question that a call waits for; nil where it is shown as JSON, which has all of
// it, or where there is none.
func (s *chat) show(ctx context.Context, u host.ToolUse) (*host.Asked, error) {
	if u.Approval == "" {
		return nil, nil
	}
	asked, err := s.q.Approvals().Asked(ctx, u.Approval)
	if err != nil {
		return nil, err
	}
	q := asked.Question
	if s.c.json {
		return nil, s.event("approval", map[string]any{"question": q})
	}
	s.idle()
	s.newline()
	s.c.say("%s %s waits for approval: %s\n", q.Operation, q.Version, q.Why)
	return &asked, view.Question(s.c.errs, q)
}

// goesOn tells who may decide about a question that stays open.
func (s *chat) goesOn(asked *host.Asked) {
	s.c.say("\n%s\nthe conversation goes on without it\n", s.c.toDecide(s.q.Who(), asked))
}

// ask asks the person here whether a call may go on, where they may say so. Else
// it tells who may, and the turn goes on without it.
func (s *chat) ask(ctx context.Context, u host.ToolUse) (*host.ToolReply, error) {
	asked, err := s.show(ctx, u)
	if err != nil || asked == nil {
		return nil, err
	}
	if !asked.Theirs {
		s.goesOn(asked)
		return nil, nil
	}
	res, err := s.c.await(ctx, s.q, u.CallID, 0, newPrompt(s.c, s.q, u.Approval))
	var waits unfinished
	if errors.As(err, &waits) { // the turn was stopped meanwhile: the question stays open
		return nil, nil
	}
	return &host.ToolReply{Result: res, Err: err}, nil
}
