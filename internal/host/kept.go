package host

import (
	"context"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/plugin"
)

// What stands for each sort of kept thing where policy is asked who may use those
// of others; see docs/policy.md.
const (
	SessionsPlugin  = "mortise.sessions"
	CallsPlugin     = "mortise.calls"
	KnowledgePlugin = "mortise.knowledge"
	ReferencePlugin = "mortise.reference"
	LedgerPlugin    = "mortise.ledger"
	BackupPlugin    = "mortise.backup"
	MetricsPlugin   = "mortise.metrics"
	ModelsPlugin    = "mortise.models"
)

// What is kept is there for one principal: what the principal began, and what policy
// permits beyond that. The administrator may use all of it. What belongs to another is
// not found, and the refusal is recorded.
type kept struct {
	g     *Guard
	by    plugin.Principal
	admin bool // who owns the data directory reads it, without a host
}

// unbounded reports whether all that is kept is theirs to use.
func (k kept) unbounded() bool { return k.admin || k.g.administers(k.by) }

// all reports whether a right to everything of a sort is given, without recording
// anything: lists leave out what is not shown.
func (k kept) all(target string) bool {
	if d, site := k.g.ofSite(target); site {
		return d.Verdict == plugin.Allow
	}
	return k.unbounded() || k.g.right(target, k.by).Verdict == plugin.Allow
}

// own reports whether something that a principal began is theirs.
func (k kept) own(owner string) bool { return owner != "" && owner == principal.Name(k.by) }

// hide refuses the use of something that belongs to another: to who asks it is not
// there.
func (k kept) hide(ctx context.Context, target string, u use, missing *plugin.Error) error {
	return k.g.refuse(ctx, k.by, u, missing, k.g.right(target, k.by))
}

// allow refuses what takes a right to a part of the host as a whole.
func (k kept) allow(ctx context.Context, target string, u use) error {
	if _, site := k.g.ofSite(target); k.unbounded() && !site {
		return nil
	}
	return k.g.authorise(ctx, k.by, k.g.part(target), u)
}
