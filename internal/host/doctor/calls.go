package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

const (
	overdueAfter = 5 * time.Minute  // how long a call that is due may wait for a host
	clockBound   = 30 * time.Second // how far a clock may be off
)

// calls names the calls that are due and that no host goes on with, and those that a node with a
// wrong clock accepted: they wait until that time.
func (e *examination) calls(ctx context.Context, st store.Store) {
	late, err := overdue(ctx, st)
	if err == nil && len(late) > 0 {
		err = fmt.Errorf("%s; a host that serves goes on with them: 'mortise serve'", strings.Join(late, ", "))
	}
	e.add("calls on time", false, err, "none is overdue")
}

// overdue returns what is said of each such call, of no more than maxNamed.
func overdue(ctx context.Context, st store.Store) (late []string, err error) {
	now := st.Now()
	due, err := st.Calls(ctx, store.CallFilter{DueBefore: now.Add(-overdueAfter), Limit: maxNamed})
	if err != nil {
		return nil, err
	}
	for _, row := range due {
		late = append(late, fmt.Sprintf("call %s of %s is due since %s", row.ID, row.Operation, row.WakeAt.UTC().Format(time.RFC3339)))
	}
	newest, err := st.Calls(ctx, store.CallFilter{Live: true, Limit: maxNamed}) // such calls are the newest
	for _, row := range newest {
		if row.CreatedAt.After(now.Add(clockBound)) && len(late) < maxNamed {
			late = append(late, fmt.Sprintf("call %s of %s was accepted by a node whose clock was ahead, at %s", row.ID, row.Operation, row.CreatedAt.UTC().Format(time.RFC3339)))
		}
	}
	return late, err
}

// clock says if the clock of this machine is not that of its database. Nodes compare the times of
// the database; certificates and sign-ins go by this machine's.
func (e *examination) clock(st store.Store) {
	off := time.Now().Sub(st.Now()).Round(time.Second)
	if off.Abs() <= clockBound {
		return
	}
	way := "ahead of"
	if off < 0 {
		way = "behind"
	}
	e.add("clock of this machine", false, fmt.Errorf("it is %s %s that of the database; set it by NTP", off.Abs(), way), "")
}
