package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// things are one of each noun, all of them ann's.
func (b *bench) things() map[string]string {
	b.Helper()
	call := b.execute("mrt_ann", "gated", "one")
	b.is(call, 202, "pending_approval")
	own := b.app.As(person("ann")).Sessions()
	session, err := own.Create(b.Context(), host.NewSession{Name: "own"})
	if err != nil {
		b.Fatal(err)
	}
	artifact, err := own.AddArtifact(b.Context(), session.ID, strings.NewReader("0123456789"), host.NewArtifact{Name: "ten.txt", Type: "text"})
	if err != nil {
		b.Fatal(err)
	}
	gated := func(text string) string {
		asked := b.execute("mrt_ann", "gated", text)
		b.is(asked, 202, "pending_approval")
		return fmt.Sprint(asked.at("approval", "id"))
	}
	token, secret, err := b.app.As(person("root")).Tokens().Create(b.Context(), host.NewToken{Name: "ann's", For: "ann"})
	if err != nil {
		b.Fatal(err)
	}
	user, err := b.app.As(person("root")).Users().Create(b.Context(), "ben", "")
	if err != nil {
		b.Fatal(err)
	}
	decision := b.ask("mrt_ann", "POST", "/api/v1/decisions", `{"namespace":"hook","tool":"Read"}`)
	made := map[string]string{
		"decision": fmt.Sprint(b.is(decision, 200, "").at("decision_id")),
		"user":     user.ID, "browser": "0123456789",
		"agreed": gated("two"), "denied": gated("three"), "token": token.ID, "secret": secret,
		"call": fmt.Sprint(call.at("call_id")), "approval": fmt.Sprint(call.at("approval", "id")), "plan": b.planned(), "session": session.ID, "artifact": artifact.ID,
	}
	unkept, err := own.Create(b.Context(), host.NewSession{Name: "not kept"})
	if err != nil {
		b.Fatal(err)
	}
	made["unkept"] = unkept.ID
	rented, err := b.app.As(b.app.Principal).Tenants().Create(b.Context(), "rented")
	if err != nil {
		b.Fatal(err)
	}
	made["tenant"] = rented.Name
	b.keep(made)
	b.agents(made)
	b.feeds(made)
	b.versions(made)
	return made
}

// recovers puts the host into recovery.
func (b *bench) recovers(why string) {
	b.Helper()
	row, err := store.RecoveryRow(store.Recovery{Since: time.Now(), Why: why, Anchors: []store.Anchor{{Chain: 1, Seq: 7, Head: why}}})
	if err == nil {
		err = b.app.Store.Write(b.Context(), func(tx store.Tx) error { return tx.PutKV(row) })
	}
	if err != nil {
		b.Fatal(err)
	}
}

// agents are root's, who may configure them.
func (b *bench) agents(made map[string]string) {
	b.Helper()
	agents := b.app.As(person("root")).Agents()
	for name, id := range map[string]string{"agent": "helper", "dismissed": "idler"} {
		if _, err := agents.Create(b.Context(), host.NewAgent{ID: id}); err != nil {
			b.Fatal(err)
		}
		made[name] = id
	}
	if _, err := agents.Assign(b.Context(), "desk", "helper", true); err != nil {
		b.Fatal(err)
	}
	if err := agents.Remember(b.Context(), "helper", "hours", "from 7 to 18"); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"conversation", "ended"} {
		talk, err := agents.Talk(b.Context(), "helper", "", true)
		if err != nil {
			b.Fatal(err)
		}
		made[name] = talk.Session
	}
}

// feeds are ann's.
func (b *bench) feeds(made map[string]string) {
	b.Helper()
	for _, name := range []string{"feed", "unfed"} {
		f, err := b.app.As(person("ann")).Feeds().Create(b.Context(), host.NewFeed{Plugin: "desk/upper", Spec: "every 24h",
			Input: func(*plugin.Target) (json.RawMessage, error) { return json.RawMessage(`{"text":"a"}`), nil }})
		if err != nil {
			b.Fatal(err)
		}
		made[name] = f.ID
	}
}

// versions are of plugins that were approved once and have another version that waits.
func (b *bench) versions(made map[string]string) {
	b.Helper()
	const runner = "runner: {kind: process, command: [/bin/true]}\noperations: {go: {kind: operator, effects: [db_write], description: %s, input: {}, output: {}}}\n"
	for _, name := range []string{"waiting", "reviewed", "spare", "stepped", "mapped"} {
		made[name] = name
		for _, version := range []string{"1.0.0", "1.1.0"} {
			err := b.register(name, version, fmt.Sprintf(runner, "As in "+version))
			switch {
			case version == "1.0.0" && err == nil, plugin.CodeOf(err) == plugin.CodeQuarantined && name != "stepped":
				continue
			case plugin.CodeOf(err) != plugin.CodeQuarantined:
				b.Fatal(err)
			}
			seen, err := b.app.Registry.Review(b.Context(), name, true)
			if err == nil {
				_, err = b.app.Registry.Approve(b.Context(), seen)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	seen, err := b.app.Registry.Review(b.Context(), "waiting", true)
	if err != nil {
		b.Fatal(err)
	}
	made["digest"], made["difference"], made["before"] = seen.Digest, seen.Hash, seen.Approved.Digest
}
