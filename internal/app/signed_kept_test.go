package app_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
)

// A message that an attacker wrote into the database runs nothing, whatever sender
// it names: the turn is not begun, and the model is not asked.
func TestAForgedMessageRunsNothing(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := agentHome(t, model, "")
	ctx := t.Context()
	if err := a.Vault.Put(ctx, store.SecretName{Tenant: "local", Owner: secret.Anyone, Scope: "system", Name: "desk"}, doorSecret, secret.By{Principal: "ann"}); err != nil {
		t.Fatal(err)
	}
	hire(t, a, "support", agent.Settings{Channels: map[string]agent.Channel{"desk": {Scheme: webhook.Standard, Secret: "desk"}}})
	give(t, a, "support", "orders", lookup)
	if _, err := a.As(a.Principal).Identities().Link(ctx, "desk", "boss", "local:owner"); err != nil {
		t.Fatal(err)
	}
	p := genuine(t, webhook.Standard, "msg_1", "Where is my order?", time.Now())
	got, err := a.Agents.Receive(ctx, "local", "support", "desk", p.header, p.body, nil)
	if err != nil || got.Session == "" {
		t.Fatalf("%+v, %v", got, err)
	}
	messages, err := a.Store.Messages(ctx, "local", got.Session, 0, 10)
	if err != nil || len(messages) != 1 || len(messages[0].Labels) == 0 {
		t.Fatalf("what came in is %+v, %v", messages, err)
	}
	model.say(move{tool: "orders__find", args: `{"customer":"ann"}`}, move{text: "It is ann-1."})
	past(t, a.Home, `CREATE TABLE was AS SELECT * FROM messages`, `CREATE TABLE talks AS SELECT * FROM conversations`)
	for name, statements := range map[string][]string{
		"another sender":          {`UPDATE messages SET body = CAST(replace(CAST(body AS TEXT), 'U2', 'boss') AS BLOB)`},
		"no labels":               {`UPDATE messages SET labels = '[]'`},
		"no labels and no MAC":    {`UPDATE messages SET labels = '[]', mac = ''`},
		"another text":            {`UPDATE messages SET body = CAST(replace(CAST(body AS TEXT), 'Where', 'There') AS BLOB)`},
		"a copy of it":            {`INSERT INTO messages SELECT tenant, session_id, 2, role, body, call_id, labels, at, mac FROM was`, `UPDATE conversations SET handled = 1, received = 2`},
		"of another conversation": {`UPDATE messages SET session_id = 'sess_x'`, `UPDATE conversations SET session_id = 'sess_x'`},
	} {
		past(t, a.Home, statements...)
		for _, session := range []string{got.Session, "sess_x"} {
			row, readErr := a.Store.Conversation(ctx, "local", session)
			if readErr != nil && !errors.Is(readErr, store.ErrTampered) {
				t.Fatal(readErr)
			}
			if err := a.Agents.Advance(ctx, "local", session); (row != nil || readErr != nil) && !errors.Is(err, store.ErrTampered) {
				t.Errorf("%s: %v", name, err)
			}
		}
		foundByVerify(t, name, a.Home, "messages")
		past(t, a.Home, `DELETE FROM messages`, `INSERT INTO messages SELECT * FROM was`, `DELETE FROM conversations`, `INSERT INTO conversations SELECT * FROM talks`)
	}
	if asked := model.heard(); len(asked) != 0 {
		t.Fatalf("the model was asked %q", asked)
	}
	if err := a.Agents.Advance(ctx, "local", got.Session); err != nil || len(model.heard()) != 2 {
		t.Errorf("with the message as it came in, the model was asked %d times: %v", len(model.heard()), err)
	}
}

// A conversation is with whom and where the host began it: no other sender goes on with
// it, nothing of it is told to another, and nothing that another said is put into it.
func TestAConversationIsWithWhomItWasBegun(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := agentHome(t, model, "")
	ctx := t.Context()
	if err := a.Vault.Put(ctx, store.SecretName{Tenant: "local", Owner: secret.Anyone, Scope: "system", Name: "desk"}, doorSecret, secret.By{Principal: "ann"}); err != nil {
		t.Fatal(err)
	}
	hire(t, a, "support", agent.Settings{Channels: map[string]agent.Channel{"desk": {Scheme: webhook.Standard, Secret: "desk"}}})
	hire(t, a, "other", agent.Settings{})
	p := genuine(t, webhook.Standard, "msg_1", "Where is my order?", time.Now())
	got, err := a.Agents.Receive(ctx, "local", "support", "desk", p.header, p.body, nil)
	if err != nil || got.Session == "" {
		t.Fatalf("%+v, %v", got, err)
	}
	past(t, a.Home, `CREATE TABLE talks AS SELECT * FROM conversations`)
	for name, statement := range map[string]string{
		"another peer":    `UPDATE conversations SET peer = 'eve'`,
		"no peer":         `UPDATE conversations SET peer = ''`,
		"another room":    `UPDATE conversations SET room = 'C9'`,
		"another channel": `UPDATE conversations SET channel = 'chat'`,
		"another agent":   `UPDATE conversations SET agent = 'other'`,
		"no MAC":          `UPDATE conversations SET mac = '', peer = 'eve'`,
	} {
		past(t, a.Home, statement)
		if err := a.Agents.Advance(ctx, "local", got.Session); !errors.Is(err, store.ErrTampered) {
			t.Errorf("%s: its turn is taken: %v", name, err)
		}
		if rows, err := a.Store.Conversations(ctx, store.ConversationFilter{Tenant: "local"}); !errors.Is(err, store.ErrTampered) {
			t.Errorf("%s: it is found: %+v, %v", name, rows, err)
		}
		if _, err := a.Agents.End(ctx, "local", got.Session, "user"); !errors.Is(err, store.ErrTampered) {
			t.Errorf("%s: it is ended: %v", name, err)
		}
		foundByVerify(t, name, a.Home, "conversations")
		past(t, a.Home, `DELETE FROM conversations`, `INSERT INTO conversations SELECT * FROM talks`)
	}
	if asked := model.heard(); len(asked) != 0 {
		t.Fatalf("the model was asked %q", asked)
	}
}
