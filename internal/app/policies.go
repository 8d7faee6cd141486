package app

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// StoredPrefix stands before the name of a stored policy where it is one of many
// documents, as in stored/mail:3:20.
const StoredPrefix = "stored/"

// PoliciesPlugin is what stands for the policies themselves where policy is
// asked who may configure them.
const PoliciesPlugin = "mortise.policies"

// maxStored bounds the policies that are kept for a tenant.
const maxStored = 256

// stored returns the documents of the policies that are kept for a tenant.
func stored(ctx context.Context, r store.Reader, tenant string) ([]policy.Document, error) {
	rows, err := r.Policies(ctx, tenant)
	if err != nil {
		return nil, err
	}
	documents := make([]policy.Document, len(rows))
	for i, row := range rows {
		documents[i] = policy.Document{Name: StoredPrefix + row.Name, Text: []byte(row.Text)}
	}
	return documents, nil
}

var policyName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// PutPolicy puts a text of policies into the store and into force, and returns
// how many they are. It is refused, and the old set stays in force, where the
// whole set that would come of it cannot be used, or would keep them from ever
// changing it again.
func (a *App) PutPolicy(ctx context.Context, by plugin.Principal, name string, text []byte) (count int, err error) {
	if err := a.mayChangePolicies(ctx, by, "put", name); err != nil {
		return 0, err
	}
	if !policyName.MatchString(name) {
		return 0, plugin.Errorf(plugin.CodeInvalidInput, "%q is no name for a policy: small letters, digits, and . _ - after the first, at most 64", name)
	}
	err = a.changePolicies(ctx, by, func(tx store.Tx) error {
		return tx.PutPolicy(store.PolicyRow{Tenant: a.Config.Tenant, Name: name, Text: string(text), By: MemberName(by), At: time.Now().UTC()})
	}, func(tx store.Tx, next *policy.Engine) error {
		all := next.Documents()
		i := slices.IndexFunc(all, func(t policy.Text) bool { return t.Name == StoredPrefix+name })
		count = all[i].Policies
		hash, err := tx.PutBody(a.Config.Tenant, text, time.Time{})
		if err != nil {
			return err
		}
		return a.note(tx, by, plugin.EntryPolicyPut, name, map[string]any{"text_hash": hash, "policies": count, "policy": next.Version()})
	})
	return count, err
}

// DeletePolicy takes a stored text of policies out of force. It is refused as
// in PutPolicy.
func (a *App) DeletePolicy(ctx context.Context, by plugin.Principal, name string) error {
	if err := a.mayChangePolicies(ctx, by, "delete", name); err != nil {
		return err
	}
	return a.changePolicies(ctx, by, func(tx store.Tx) error {
		found, err := tx.DeletePolicy(a.Config.Tenant, name)
		if err == nil && !found {
			err = plugin.Errorf(plugin.CodeNotFound, "no policy is stored under the name %s; 'mortise policy list' shows those there are", name)
		}
		return err
	}, func(tx store.Tx, next *policy.Engine) error {
		return a.note(tx, by, plugin.EntryPolicyDeleted, name, map[string]any{"policy": next.Version()})
	})
}

// changePolicies makes a change in one transaction with the check of the set
// that comes of it, and with its entry.
func (a *App) changePolicies(ctx context.Context, by plugin.Principal, change func(store.Tx) error, record func(store.Tx, *policy.Engine) error) error {
	err := a.Store.Write(ctx, func(tx store.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		rows, err := tx.Policies(ctx, a.Config.Tenant)
		if err != nil {
			return err
		}
		if len(rows) > maxStored {
			return plugin.Errorf(plugin.CodeLimitExceeded, "at most %d policies are stored; put several into one", maxStored)
		}
		next, err := OpenPolicy(a.Config, a.ConfigPath, a.Runner.Level(), tx)
		if err != nil {
			return plugin.Errorf(plugin.CodeInvalidInput, "the policies stay as they were: %w", err)
		}
		if d := next.May(policy.Configure, hostTarget(PoliciesPlugin), a.call(by)); d.Verdict != plugin.Allow {
			return plugin.Errorf(plugin.CodeInvalidInput, "the policies stay as they were: with these, %s could not change them any more (%s)", MemberName(by), d.Reasons[0])
		}
		return record(tx, next)
	})
	if err != nil {
		return err
	}
	return a.Policy.Reload()
}

// mayChangePolicies refuses an unauthorized principal and records the refusal.
func (a *App) mayChangePolicies(ctx context.Context, by plugin.Principal, what, name string) error {
	return a.authorise(ctx, by, hostTarget(PoliciesPlugin), use{plugin.EntryPolicyRefused, name, what, what + " policies"})
}

// A PolicyText is one document of the policies in force.
type PolicyText struct {
	Name     string     `json:"name"`
	Source   string     `json:"source"`   // file, stored or configuration
	Policies int        `json:"policies"` // in it
	By       string     `json:"by,omitempty"`
	At       *time.Time `json:"at,omitempty"`
}

// Policies returns the documents of the policies in force.
func (a *App) Policies(ctx context.Context) ([]PolicyText, error) {
	rows, err := a.Store.Policies(ctx, a.Config.Tenant)
	if err != nil {
		return nil, err
	}
	all := []PolicyText{}
	for _, d := range a.Policy.Documents() {
		text := PolicyText{Name: d.Name, Source: "file", Policies: d.Policies}
		if policy.FromConfiguration(d.Name) {
			text.Source = "configuration"
		}
		if name, found := strings.CutPrefix(d.Name, StoredPrefix); found {
			if i := slices.IndexFunc(rows, func(r store.PolicyRow) bool { return r.Name == name }); i >= 0 {
				text.Name, text.Source, text.By, text.At = name, "stored", rows[i].By, &rows[i].At
			}
		}
		all = append(all, text)
	}
	return all, nil
}

// canonical returns the body of an entry.
func canonical(body map[string]any) (json.RawMessage, error) {
	raw, err := json2.Marshal(body, json2.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("recording it: %w", err)
	}
	return json.RawMessage(raw), nil
}
