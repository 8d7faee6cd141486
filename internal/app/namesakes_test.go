package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/plugin"
)

// A user and a service of one id are two principals: neither sees the other's calls, gets the
// answer of the other's key, or loses anything as what is kept of the other is erased.
func TestNamesakesAreTwoPrincipals(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func() string{"sqlite": func() string { return "" }, "postgresql": func() string { return pgtest.Open(t) }} {
		for _, erased := range []string{"ci", "service::ci"} {
			t.Run(name+"/"+strings.ReplaceAll(erased, "::", "-"), func(t *testing.T) { eraseOneNamesake(t, url(), erased) })
		}
	}
}

func eraseOneNamesake(t *testing.T, url, erased string) {
	home := t.TempDir()
	write(t, home, "mortise.yaml", "")
	a, err := app.Open(t.Context(), app.Options{Home: home, Database: url, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	register(t, a, upper(t), false)
	var gone, stays plugin.Principal
	for _, kind := range []string{"user", "service"} {
		who := plugin.Principal{Type: kind, ID: "ci", Scopes: []string{"*"}}
		if who.Member() == erased {
			gone = who
		} else {
			stays = who
		}
		own := a.As(who)
		s, err := own.Sessions().Create(t.Context(), session.Open{Name: kind})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := own.Sessions().AddArtifact(t.Context(), s.ID, strings.NewReader(kind), session.Add{Name: "a.txt"}); err != nil {
			t.Fatal(err)
		}
		if _, err := own.Knowledge().Create(t.Context(), kb.Base{ID: kind}); err != nil {
			t.Fatal(err)
		}
		if _, err := own.Knowledge().Ingest(t.Context(), kb.Source{KB: kind, ID: "doc", Text: "It is of the " + kind}); err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			keyedCall(t, a, who, fmt.Sprint(kind, "-", n), fmt.Sprint("of the ", kind, " ", n))
		}
	}
	has := func(who plugin.Principal) string {
		own := a.As(who)
		calls, _, err := own.Calls().Own(t.Context(), host.CallFilter{})
		if err != nil {
			t.Fatal(err)
		}
		bodies := 0
		for _, call := range calls {
			if call.Principal != who.Member() {
				t.Errorf("%s sees a call of %s", who.Member(), call.Principal)
			}
			if call.ResultHash == "" {
				continue
			}
			if body, err := a.Store.Body(t.Context(), "local", call.ResultHash); err != nil {
				t.Fatal(err)
			} else if body != nil {
				bodies++
			}
		}
		sessions, err := own.Sessions().List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		documents, err := a.Store.Documents(t.Context(), store.DocumentFilter{Tenant: "local", KB: who.Type})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d calls, %d answers, %d sessions, %d documents", len(calls), bodies, len(sessions), len(documents))
	}
	for _, who := range []plugin.Principal{gone, stays} {
		if got := has(who); got != "3 calls, 3 answers, 1 sessions, 1 documents" {
			t.Fatalf("before the erasure %s has %s", who.Member(), got)
		}
	}
	if _, err := a.Kernel.Call(t.Context(), callOf(gone, stays.Type+"-0", "of the "+stays.Type+" 0")); plugin.CodeOf(err) != plugin.CodeKeyConflict {
		t.Errorf("the key of %s gives %s %v", stays.Member(), gone.Member(), err)
	}
	done, err := a.As(a.Principal).Admin().Erase(t.Context(), erased, false)
	if err != nil || done.DoneAt.IsZero() {
		t.Fatalf("the erasure is %+v, %v", done, err)
	}
	if got := has(stays); got != "3 calls, 3 answers, 1 sessions, 1 documents" {
		t.Errorf("after %s was erased, %s has %s", erased, stays.Member(), got)
	}
	if got := has(gone); got != "3 calls, 0 answers, 0 sessions, 0 documents" {
		t.Errorf("after %s was erased, it has %s", erased, got)
	}
	for e, err := range a.Store.Entries(t.Context(), store.EntryFilter{Tenant: "local", Kind: string(plugin.EntryCallSucceeded)}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Principal != "ci" && e.Principal != "service::ci" {
			t.Errorf("an entry is of %q", e.Principal)
		}
	}
}

// Channels name people each in their own way: an erasure takes the conversations of a person at the terminal and on the
// channels that a link of theirs names, and none of another person whom another channel calls the same.
func TestAnErasureLeavesWhomAnotherChannelCallsTheSame(t *testing.T) {
	t.Parallel()
	a, now := open(t, t.TempDir()), time.Now()
	talks := []struct {
		id, channel, peer string
		theirs            bool
	}{
		{"terminal", agent.Terminal, "ada", true},
		{"mail", "mail", "U1", true},
		{"other-channel", "chat", "U1", false},
		{"other-peer", "mail", "U2", false},
		{"of-her-name", "mail", "ada", false},
		{"at-the-terminal", agent.Terminal, "U1", false},
		{"schedule", agent.Scheduled, "ada", false},
	}
	err := a.Store.Write(t.Context(), func(tx store.Tx) error {
		if err := tx.PutIdentity(store.IdentityRow{Tenant: "local", Provider: "mail", ExternalID: "U1", PrincipalType: "user", PrincipalID: "ada", By: "owner", At: now}); err != nil {
			return err
		}
		for _, c := range talks {
			if err := tx.InsertSession(store.SessionRow{Tenant: "local", ID: c.id, Kind: "conversation", State: store.SessionOpen, CreatedAt: now, UpdatedAt: now}); err != nil {
				return err
			}
			if err := tx.InsertConversation(store.ConversationRow{Tenant: "local", SessionID: c.id, Agent: "desk", Channel: c.channel, Peer: c.peer, CreatedAt: now, UpdatedAt: now, Open: true}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := a.As(a.Principal).Admin().Erase(t.Context(), "ada", false); err != nil || e.DoneAt.IsZero() || e.Counts["sessions"] != 2 {
		t.Errorf("the erasure is %+v, %v", e, err)
	}
	for _, c := range talks {
		if row, err := a.Store.Conversation(t.Context(), "local", c.id); err != nil || (row == nil) != c.theirs {
			t.Errorf("the conversation with %s on %s is %v, %v", c.peer, c.channel, row, err)
		}
	}
}
