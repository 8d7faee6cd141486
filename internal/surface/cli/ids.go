package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host"
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

// findCall returns the call that is meant.
func findCall(ctx context.Context, k host.API, given, action string) (*store.CallRow, error) {
	return findCallBy(ctx, k, given, action, k.Calls().Get)
}

// findCallBy returns the call that is meant, to who may do that with it.
func findCallBy(ctx context.Context, k host.API, given, action string, get func(ctx context.Context, id, action string) (*store.CallRow, error)) (*store.CallRow, error) {
	row, err := get(ctx, given, action)
	if err != nil || row != nil {
		return row, err
	}
	id, err := findID("call", given, func(before string, limit int) ([]string, error) {
		rows, err := k.Calls().List(ctx, store.CallFilter{Before: before, Limit: limit})
		return idsOf(rows, func(r store.CallRow) string { return r.ID }), err
	})
	if err != nil {
		return nil, err
	}
	return get(ctx, id, action)
}

// findApproval returns the approval that is meant, to who may know of it.
func findApproval(ctx context.Context, k host.API, given, action string) (*store.ApprovalRow, error) {
	row, err := k.Approvals().Get(ctx, given, action)
	if err != nil || row != nil {
		return row, err
	}
	id, err := findID("approval", given, func(before string, limit int) ([]string, error) {
		rows, err := k.Approvals().List(ctx, store.ApprovalFilter{Before: before, Limit: limit})
		return idsOf(rows, func(r store.ApprovalRow) string { return r.ID }), err
	})
	if err != nil {
		return nil, err
	}
	return k.Approvals().Get(ctx, id, action)
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
		if err := app.SettleDead(ctx, c.home, database); errors.As(err, &damaged) {
			return err
		} else if err != nil {
			c.say("mortise: calls of a host that was killed may be shown as running: %s", messageOf(err))
		}
	}
	return c.keeping(ctx, do)
}
