package host

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/plugin"
)

// An Assignment says whether an agent has a plugin.
type Assignment struct {
	Plugin   string    `json:"plugin"`
	Agent    string    `json:"agent"` // an id, or * for all there are and will be
	Versions string    `json:"versions,omitempty"`
	Enabled  bool      `json:"enabled"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
}

// Assign gives a plugin to an agent, or to all there are and will be, where agent
// is *; or takes it from them. An agent that it is taken from does not have it
// where all others do. What is said of one agent counts for more than what is said
// of all.
func (r Agents) Assign(ctx context.Context, ref, id string, enabled bool) (Assignment, error) {
	what := "take plugins from"
	if enabled {
		what = "give plugins to"
	}
	if err := r.may(ctx, what, id); err != nil {
		return Assignment{}, err
	}
	verb := map[bool]string{true: "enable", false: "disable"}[enabled]
	if err := r.plugins.MayChange(ctx, verb, ref); err != nil {
		return Assignment{}, err
	}
	shown, err := r.plugins.Show(ctx, ref)
	if err != nil {
		return Assignment{}, err
	}
	_, versions := refOf(ref)
	if !enabled && versions != "" {
		return Assignment{}, plugin.Errorf(plugin.CodeInvalidInput, "a plugin is taken from an agent as a whole; write %s without versions", shown.Name)
	}
	asked := assignmentRow{
		Tenant: r.g.Tenant, Subject: id, Plugin: shown.Name, Versions: versions, Enabled: enabled,
		By: principal.Name(r.by), UpdatedAt: r.g.moment(),
	}
	var row assignmentRow
	err = r.g.Store.Write(ctx, func(tx Tx) error {
		row = asked
		if id != EveryAgent {
			if _, err := r.row(ctx, tx, id); err != nil {
				return err
			}
		}
		all, err := tx.Assignments(ctx, row.Tenant)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(a assignmentRow) bool { return a.Subject == id && a.Plugin == row.Plugin })
		if enabled {
			if err := agent.Unhalt(ctx, tx, row.Tenant, row.Plugin, id); err != nil {
				return err
			}
		}
		if i >= 0 && all[i].Enabled == enabled && all[i].Versions == versions {
			row = all[i]
			return nil // it is so already
		}
		if err := tx.PutAssignment(row); err != nil {
			return err
		}
		return r.g.Note(tx, r.by, plugin.EntryAgentAssigned, row.Plugin, map[string]any{"agent": id, "versions": versions, "enabled": enabled})
	})
	return assignmentOf(row), err
}

// Assignments returns what is said of an agent, and of all: by plugin, what counts
// for the agent.
func (r Agents) Assignments(ctx context.Context, id string) (map[string]Assignment, error) {
	if err := r.mayOf(ctx, "see the plugins of", id); err != nil {
		return nil, err
	}
	return r.assignments(ctx, id)
}

func (r Agents) assignments(ctx context.Context, id string) (map[string]Assignment, error) {
	rows, err := r.g.Store.Assignments(ctx, r.g.Tenant)
	if err != nil {
		return nil, err
	}
	counts := map[string]Assignment{}
	for _, row := range rows {
		_, said := counts[row.Plugin]
		if row.Subject == id || row.Subject == EveryAgent && !said {
			counts[row.Plugin] = assignmentOf(row)
		}
	}
	return counts, nil
}

func assignmentOf(row assignmentRow) Assignment {
	return Assignment{Plugin: row.Plugin, Agent: row.Subject, Versions: row.Versions, Enabled: row.Enabled, By: row.By, At: row.UpdatedAt}
}

// unassign takes a plugin from all agents that have it, once no version of it
// is registered any more.
func (p Plugins) unassign(ctx context.Context, name string) error {
	return p.g.Store.Write(ctx, func(tx Tx) error {
		left, err := tx.Plugins(ctx)
		if err != nil || slices.ContainsFunc(left, func(row pluginRow) bool { return strings.EqualFold(row.Name, name) }) {
			return err
		}
		if err := agent.Unhalt(ctx, tx, p.g.Tenant, name, EveryAgent); err != nil {
			return err
		}
		all, err := tx.Assignments(ctx, p.g.Tenant)
		if err != nil {
			return err
		}
		for _, row := range all {
			if !strings.EqualFold(row.Plugin, name) {
				continue
			}
			if _, err := tx.DeleteAssignment(row.Tenant, row.Subject, row.Plugin); err != nil {
				return err
			}
			if err := p.g.Note(tx, p.by, plugin.EntryAgentAssigned, row.Plugin, map[string]any{"agent": row.Subject, "enabled": false, "deleted": true}); err != nil {
				return err
			}
		}
		return nil
	})
}
