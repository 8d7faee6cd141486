package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) agentsMemory() *cobra.Command {
	var search string
	var last int
	return list(c, spec{
		anywhere: true,
		use:      "memory ID",
		short:    "Show the memory of an agent, the newest first",
		example:  "  mortise agents memory support --search hours",
		complete: c.completeAgents,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&search, "search", "", "only what has one of these words; what has most of them first")
		},
		limit: &limit{"last", &last, 50, "how many"},
	}, view.Memories, func(ctx context.Context, q *ask) ([]host.Memory, error) {
		return q.Agents().Memories(ctx, q.args[0], search, last)
	})
}

func (c *command) agentsRemember() *cobra.Command {
	return c.change(spec{
		anywhere: true,
		use:      "remember ID KEY TEXT",
		short:    "Store a memory of an agent under a key",
		example:  `  mortise agents remember support hours "The shop is open from 7 to 18."`,
		complete: c.completeAgents,
	}, func(ctx context.Context, q *ask) (done, error) {
		return memoryChanged(q, "remembers"), q.Agents().Remember(ctx, q.args[0], q.args[1], q.args[2])
	})
}

func (c *command) agentsForget() *cobra.Command {
	return c.change(spec{
		anywhere: true,
		use:      "forget ID KEY",
		short:    "Delete a memory of an agent",
		example:  "  mortise agents forget support hours",
		complete: c.ofAgent(client.Offers.Memories),
	}, func(ctx context.Context, q *ask) (done, error) {
		return memoryChanged(q, "has forgotten"), q.Agents().Forget(ctx, q.args[0], q.args[1])
	})
}

func memoryChanged(q *ask, what string) done {
	id, key := q.args[0], q.args[1]
	return done{value: map[string]string{"agent": id, "key": key}, said: fmt.Sprintf("%s %s %s", id, what, terminal.OneLine(key, 300))}
}

func (c *command) agentsConversations() *cobra.Command {
	var last int
	return c.command(spec{
		anywhere: true,
		use:      "conversations ID [SESSION]",
		short:    "List the conversations with an agent, the newest first; or show the messages of one",
		example: `  mortise agents conversations support
  mortise agents conversations support sess_2f6c`,
		complete: c.ofAgent(client.Offers.Conversations),
		limit:    &limit{"last", &last, 50, "how many conversations, or messages"},
	}, func(ctx context.Context, q *ask) error {
		if len(q.args) == 2 {
			one, err := inSession(ctx, q.Host, q.args[1], func(id string) (s view.ConversationShown, err error) {
				s.Conversation, s.Messages, err = q.Agents().Messages(ctx, q.args[0], id, last)
				return s, err
			})
			if err != nil {
				return err
			}
			if c.json {
				return c.print(one)
			}
			return view.Conversation(c.out, one)
		}
		all, err := q.Agents().Conversations(ctx, q.args[0], last)
		if err != nil {
			return err
		}
		return rowsOf(c, view.Conversations, all)
	})
}

func (c *command) agentsEnd() *cobra.Command {
	return c.change(spec{
		anywhere: true,
		use:      "end ID [SESSION]",
		short:    "End a conversation with an agent, by default your newest one at the terminal",
		long: `End a conversation with an agent: the one that is named, else your own newest at the
terminal. A turn that goes on is waited for. The agent's plugins hear
session.closed@v1 with the reason user: in the host that serves, or here where none
does. What is said later begins a new conversation.`,
		example: `  mortise agents end support
  mortise agents end support sess_2f6c`,
		complete: c.ofAgent(client.Offers.Conversations),
	}, func(ctx context.Context, q *ask) (done, error) {
		defer c.errs.Begin("ending the conversation").End()
		one, err := inSession(ctx, q.Host, strings.Join(q.args[1:], ""), func(id string) (host.Conversation, error) { return q.Agents().End(ctx, q.args[0], id) })
		return done{value: one, said: fmt.Sprintf("the conversation %s has ended", one.Session)}, err
	})
}
