package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A Halt is a plugin that the host disabled for one agent, because its code could
// not be stopped otherwise. It stays so, in every process and after a restart, until
// a person enables it for the agent again, or its package is another.
type Halt struct {
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	Digest string    `json:"digest"` // of the package that did it
}

// haltKey is where the halts of a plugin are kept, by agent. No plugin can have the
// owner's name.
func haltKey(tenant, name string) kvKey {
	return kvKey{Tenant: tenant, Owner: "/hooks", Namespace: "halted", Key: name}
}

// A reader is what halts are kept in.
type reader interface {
	KV(ctx context.Context, key kvKey) (*kvRow, error)
}

// Halts returns the agents that a plugin is disabled for, and why.
func Halts(ctx context.Context, from reader, tenant, name string) (map[string]Halt, error) {
	row, err := from.KV(ctx, haltKey(tenant, name))
	if err != nil || row == nil {
		return nil, err
	}
	var halts map[string]Halt
	if err := json.Unmarshal(row.Value, &halts); err != nil {
		return nil, plugin.Errorf(plugin.CodeInternal, "the agents that %s is disabled for cannot be read: %w", name, err)
	}
	return halts, nil
}

// changeHalts changes the halts of a plugin, and reports whether there were any to
// change.
func changeHalts(ctx context.Context, tx Tx, tenant, name string, now time.Time, change func(map[string]Halt) bool) error {
	halts, err := Halts(ctx, tx, tenant, name)
	if err != nil {
		return err
	}
	if halts == nil {
		halts = map[string]Halt{}
	}
	if !change(halts) {
		return nil
	}
	if len(halts) == 0 {
		_, err := tx.DeleteKV(haltKey(tenant, name))
		return err
	}
	raw, err := json.Marshal(halts)
	if err != nil {
		return err
	}
	return tx.PutKV(kvRow{KVKey: haltKey(tenant, name), Value: raw, UpdatedAt: now.UTC()})
}

// maxHaltReason bounds what is kept of why.
const maxHaltReason = 1000

// Halt disables a plugin for an agent until a person enables it again.
func (a *Agents) Halt(ctx context.Context, tenant, id, name, digest string, cause error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	now := a.Now().UTC()
	err := a.Store.Write(ctx, func(tx Tx) error {
		return changeHalts(ctx, tx, tenant, name, now, func(halts map[string]Halt) bool {
			reason := cause.Error()
			halts[id] = Halt{reason[:min(len(reason), maxHaltReason)], now, digest}
			return true
		})
	})
	log := a.Log.With("agent", id, "plugin", name, "cause", cause.Error())
	log.Error("a plugin is disabled for an agent; '" + EnableAgain(name, id) + "' enables it again")
	if err != nil {
		log.Error("that a plugin is disabled could not be kept; it is for this process", "problem", err.Error())
	}
}

// EnableAgain is the command that enables a plugin again for an agent.
func EnableAgain(name, id string) string { return "mortise plugins enable " + name + " --agent " + id }

// Unhalt enables a plugin again: for an agent, or for all of them.
func Unhalt(ctx context.Context, tx Tx, tenant, name, id string) error {
	return changeHalts(ctx, tx, tenant, name, time.Now(), func(halts map[string]Halt) bool {
		if id == EveryAgent {
			some := len(halts) > 0
			clear(halts)
			return some
		}
		_, found := halts[id]
		delete(halts, id)
		return found
	})
}

// halted returns why a plugin is not to be opened for the agent; nil where it may.
func (i *Instance) halted(ctx context.Context, h Hooked) (error, error) {
	halts, err := Halts(ctx, i.agents.Store, i.key.Tenant, h.Plugin)
	if err != nil {
		return nil, err
	}
	halt, found := halts[i.key.Agent]
	if !found || halt.Digest != h.Digest {
		return nil, nil
	}
	return plugin.Errorf(plugin.CodeDisabled, "%s is disabled for agent %s since %s: %s; '%s' enables it again",
		h.Plugin, i.key.Agent, halt.At.Format(time.RFC3339), halt.Reason, EnableAgain(h.Plugin, i.key.Agent)), nil
}

// ended reports whether open hooks will not come back by themselves.
func (o *opened) ended() bool {
	mortal, is := o.handlers.(interface{ Err() error })
	return is && mortal.Err() != nil
}
