package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

// A spec is what a command says of itself. Its arguments are those of its usage line.
type spec struct {
	use, short, long, example string

	args     cobra.PositionalArgs // what the usage line cannot say
	complete cobra.CompletionFunc // offers arguments to a shell
	flags    func(*cobra.Command)
	check    func(args []string) error // of what can be told before anything is opened
	door     door                      // how a host of this process is opened; inHost if nil
	anywhere bool                      // it asks the host that serves, where there is one, or the one at a URL
	limit    *limit                    // how many rows, for a list
	watch    bool                      // it has the flag --watch
}

// An ask is one run of a command: its arguments, and the host as the acting principal
// may use it.
type ask struct {
	client.Host
	args []string
	app  *app.App // nil where only the store is read, and where the host is another process
}

// A door is a way to reach the host.
type door func(c *command, ctx context.Context, do func(*ask) error) error

// inHost opens the host, and closes it after.
func inHost(c *command, ctx context.Context, do func(*ask) error) error {
	return c.withHost(ctx, func(a *app.App) error { return do(c.asking(a)) })
}

// inStore reads what is kept, and opens the host only for who is not the administrator.
func inStore(c *command, ctx context.Context, do func(*ask) error) error {
	return c.keeping(ctx, func(k client.Host) error { return do(&ask{Host: k}) })
}

// inStanding is inStore once the calls of a host that was killed are settled.
func inStanding(c *command, ctx context.Context, do func(*ask) error) error {
	return c.readingStanding(ctx, func(k client.Host) error { return do(&ask{Host: k}) })
}

// nowhere is for what is known without a host.
func nowhere(_ *command, _ context.Context, do func(*ask) error) error { return do(&ask{}) }

// withHost opens the host for a command and closes it after.
func (c *command) withHost(ctx context.Context, do func(a *app.App) error) (err error) {
	a, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer closing(a, &err)
	return do(a)
}

// group returns a command that has others.
func group(s spec, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: s.use, Short: s.short, Long: s.long}
	cmd.AddCommand(commands...)
	return cmd
}

// command returns a command that reaches the host and does something there.
func (c *command) command(s spec, do func(context.Context, *ask) error) *cobra.Command {
	cmd := &cobra.Command{Use: s.use, Short: s.short, Long: s.long, Example: s.example, Args: s.args, ValidArgsFunction: s.complete}
	if cmd.Args == nil {
		cmd.Args = argumentsOf(s.use)
	}
	if s.door == nil {
		s.door = inHost
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if s.check != nil {
			if err := s.check(args); err != nil {
				return err
			}
		}
		if c.watches && c.json {
			return onlyOne("--watch", "--json")
		}
		if s.limit != nil && *s.limit.n < 1 {
			return usage{fmt.Errorf("--%s is at least 1", s.limit.flag)}
		}
		asked := func(q *ask) error {
			q.args = args
			return do(cmd.Context(), q)
		}
		if s.anywhere {
			return c.reach(cmd.Context(), s.door, asked)
		}
		return s.door(c, cmd.Context(), asked)
	}
	if s.flags != nil {
		s.flags(cmd)
	}
	if s.watch {
		cmd.Flags().BoolVar(&c.watches, "watch", false, "look again every second until Ctrl-C: redrawn on a terminal, what is new on lines of its own elsewhere")
	}
	if l := s.limit; l != nil {
		cmd.Flags().IntVarP(l.n, l.flag, "n", l.usual, l.use)
	}
	return c.withJSON(cmd)
}

// argumentsOf are the arguments that a usage line has: ID, [ID], FILE... or [FILE...].
func argumentsOf(use string) cobra.PositionalArgs {
	least, most, any := 0, 0, false
	for _, word := range strings.Fields(use)[1:] {
		optional := strings.HasPrefix(word, "[")
		if most++; !optional {
			least++
		}
		any = any || strings.HasSuffix(strings.TrimSuffix(word, "]"), "...")
	}
	switch {
	case any:
		return cobra.MinimumNArgs(least)
	case most == 0:
		return cobra.NoArgs
	case least == most:
		return cobra.ExactArgs(most)
	case least == 0:
		return cobra.MaximumNArgs(most)
	}
	return cobra.RangeArgs(least, most)
}

// A limit is the flag that says how many rows are listed.
type limit struct {
	flag  string // last or limit
	n     *int
	usual int
	use   string
}

// list returns a command that lists rows.
func list[T any](c *command, s spec, l view.List[T], get func(context.Context, *ask) ([]T, error)) *cobra.Command {
	return c.command(s, func(ctx context.Context, q *ask) error {
		if c.watches {
			return watchRows(ctx, c, l, func() ([]T, error) { return get(ctx, q) })
		}
		rows, err := get(ctx, q)
		if err != nil {
			return err
		}
		return rowsOf(c, l, rows)
	})
}

// rowsOf writes rows, or says that there are none.
func rowsOf[T any](c *command, l view.List[T], rows []T) error {
	if c.json {
		return c.print(map[string]any{l.Key: append([]T{}, rows...)})
	}
	if len(rows) == 0 && l.None != "" {
		c.say("%s", l.None)
		return nil
	}
	return l.Table(c.out, rows)
}

// show returns a command that shows one thing.
func show[T any](c *command, s spec, get func(context.Context, *ask) (T, error), text func(io.Writer, T) error) *cobra.Command {
	return c.command(s, func(ctx context.Context, q *ask) error {
		seen := map[string]bool{}
		draw := func(appends bool) error {
			value, err := get(ctx, q)
			switch {
			case err != nil:
				return err
			case c.json:
				return c.print(value)
			case appends && !isNew(seen, value):
				return nil
			}
			return text(c.out, value)
		}
		if c.watches {
			return c.watching(ctx, draw)
		}
		return draw(false)
	})
}

// A done is what a command did: value for a program, said for a person, and what may be
// done next.
type done struct {
	value any
	said  string
	next  []string
}

// change returns a command that changes something, and says what it did.
func (c *command) change(s spec, do func(context.Context, *ask) (done, error)) *cobra.Command {
	return c.command(s, func(ctx context.Context, q *ask) error {
		d, err := do(ctx, q)
		if err != nil {
			return err
		}
		return c.did(d)
	})
}

func (c *command) did(d done) error {
	if c.json {
		return c.print(d.value)
	}
	if _, err := fmt.Fprintln(c.out, terminal.Safe(d.said)); err != nil {
		return err
	}
	for _, next := range d.next {
		c.say("%s", next)
	}
	return nil
}

// onlyOne refuses two flags that exclude each other.
func onlyOne(a, b string) error { return usage{errors.New(a + " and " + b + ": only one of them")} }
