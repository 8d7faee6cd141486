package host

import (
	"context"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// Admin is what only the administrator does, and principals that policy lets configure
// the part of the host that it is about.
type Admin struct {
	kept
	home   string
	caller *Caller
	api    API
}

// RecoveryPlugin is what stands for the recovery where policy is asked who may
// end it.
const RecoveryPlugin = "mortise.recovery"

// maxReason bounds the reason that a caller gives for the record.
const maxReason = 2000

// mayReadLedger refuses who may not read the record of everybody's calls.
func (a Admin) mayReadLedger(ctx context.Context) error {
	return a.allow(ctx, LedgerPlugin, use{plugin.EntryLedgerRefused, "ledger", "read", "read the ledger"})
}

// mayReadHeads refuses who may not know where the chains of the ledger end, which says how
// much all tenants do.
func (a Admin) mayReadHeads(ctx context.Context) error {
	if a.g.Divided {
		u := use{kind: plugin.EntryLedgerRefused, subject: "ledger", action: "read"}
		return a.g.refuse(ctx, a.by, u, plugin.Errorf(plugin.CodePolicyDenied, "the heads of the ledger are the site's, and not of a tenant"), plugin.Decision{})
	}
	return a.mayReadLedger(ctx)
}

// MayBackup refuses who may not copy everything that the host keeps.
func (a Admin) MayBackup(ctx context.Context) error {
	return a.allow(ctx, BackupPlugin, use{plugin.EntryBackupRefused, "backup", "back up", "back up the host"})
}

// MayWatch refuses who may not see the metrics of the host, which count what all principals
// do.
func (a Admin) MayWatch(ctx context.Context) error {
	return a.allow(ctx, MetricsPlugin, use{plugin.EntryMetricsRefused, "metrics", "read", "see the metrics of the host"})
}

// A RecoveryStatus says whether a host is in recovery, and what would go on by
// itself once it is not. The reason and the heads of the ledger are set only for principals who
// may end the recovery. The counts are set only for the administrator.
type RecoveryStatus struct {
	Recovery *Recovery `json:"recovery"`
	Queued   int       `json:"queued_calls"`
	Pending  int       `json:"pending_calls"` // wait for approval
	Unknown  int       `json:"unknown_calls"` // calls whose outcome is unknown
	Plans    int       `json:"plans"`         // that have not ended
	Feeds    int       `json:"feeds"`         // that are not paused
}

// Recovery returns how it stands.
func (a Admin) Recovery(ctx context.Context) (s RecoveryStatus, err error) {
	err = a.g.Store.Snapshot(ctx, func(r Reader) (err error) {
		if s.Recovery, err = readRecovery(everywhere(ctx), r); err != nil {
			return err
		}
		if _, site := a.g.ofSite(RecoveryPlugin); site {
			s.Recovery = nil
		} else if s.Recovery != nil && !a.all(RecoveryPlugin) {
			s.Recovery = &Recovery{Since: s.Recovery.Since}
		}
		if !a.unbounded() { // the counts are of what all do
			return nil
		}
		for state, n := range map[CallState]*int{CallQueued: &s.Queued, CallPending: &s.Pending, CallUnknown: &s.Unknown} {
			rows, err := r.Calls(ctx, CallFilter{Tenant: a.g.Tenant, State: state})
			if err != nil {
				return err
			}
			*n = len(rows)
		}
		for _, state := range []PlanState{PlanQueued, PlanPending, PlanRunning} {
			rows, err := r.Plans(ctx, PlanFilter{Tenant: a.g.Tenant, State: state})
			if err != nil {
				return err
			}
			s.Plans += len(rows)
		}
		feeds, err := r.Schedules(ctx, ScheduleFilter{Tenant: a.g.Tenant})
		if err != nil {
			return err
		}
		for _, feed := range feeds {
			if feed.State == scheduleActive {
				s.Feeds++
			}
		}
		return nil
	})
	return s, err
}

// ConfirmRecovery ends the recovery with the confirmation of a principal. The
// ledger keeps it, with what was remembered of the chains.
func (a Admin) ConfirmRecovery(ctx context.Context, reason string) (Recovery, error) {
	u := use{plugin.EntryRecoveryRefused, "recovery", "end", "end the recovery"}
	if a.by.Type == "agent" {
		return Recovery{}, a.g.refuse(ctx, a.by, u, plugin.Errorf(plugin.CodeApprovalSelf, "%s cannot end the recovery; a person has to", a.by.Member()), plugin.Decision{})
	}
	if err := a.g.authorise(ctx, a.by, a.g.part(RecoveryPlugin), u); err != nil {
		return Recovery{}, err
	}
	if err := a.g.recent(ctx, a.caller, u); err != nil {
		return Recovery{}, err
	}
	reason = strings.TrimSpace(reason)
	switch {
	case reason == "":
		return Recovery{}, plugin.Errorf(plugin.CodeInvalidInput, "ending the recovery needs a reason: how it is known what was done since the backup")
	case len(reason) > maxReason:
		return Recovery{}, plugin.Errorf(plugin.CodeInvalidInput, "the reason has %d bytes; at most %d are kept", len(reason), maxReason)
	}
	var ended *Recovery
	err := a.g.Store.Write(everywhere(ctx), func(tx Tx) (err error) {
		if ended, err = readRecovery(ctx, tx); err != nil || ended == nil {
			return err
		}
		if _, err := endRecovery(tx); err != nil {
			return err
		}
		return a.g.Note(tx, a.by, plugin.EntryRecoveryConfirmed, "recovery", map[string]any{"reason": reason, "why": ended.Why, "since": ended.Since, "anchors": ended.Anchors})
	})
	if err != nil {
		return Recovery{}, err
	}
	if ended == nil {
		return Recovery{}, plugin.Errorf(plugin.CodeNotFound, "this host is not in recovery")
	}
	// From here on the anchors are those of this history; the entry has the others.
	return *ended, replaceAnchors(ctx, a.g.Store, a.home)
}
