package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// A Thing is one that callers change: they may ask that it be still what they have seen.
type Thing struct {
	Noun Noun
	ID   string // of a plugin, its name
	Of   string // the agent of an assignment
}

// A Noun is what a [Thing] is.
type Noun string

// The nouns of things.
const (
	AnAgent      Noun = "agent"
	AnAssignment Noun = "assignment" // of the plugin that ID names, to the agent Of
	AFeed        Noun = "feed"
	APlugin      Noun = "plugin" // all its versions
	ASession     Noun = "session"
)

// Expect returns a context in which a thing is changed only if it is then, in the
// transaction that changes it, as it is now. Otherwise the change fails with conflict.
// done ends that, and fails in the same way where there was nothing to write. Nothing is
// told of the thing: what is done with it asks for rights.
func (a API) Expect(ctx context.Context, t Thing) (expecting context.Context, done func() error, err error) {
	tenant := a.Tenant()
	return expect(ctx, a.host.parts.Guard.Store, func(ctx context.Context, from Reader) (string, error) {
		rows, err := t.rows(ctx, from, tenant)
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal(rows)
		sum := sha256.Sum256(raw)
		return hex.EncodeToString(sum[:]), err
	})
}

// rows returns what is kept of a thing.
func (t Thing) rows(ctx context.Context, from Reader, tenant string) (any, error) {
	switch t.Noun {
	case AnAgent:
		return from.Agent(ctx, tenant, t.ID)
	case AnAssignment:
		all, err := from.Assignments(ctx, tenant)
		return slices.DeleteFunc(all, func(row assignmentRow) bool {
			return !strings.EqualFold(row.Plugin, t.ID) || row.Subject != t.Of && row.Subject != EveryAgent
		}), err
	case AFeed:
		return from.Schedule(ctx, tenant, t.ID)
	case APlugin:
		all, err := from.Plugins(ctx)
		return slices.DeleteFunc(all, func(row pluginRow) bool { return !strings.EqualFold(row.Name, t.ID) }), err
	default:
		row, err := from.Session(ctx, tenant, t.ID)
		if row != nil {
			row.MAC = "" // who reads it checks it, and not all see it
		}
		return row, err
	}
}
