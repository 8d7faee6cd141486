package host

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// StoredPrefix stands before the name of a stored policy where it is one of many
// documents, as in stored/mail:3:20.
const StoredPrefix = "stored/"

// PoliciesPlugin is what stands for the policies themselves where policy is
// asked who may configure them.
const PoliciesPlugin = policy.PoliciesPlugin

// maxStored bounds the policies that are kept for a tenant.
const maxStored = 256

// Policies are the policies in force and those that are stored, as one principal may
// see and change them. What is refused is on the record.
type Policies struct {
	g       *Guard
	by      plugin.Principal
	caller  *Caller // nil for the user of this process
	plugins Plugins
	open    func(from Reader) (*policy.Engine, error) // the engine of what a store would then have
	others  func(documents []PolicyDocument) (*policy.Engine, error)
}

var policyName = pattern.New(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// A PolicyChange is what came of a change of the stored policies.
type PolicyChange struct {
	Policies int    // in the text that was put
	Version  string // of the set that came of it
}

// Put puts a text of policies into the store and into force. It is refused, and the old set stays in force, where the
// whole set that would come of it cannot be used, or would keep them from ever
// changing it again. was is the version that the set must have until then, "" for any:
// conflict where it has another.
func (p Policies) Put(ctx context.Context, name string, text []byte, was string) (done PolicyChange, err error) {
	if err := p.may(ctx, "put", name); err != nil {
		return done, err
	}
	if err := p.recent(ctx, "put", name); err != nil {
		return done, err
	}
	if err := checkPolicyName(name); err != nil {
		return done, err
	}
	err = p.change(ctx, was, func(tx Tx) error {
		return tx.PutPolicy(policyRow{Tenant: p.g.Tenant, Name: name, Text: string(text), By: principal.Name(p.by), At: p.g.Store.Now().UTC()})
	}, func(tx Tx, next *policy.Engine) error {
		all := next.Documents()
		i := slices.IndexFunc(all, func(t policy.Text) bool { return t.Name == StoredPrefix+name })
		done = PolicyChange{all[i].Policies, next.Version()}
		hash, err := tx.PutBody(p.g.Tenant, text, time.Time{})
		if err != nil {
			return err
		}
		if err := tx.NameBody(entryBodyRow{Tenant: p.g.Tenant, Hash: hash, Subject: "policy:" + name}); err != nil {
			return err
		}
		return p.g.Note(tx, p.by, plugin.EntryPolicyPut, name, map[string]any{"text_hash": hash, "policies": done.Policies, "policy": done.Version})
	})
	return done, err
}

func checkPolicyName(name string) error {
	if !policyName.MatchString(name) {
		return plugin.Errorf(plugin.CodeInvalidInput, "%.100q is no name for a policy: small letters, digits, and . _ - after the first, at most 64", name)
	}
	return nil
}

// Delete takes a stored text of policies out of force. It is refused as
// in Put.
func (p Policies) Delete(ctx context.Context, name, was string) (done PolicyChange, err error) {
	if err := p.may(ctx, "delete", name); err != nil {
		return done, err
	}
	if err := p.recent(ctx, "delete", name); err != nil {
		return done, err
	}
	err = p.change(ctx, was, func(tx Tx) error {
		found, err := tx.DeletePolicy(p.g.Tenant, name)
		if err == nil && !found {
			err = plugin.Errorf(plugin.CodeNotFound, "no policy is stored under the name %s; 'mortise policy list' shows those there are", name)
		}
		return err
	}, func(tx Tx, next *policy.Engine) error {
		done = PolicyChange{Version: next.Version()}
		return p.g.Note(tx, p.by, plugin.EntryPolicyDeleted, name, map[string]any{"policy": done.Version})
	})
	return done, err
}

// change makes a change in one transaction with the check of the set that it is a change
// of, of the one that comes of it, and with its entry.
func (p Policies) change(ctx context.Context, was string, change func(Tx) error, record func(Tx, *policy.Engine) error) error {
	err := p.g.Store.Write(ctx, func(tx Tx) error {
		if err := p.still(tx, was); err != nil {
			return err
		}
		if err := change(tx); err != nil {
			return err
		}
		rows, err := tx.Policies(ctx, p.g.Tenant)
		if err != nil {
			return err
		}
		if len(rows) > maxStored {
			return plugin.Errorf(plugin.CodeLimitExceeded, "at most %d policies are stored; put several into one", maxStored)
		}
		next, err := p.open(tx)
		if err != nil {
			return plugin.Errorf(plugin.CodeInvalidInput, "the policies stay as they were: %w", err)
		}
		if d := next.May(policy.Configure, p.g.part(PoliciesPlugin), p.g.call(p.by)); d.Verdict != plugin.Allow {
			return plugin.Errorf(plugin.CodeInvalidInput, "the policies stay as they were: with these, %s could not change them any more (%s)", principal.Name(p.by), d.Reasons[0])
		}
		return record(tx, next)
	})
	if err != nil {
		return err
	}
	return p.g.Policy.Reload()
}

// still refuses a change of a set that has another version than it was read with: a
// compare-and-set, since no other transaction changes policies until this one ends. The
// deletion of a name that none has is what takes that lock, where nodes share a store.
func (p Policies) still(tx Tx, was string) error {
	if was == "" {
		return nil
	}
	if _, err := tx.DeletePolicy(p.g.Tenant, ""); err != nil {
		return err
	}
	now, err := p.open(tx)
	if err != nil {
		return plugin.Errorf(plugin.CodeUnavailable, "the policies cannot be read as they stand: %w", err)
	}
	if now.Version() != was {
		return plugin.Errorf(plugin.CodeConflict, "the policies are not those of version %.100s any more; read them again", was)
	}
	return nil
}

// recent refuses a caller in a browser who signed in too long ago.
func (p Policies) recent(ctx context.Context, what, name string) error {
	return p.g.recent(ctx, p.caller, use{plugin.EntryPolicyRefused, name, what, ""})
}

// may refuses an unauthorized principal and records the refusal.
func (p Policies) may(ctx context.Context, what, name string) error {
	return p.g.authorise(ctx, p.by, p.g.part(PoliciesPlugin), use{plugin.EntryPolicyRefused, name, what, what + " policies"})
}

// A PolicyText is one document of the policies in force.
type PolicyText struct {
	Name     string     `json:"name"`
	Source   string     `json:"source"`   // file, stored or configuration
	Policies int        `json:"policies"` // in it
	By       string     `json:"by,omitempty"`
	At       *time.Time `json:"at,omitempty"`
}

// List returns the documents of the policies in force.
func (p Policies) List(ctx context.Context) ([]PolicyText, error) {
	rows, err := p.g.Store.Policies(ctx, p.g.Tenant)
	if err != nil {
		return nil, err
	}
	all := []PolicyText{}
	for _, d := range p.g.Policy.Documents() {
		text := PolicyText{Name: d.Name, Source: "file", Policies: d.Policies}
		if policy.FromConfiguration(d.Name) {
			text.Source = "configuration"
		}
		if name, found := strings.CutPrefix(d.Name, StoredPrefix); found {
			if i := slices.IndexFunc(rows, func(r policyRow) bool { return r.Name == name }); i >= 0 {
				text.Name, text.Source, text.By, text.At = name, "stored", rows[i].By, &rows[i].At
			}
		}
		all = append(all, text)
	}
	return all, nil
}
