package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

// Ids may be abbreviated. They begin with the time, so that those of one day
// look alike and their ends tell them apart.
const (
	shortest = 6      // characters of an id that are enough
	lookBack = 10_000 // newest rows among which an end is looked for
	page     = 500    // rows read at a time

	mostDocuments = 1000 // of a knowledge base that are read at a time
)

// findID returns the one id that begins so, or ends so. list returns ids that
// are smaller than before, newest first.
func findID(what, given string, list func(before string, limit int) ([]string, error)) (string, error) {
	if len(given) < shortest || len(given) > 64 {
		return "", plugin.Errorf(plugin.CodeInvalidInput, "%q is no id of any %s: write the whole, or at least %d characters of its beginning or end", given, what, shortest)
	}
	begun, err := list(given+"g", 2) // in hexadecimal nothing is above f
	if err != nil {
		return "", err
	}
	found := matching(begun, func(id string) bool { return strings.HasPrefix(id, given) })
	if len(found) == 0 {
		for before, seen := "", 0; seen < lookBack; seen += page {
			ids, err := list(before, page)
			if err != nil {
				return "", err
			}
			found = append(found, matching(ids, func(id string) bool { return strings.HasSuffix(id, given) })...)
			if len(ids) < page {
				break
			}
			before = ids[len(ids)-1]
		}
	}
	switch len(found) {
	case 0:
		return "", plugin.Errorf(plugin.CodeNotFound, "there is no %s %s; 'mortise %ss list' shows those there are", what, given, what)
	case 1:
		return found[0], nil
	}
	return "", plugin.Errorf(plugin.CodeInvalidInput, "%s may mean %s or %s; write more of the id, or its end", given, found[0], found[1])
}

func matching(ids []string, fits func(string) bool) (found []string) {
	for _, id := range ids {
		if fits(id) {
			found = append(found, id)
		}
	}
	return found
}

// absent is what a get of [byID] returns where nothing has that id.
var absent = plugin.Errorf(plugin.CodeNotFound, "nothing has that id")

// byID returns what an id means, written whole or cut short to its beginning or its end.
// An id that means nothing is refused in the words of get, unless it has none.
func byID[T any](what, given string, get func(id string) (T, error), list func(before string, limit int) ([]string, error)) (T, error) {
	got, err := get(given)
	if plugin.CodeOf(err) != plugin.CodeNotFound {
		return got, err
	}
	id, failed := findID(what, given, list)
	switch {
	case failed == nil:
		return get(id)
	case errors.Is(err, absent) || plugin.CodeOf(failed) == plugin.CodeInvalidInput && len(given) >= shortest:
		return got, failed
	}
	return got, err
}

// orAbsent turns a row that there is not into an error.
func orAbsent[T any](row *T, err error) (*T, error) {
	if row == nil && err == nil {
		err = absent
	}
	return row, err
}

// among lists ids that are all known.
func among(all func() ([]string, error)) func(before string, limit int) ([]string, error) {
	sorted := sync.OnceValues(func() ([]string, error) {
		ids, err := all()
		slices.Sort(ids)
		ids = slices.Compact(ids)
		slices.Reverse(ids)
		return ids, err
	})
	return func(before string, limit int) ([]string, error) {
		ids, err := sorted()
		if i := slices.IndexFunc(ids, func(id string) bool { return before == "" || id < before }); i >= 0 {
			return ids[i:min(i+limit, len(ids))], err
		}
		return nil, err
	}
}

// findCall returns the call that is meant.
func findCall(ctx context.Context, k host.API, given, action string) (*store.CallRow, error) {
	return findCallBy(ctx, k, given, action, k.Calls().Get)
}

// findCallBy returns the call that is meant, to who may do that with it.
func findCallBy(ctx context.Context, k host.API, given, action string, get func(ctx context.Context, id, action string) (*store.CallRow, error)) (*store.CallRow, error) {
	return byID("call", given, func(id string) (*store.CallRow, error) { return orAbsent(get(ctx, id, action)) }, func(before string, limit int) ([]string, error) {
		rows, err := k.Calls().List(ctx, store.CallFilter{Before: before, Limit: limit})
		return idsOf(rows, func(r store.CallRow) string { return r.ID }), err
	})
}

// findApproval returns the approval that is meant, to who may know of it.
func findApproval(ctx context.Context, k host.API, given, action string) (*store.ApprovalRow, error) {
	return byID("approval", given, func(id string) (*store.ApprovalRow, error) { return orAbsent(k.Approvals().Get(ctx, id, action)) }, func(before string, limit int) ([]string, error) {
		rows, err := k.Approvals().List(ctx, store.ApprovalFilter{Before: before, Limit: limit})
		return idsOf(rows, func(r store.ApprovalRow) string { return r.ID }), err
	})
}

// findEntries returns the entries that an id, a number or CHAIN/NUMBER means.
func findEntries(ctx context.Context, k host.API, given string) ([]plugin.Entry, error) {
	return byID("entry", given, func(id string) ([]plugin.Entry, error) { return showEntry(ctx, k.Store(), id) }, among(func() ([]string, error) {
		entries, err := ledger.List(ctx, k.Store(), ledger.Filter{Limit: lookBack})
		calls := slices.DeleteFunc(entries, func(e plugin.Entry) bool { return !isCall(e) })
		return idsOf(calls, func(e plugin.Entry) string { return e.Subject }), err
	}))
}

// findFeed returns the id of the feed that is meant.
func findFeed(ctx context.Context, k host.API, given string) (string, error) {
	r, tenant := k.Store(), k.Tenant()
	row, err := byID("feed", given, func(id string) (*store.ScheduleRow, error) { return orAbsent(r.Schedule(ctx, tenant, id)) }, func(before string, limit int) ([]string, error) {
		rows, err := r.Schedules(ctx, store.ScheduleFilter{Tenant: tenant, Before: before, Limit: limit})
		return idsOf(rows, func(r store.ScheduleRow) string { return r.ID }), err
	})
	if err != nil {
		return "", err
	}
	return row.ID, nil
}

// findSession returns the session that is meant.
func findSession(ctx context.Context, k host.API, given string) (session.Session, error) {
	return inSession(ctx, k, given, func(id string) (session.Session, error) { return k.Sessions().Get(ctx, id) })
}

// inSession does something with the session that is meant.
func inSession[T any](ctx context.Context, k host.API, given string, do func(id string) (T, error)) (T, error) {
	return byID("session", given, do, sessionIDs(ctx, k))
}

func sessionIDs(ctx context.Context, k host.API) func(before string, limit int) ([]string, error) {
	return among(func() ([]string, error) {
		all, err := k.Sessions().List(ctx)
		return idsOf(all, func(s session.Session) string { return s.ID }), err
	})
}

// findArtifact returns the artifact of a session that is meant, by its id or its name.
func findArtifact(ctx context.Context, k host.API, in, given string) (session.Artifact, error) {
	return byID("artifact", given, func(id string) (session.Artifact, error) { return k.Sessions().Artifact(ctx, in, id) }, among(func() ([]string, error) {
		all, err := k.Sessions().Artifacts(ctx, in)
		return idsOf(all, func(a session.Artifact) string { return a.ID }), err
	}))
}

// inDocument does something with the document of a knowledge base that is meant.
func inDocument(ctx context.Context, k host.API, base, given string, do func(ctx context.Context, base, id string) (kb.Document, error)) (kb.Document, error) {
	return byID("document", given, func(id string) (kb.Document, error) { return do(ctx, base, id) }, among(func() (ids []string, err error) {
		for last := mostDocuments; last == mostDocuments && len(ids) < lookBack; {
			l := kb.Listing{KB: base, Limit: mostDocuments}
			if len(ids) > 0 {
				l.After = ids[len(ids)-1]
			}
			some, err := k.Knowledge().Documents(ctx, l)
			if err != nil {
				return nil, err
			}
			ids, last = append(ids, idsOf(some, func(d kb.Document) string { return d.ID })...), len(some)
		}
		return ids, nil
	}))
}

func idsOf[T any](rows []T, id func(T) string) []string {
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = id(row)
	}
	return ids
}

// offered is how many ids a shell is offered.
const offered = 50

// completeCalls offers the last calls.
func (c *command) completeCalls(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		c.completing(cmd, func(k host.API) {
			rows, _ := k.Calls().List(cmd.Context(), store.CallFilter{Limit: offered})
			for _, row := range rows {
				ids = append(ids, row.ID+"\t"+terminal.OneLine(row.Operation+" "+string(ledger.Status(row.State)), 60))
			}
		})
	}
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeApprovals offers the approvals that are open.
func (c *command) completeApprovals(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		c.completingAll(cmd, func(st store.Reader, tenant string) {
			rows, _ := st.Approvals(cmd.Context(), store.ApprovalFilter{Tenant: tenant, State: store.ApprovalOpen, Limit: offered})
			for _, row := range rows {
				ids = append(ids, row.ID+"\t"+terminal.OneLine(row.Why, 60))
			}
		})
	}
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completing reads the store; where it cannot be read there is nothing to offer.
func (c *command) completing(cmd *cobra.Command, do func(k host.API)) {
	_ = c.keeping(cmd.Context(), func(k host.API) error {
		do(k)
		return nil
	})
}

// completingAll is completing for what is shown to the administrator alone.
func (c *command) completingAll(cmd *cobra.Command, do func(st store.Reader, tenant string)) {
	c.completing(cmd, func(k host.API) {
		if k.Unbounded() {
			do(k.Store(), k.Tenant())
		}
	})
}

// readingStanding is keeping for how calls and plans stand: what a host was
// doing that was killed is settled first. Where that cannot be, what is there is
// shown all the same.
func (c *command) readingStanding(ctx context.Context, do func(k host.API) error) error {
	if database, err := c.whichDatabase(); err == nil && c.home != "" {
		var damaged *sqlite.MalformedError
		if err := setup.SettleDead(ctx, c.home, database); errors.As(err, &damaged) {
			return err
		} else if err != nil {
			c.say("mortise: calls of a host that was killed may be shown as running: %s", messageOf(err))
		}
	}
	return c.keeping(ctx, do)
}
