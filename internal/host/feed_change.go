package host

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/plugin"
)

// A CursorChoice says what becomes of the cursors of a feed that changes.
type CursorChoice string

// The choices.
const (
	CursorKept  CursorChoice = "keep"
	CursorReset CursorChoice = "reset" // once, now: the next run starts over
)

// A FeedChange is what a feed is to be. What is empty stays as it is.
type FeedChange struct {
	Spec      string
	Zone      string
	Misfire   schedule.Misfire
	CatchUp   int
	Overlap   schedule.Overlap
	OCR       string
	Knowledge []string
	Cursor    CursorChoice // keep where it is empty

	// Input returns what the operation is called with from now on, given what it was; nil for
	// that. Accounts are chosen by what it has for the host, as where a feed is made.
	Input func(t *plugin.Target, before json.RawMessage) (json.RawMessage, error)
}

// Change gives a feed other times or another input. It stays the feed that it is: its runs, its
// owner with their rights, and its cursors, one for each knowledge base, unless they are to
// be reset. Only its owner may: what a feed does it does in their name. The operation stays.
func (f Feeds) Change(ctx context.Context, id string, c FeedChange) (Feed, error) {
	s, err := f.get(ctx, id, "change")
	if err != nil {
		return Feed{}, err
	}
	if principal.Name(s.Owner) != principal.Name(f.by) {
		u := use{kind: plugin.EntryFeedRefused, subject: id, action: "change"}
		return Feed{}, f.g.refuse(ctx, f.by, u, plugin.Errorf(plugin.CodePolicyDenied, "feed %s acts in the name of %s, who alone may change what it does; pause or delete it", id, principal.Name(s.Owner)), plugin.Decision{})
	}
	if c.Cursor != "" && c.Cursor != CursorKept && c.Cursor != CursorReset {
		return Feed{}, plugin.Errorf(plugin.CodeInvalidInput, "a cursor is kept (keep) or reset (reset), not %.40q", c.Cursor)
	}
	t, err := f.registry.ResolveFor(ctx, s.Operation, f.plugins.sees)
	if err != nil {
		return Feed{}, err
	}
	written := s.Input
	if c.Input != nil {
		if written, err = c.Input(t, s.Input); err != nil {
			return Feed{}, err
		}
	}
	n := NewFeed{OCR: c.OCR, Knowledge: c.Knowledge}
	input, overlay, err := f.prepared(ctx, t, &n, written, s.Overlay)
	if err != nil {
		return Feed{}, err
	}
	call := &plugin.Call{Tenant: f.g.Tenant, Principal: f.by, Origin: plugin.OriginFeed, Operation: t.Name(), Input: orEmpty(input)}
	if err := f.mayRunLater(ctx, t, call); err != nil {
		return Feed{}, err
	}
	if err := f.g.recent(ctx, f.caller, use{kind: plugin.EntryFeedRefused, subject: id, action: "change"}); err != nil {
		return Feed{}, err
	}
	read := s.Input
	s, err = f.schedules.Change(ctx, f.g.Tenant, id, func(now *schedule.Schedule) error {
		if string(now.Input) != string(read) {
			return plugin.Errorf(plugin.CodeConflict, "feed %s was changed meanwhile: look at it again", id)
		}
		now.Input, now.Overlay, now.Asker = orEmpty(input), overlay, f.asker()
		c.times(now)
		return nil
	}, func(tx Tx, s schedule.Schedule) error {
		if c.Cursor == CursorReset {
			if err := f.resetCursor(ctx, tx, s); err != nil {
				return err
			}
			if err := f.noting(plugin.EntryFeedReset)(tx, s); err != nil {
				return err
			}
		}
		return f.noting(plugin.EntryFeedChanged)(tx, s)
	})
	return feedOf(s), err
}

// times gives a schedule what is said of its times.
func (c FeedChange) times(s *schedule.Schedule) {
	s.Zone = cmp.Or(c.Zone, s.Zone)
	if c.Spec != "" {
		if s.Spec = c.Spec; strings.HasPrefix(strings.TrimSpace(c.Spec), "every") {
			s.Zone = c.Zone // an interval is the same everywhere
		}
	}
	if c.Misfire != "" && c.Misfire != s.Misfire {
		s.Misfire, s.CatchUp = c.Misfire, 0
	}
	s.CatchUp = cmp.Or(c.CatchUp, s.CatchUp)
	s.Overlap = cmp.Or(c.Overlap, s.Overlap)
}
