package cli

import (
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

// watchEvery is how often --watch looks.
const watchEvery = time.Second

// watching shows something again and again until the user stops it, which is no failure.
// On a terminal it is redrawn; elsewhere draw appends what is new, with lines below each
// other.
func (c *command) watching(ctx context.Context, draw func(appends bool) error) error {
	page := terminal.NewPage(c.out)
	if page != nil {
		out, errs := c.out, c.errs
		defer func() { c.out, c.errs = out, errs }()
		c.out, c.errs = page, terminal.NewScreen(page)
	}
	for {
		err := draw(page == nil)
		if err == nil && page != nil {
			err = page.Show()
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		host.Pause(ctx, watchEvery)
	}
}

// watchRows lists rows as [command.watching] does. They are given the newest first.
func watchRows[T any](ctx context.Context, c *command, l view.List[T], get func() ([]T, error)) error {
	seen := map[string]bool{}
	return c.watching(ctx, func(appends bool) error {
		rows, err := get()
		if err != nil {
			return err
		}
		if !appends {
			return rowsOf(c, l, rows)
		}
		first := len(seen) == 0
		rows = slices.DeleteFunc(rows, func(row T) bool { return !isNew(seen, row) })
		slices.Reverse(rows)
		if len(rows) == 0 {
			return nil
		}
		if !first {
			l.Titles = nil
		}
		return l.Table(c.out, rows)
	})
}

// isNew reports whether a value was not seen before, as a program would read it.
func isNew(seen map[string]bool, value any) bool {
	raw, err := json.Marshal(value, json.Deterministic(true), durations)
	if err != nil || seen[string(raw)] {
		return err != nil
	}
	seen[string(raw)] = true
	return true
}
