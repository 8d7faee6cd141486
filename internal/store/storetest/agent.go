package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

func newAgent(id string) store.AgentRow {
	return store.AgentRow{
		Tenant: "t", ID: id, CreatedBy: "ada", CreatedAt: epoch, Brain: "chat/turn", Tier: "fast", Prompt: "You help.",
		Settings: `{"max":5}`, State: store.AgentStopped, UpdatedAt: epoch,
	}
}

func insertAgent(t *testing.T, b store.Store, row store.AgentRow, want bool) {
	t.Helper()
	write(t, b, func(tx store.Tx) error {
		fresh, err := tx.InsertAgent(row)
		if fresh != want {
			t.Errorf("inserting agent %s: %t, want %t", row.ID, fresh, want)
		}
		return err
	})
}

func agents(t *testing.T, b *bundle) {
	row := newAgent("desk")
	insertAgent(t, b, row, true)
	insertAgent(t, b, row, false)
	insertAgent(t, b, newAgent("door"), true)
	other := newAgent("desk")
	other.Tenant, other.Prompt = "u", ""
	insertAgent(t, b, other, true)

	row.State, row.Prompt, row.UpdatedAt = store.AgentRunning, "You help and é.", epoch.Add(time.Second)
	write(t, b, func(tx store.Tx) error {
		found, err := tx.UpdateAgent(row)
		if !found {
			t.Error("the agent was not found")
		}
		return err
	})
	if got, err := b.Agent(t.Context(), "t", "desk"); err != nil || got == nil || !reflect.DeepEqual(*got, row) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, row)
	}
	all, err := b.Agents(t.Context(), "t")
	if err != nil || !reflect.DeepEqual(all, []store.AgentRow{row, newAgent("door")}) {
		t.Errorf("the agents are %+v, %v", all, err)
	}
	if all, err = b.Agents(t.Context(), ""); err != nil || len(all) != 3 {
		t.Errorf("of all tenants: %+v, %v", all, err)
	}

	given := store.AssignmentRow{Tenant: "t", Subject: store.EveryAgent, Plugin: "notes", Versions: "1.x", Enabled: true, By: "ada", UpdatedAt: epoch}
	taken := store.AssignmentRow{Tenant: "t", Subject: "desk", Plugin: "notes", By: "bob", UpdatedAt: epoch}
	write(t, b, func(tx store.Tx) error {
		for _, a := range []store.AssignmentRow{given, given, taken} {
			if err := tx.PutAssignment(a); err != nil {
				return err
			}
		}
		return tx.PutMemory(store.MemoryRow{Tenant: "t", Agent: "desk", Key: "k", Labels: []string{}, UpdatedAt: epoch})
	})
	if got, err := b.Assignments(t.Context(), "t"); err != nil || !reflect.DeepEqual(got, []store.AssignmentRow{given, taken}) {
		t.Errorf("the assignments are %+v, %v", got, err)
	}
	for _, want := range []bool{true, false} {
		write(t, b, func(tx store.Tx) error {
			found, err := tx.DeleteAgent("t", "desk")
			if found != want {
				t.Errorf("deleting it: %t, want %t", found, want)
			}
			return err
		})
	}
	if got, err := b.Assignments(t.Context(), "t"); err != nil || !reflect.DeepEqual(got, []store.AssignmentRow{given}) {
		t.Errorf("after the agent is gone the assignments are %+v, %v", got, err)
	}
	if got, err := b.Memory(t.Context(), "t", "desk", "k"); got != nil || err != nil {
		t.Errorf("it still remembers %+v, %v", got, err)
	}
	if got, err := b.Agent(t.Context(), "u", "desk"); got == nil || err != nil {
		t.Errorf("the other tenant's is %+v, %v", got, err)
	}
	write(t, b, func(tx store.Tx) error {
		found, err := tx.DeleteAssignment("t", store.EveryAgent, "notes")
		if !found {
			t.Error("the assignment was not found")
		}
		return err
	})
}

func memories(t *testing.T, b *bundle) {
	rows := []store.MemoryRow{
		{Tenant: "t", Agent: "desk", Key: "name", Content: "Ada", Labels: []string{"private"}, UpdatedAt: epoch.Add(time.Hour)},
		{Tenant: "t", Agent: "desk", Key: "a", Content: "", Labels: []string{}, UpdatedAt: epoch},
		{Tenant: "t", Agent: "door", Key: "name", Content: "Bob", Labels: []string{}, UpdatedAt: epoch},
	}
	write(t, b, func(tx store.Tx) error {
		if err := tx.PutMemory(store.MemoryRow{Tenant: "t", Agent: "desk", Key: "name", Content: "Eve", UpdatedAt: epoch}); err != nil {
			return err
		}
		for _, r := range rows {
			if err := tx.PutMemory(r); err != nil {
				return err
			}
		}
		return nil
	})
	if got, err := b.Memories(t.Context(), "t", "desk", 10); err != nil || !sameKept(got, rows[:2]...) {
		t.Errorf("it remembers %+v, %v", got, err)
	}
	if got, err := b.Memory(t.Context(), "t", "door", "name"); err != nil || got == nil || !sameKept([]store.MemoryRow{*got}, rows[2]) {
		t.Errorf("the other one remembers %+v, %v", got, err)
	}
	find := func(agent string, terms ...string) string {
		t.Helper()
		found, err := b.SearchMemories(t.Context(), store.MemoryQuery{Tenant: "t", Agent: agent, Terms: terms, Limit: 3})
		if err != nil {
			t.Fatal(err)
		}
		keys := ""
		for _, row := range found {
			keys += " " + row.Agent + "/" + row.Key
		}
		return strings.TrimSpace(keys)
	}
	write(t, b, func(tx store.Tx) error {
		var err error
		put := func(agent, key, terms string) {
			if err == nil {
				err = tx.PutMemory(store.MemoryRow{Tenant: "t", Agent: agent, Key: key, Labels: []string{}, UpdatedAt: epoch, Terms: terms})
			}
		}
		put("finder", "old", "never to be found")
		put("finder", "old", "bread rye")
		put("finder", "two", "bread bread bread")
		put("finder", "gone", "bread")
		put("other", "theirs", "bread rye")
		for i := range 5 {
			put("many", fmt.Sprint(i), "bread")
		}
		if err == nil {
			_, err = tx.DeleteMemory("t", "finder", "gone")
		}
		if err == nil {
			_, err = tx.DeleteAgent("t", "other")
		}
		return err
	})
	for terms, want := range map[string]string{"bread": "finder/two finder/old", "rye": "finder/old", "never": "", "nothing": "", "rye nothing": "finder/old"} {
		if got := find("finder", strings.Fields(terms)...); got != want {
			t.Errorf("%q finds %q, want %q", terms, got, want)
		}
	}
	if got := find("other", "bread"); got != "" {
		t.Errorf("of a deleted agent it finds %q", got)
	}
	if got := find("many", "bread"); len(strings.Fields(got)) != 3 {
		t.Errorf("of many it finds %q", got)
	}
	for agent, want := range map[string]int64{"desk": 2, "door": 1, "none": 0} {
		write(t, b, func(tx store.Tx) error {
			if n, err := tx.CountMemories(t.Context(), "t", agent); err != nil || n != want {
				t.Errorf("%s remembers %d things, %v", agent, n, err)
			}
			return nil
		})
	}
	for _, want := range []bool{true, false} {
		write(t, b, func(tx store.Tx) error {
			found, err := tx.DeleteMemory("t", "desk", "name")
			if found != want {
				t.Errorf("forgetting: %t, want %t", found, want)
			}
			return err
		})
	}
}

func conversations(t *testing.T, b *bundle) {
	row := store.ConversationRow{Tenant: "t", SessionID: "sess_1", Agent: "desk", Channel: "slack", Room: "C1", Peer: "U1", CreatedAt: epoch, Open: true, UpdatedAt: epoch}
	later := row
	later.SessionID, later.CreatedAt = "sess_2", epoch.Add(time.Minute)
	write(t, b, func(tx store.Tx) error {
		if err := tx.InsertConversation(row); err != nil {
			return err
		}
		return tx.InsertConversation(later)
	})
	with := store.ConversationFilter{Tenant: "t", Agent: "desk", Channel: "slack", Peer: "U1", Open: true}
	if got, err := b.Conversations(t.Context(), with); err != nil || !sameKept(got, later, row) {
		t.Errorf("the conversations are %+v, %v", got, err)
	}
	unnamed := store.ConversationRow{Tenant: "t", SessionID: "sess_3", Agent: "desk", Channel: "slack", CreatedAt: epoch, Open: true, UpdatedAt: epoch}
	write(t, b, func(tx store.Tx) error { return tx.InsertConversation(unnamed) })
	for room, want := range map[string]int{"C1": 2, "C": 0} {
		if got, err := b.Conversations(t.Context(), store.ConversationFilter{Tenant: "t", Room: room}); err != nil || len(got) != want {
			t.Errorf("in the room %s are %+v, %v", room, got, err)
		}
	}
	if got, err := b.Conversations(t.Context(), store.ConversationFilter{Tenant: "t", NoRoom: true}); err != nil || !sameKept(got, unnamed) {
		t.Errorf("in no room are %+v, %v", got, err)
	}
	if got, err := b.Conversations(t.Context(), store.ConversationFilter{Tenant: "t", Agent: "desk", NoPeer: true}); err != nil || !sameKept(got, unnamed) {
		t.Errorf("the conversations without a peer are %+v, %v", got, err)
	}
	turn := func(want bool, what string, do func(store.Tx) (bool, error)) {
		t.Helper()
		write(t, b, func(tx store.Tx) error {
			got, err := do(tx)
			if got != want {
				t.Errorf("%s: %t, want %t", what, got, want)
			}
			return err
		})
	}
	take := func(lease string, after time.Duration) func(store.Tx) (bool, error) {
		return func(tx store.Tx) (bool, error) {
			return tx.TakeTurn("t", "sess_1", lease, epoch.Add(after), epoch.Add(after+time.Minute))
		}
	}
	turn(true, "the first one takes the turn", take("one", 0))
	turn(false, "a second one does not", take("two", time.Second))
	turn(true, "the first one keeps it", func(tx store.Tx) (bool, error) {
		return tx.KeepTurn("t", "sess_1", "one", epoch.Add(2*time.Minute))
	})
	turn(false, "another one cannot", func(tx store.Tx) (bool, error) {
		return tx.KeepTurn("t", "sess_1", "two", epoch.Add(9*time.Minute))
	})
	turn(true, "once it has lapsed a second one takes it", take("two", 3*time.Minute))
	turn(false, "the first one has lost it", func(tx store.Tx) (bool, error) { return tx.EndTurn("t", "sess_1", "one", epoch) })
	turn(true, "the second one gives it back", func(tx store.Tx) (bool, error) { return tx.EndTurn("t", "sess_1", "two", epoch) })
	turn(true, "it ends", func(tx store.Tx) (bool, error) { return tx.CloseConversation("t", "sess_1", epoch) })
	turn(false, "it ends once", func(tx store.Tx) (bool, error) { return tx.CloseConversation("t", "sess_1", epoch) })
	turn(false, "a conversation that has ended gives no turn", take("three", time.Hour))
	row.Open, row.Turns = false, 1
	if got, err := b.Conversation(t.Context(), "t", "sess_1"); err != nil || got == nil || !sameKept([]store.ConversationRow{*got}, row) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, row)
	}
}

// Messages that come at the same time are all kept, each with a place of its own.
func messages(t *testing.T, b *bundle) {
	write(t, b, func(tx store.Tx) error {
		n, err := tx.InsertMessage(store.MessageRow{Tenant: "t", SessionID: "sess_1", Role: "user", At: epoch})
		if n != 0 {
			t.Errorf("a message of no conversation is number %d", n)
		}
		if err != nil {
			return err
		}
		return tx.InsertConversation(store.ConversationRow{Tenant: "t", SessionID: "sess_1", Agent: "desk", Open: true, CreatedAt: epoch, UpdatedAt: epoch})
	})
	first := store.MessageRow{Tenant: "t", SessionID: "sess_1", Role: "user", Body: []byte(`{"text":"é"}`), CallID: "c", Labels: []string{"untrusted"}, At: epoch}
	write(t, b, func(tx store.Tx) error { _, err := tx.InsertMessage(first); return err })
	first.N = 1
	var all sync.WaitGroup
	other := b.another(t)
	for i := range 8 {
		all.Go(func() {
			st := []store.Store{b, other}[i%2]
			if err := st.Write(t.Context(), func(tx store.Tx) error {
				_, err := tx.InsertMessage(store.MessageRow{Tenant: "t", SessionID: "sess_1", Role: "assistant", Body: []byte(`{}`), At: epoch})
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := b.Messages(t.Context(), "t", "sess_1", 0, 100)
	if err != nil || len(got) != 9 || !sameKept(got[:1], first) {
		t.Fatalf("the messages are %+v, %v", got, err)
	}
	for i, m := range got {
		if m.N != int64(i+1) {
			t.Errorf("message %d is number %d", i+1, m.N)
		}
	}
	if got, err = b.Messages(t.Context(), "t", "sess_1", 7, 1); err != nil || len(got) != 1 || got[0].N != 8 {
		t.Errorf("one after the seventh: %+v, %v", got, err)
	}
	write(t, b, func(tx store.Tx) error {
		_, err := tx.InsertMessage(store.MessageRow{Tenant: "t", SessionID: "sess_1", Role: store.Inbound, Body: []byte(`{}`), At: epoch})
		return err
	})
	for before, want := range map[int64][]int64{0: {9, 8}, 9: {8, 7}, 2: {1}, 1: nil} {
		got, err := b.LastMessages(t.Context(), "t", "sess_1", before, 2)
		var numbers []int64
		for _, m := range got {
			numbers = append(numbers, m.N)
		}
		if err != nil || !slices.Equal(numbers, want) {
			t.Errorf("the last before %d are %d, %v, want %d", before, numbers, err, want)
		}
	}
}

func inbound(t *testing.T, b *bundle) {
	for i, id := range []string{"sess_1", "sess_2", "sess_3"} {
		write(t, b, func(tx store.Tx) error {
			err := tx.InsertConversation(store.ConversationRow{Tenant: "t", SessionID: id, Agent: "desk", Open: true, CreatedAt: epoch, UpdatedAt: epoch})
			if err == nil && i < 2 {
				_, err = tx.InsertMessage(store.MessageRow{Tenant: "t", SessionID: id, Role: store.Inbound, Body: []byte("{}"), At: epoch.Add(time.Duration(i) * time.Second)})
			}
			return err
		})
	}
	waiting := func(want ...string) {
		t.Helper()
		got, err := b.Conversations(t.Context(), store.ConversationFilter{Waiting: true, Limit: 10})
		if err != nil || len(got) != len(want) {
			t.Fatalf("waiting are %+v, %v", got, err)
		}
		for i := range got {
			if got[i].SessionID != want[i] || got[i].Received != 1 {
				t.Errorf("the one at %d is %+v", i, got[i])
			}
		}
	}
	waiting("sess_1", "sess_2")
	write(t, b, func(tx store.Tx) error { return tx.Handled("t", "sess_1", 1) })
	waiting("sess_2")
	write(t, b, func(tx store.Tx) error { _, err := tx.CloseConversation("t", "sess_2", epoch); return err })
	waiting()
	write(t, b, func(tx store.Tx) error {
		n, err := tx.InsertMessage(store.MessageRow{Tenant: "t", SessionID: "sess_2", Role: store.Inbound, Body: []byte("{}"), At: epoch})
		if n != 0 {
			t.Error("a message came into a conversation that is closed")
		}
		return err
	})
}

func idle(t *testing.T, b *bundle) {
	for i, id := range []string{"sess_1", "sess_2"} {
		write(t, b, func(tx store.Tx) error {
			at := epoch.Add(time.Duration(i) * time.Hour)
			return tx.InsertConversation(store.ConversationRow{Tenant: "t", SessionID: id, Agent: "desk", Open: true, CreatedAt: at, UpdatedAt: at})
		})
	}
	since := epoch.Add(30 * time.Minute)
	are := func(f store.ConversationFilter, want ...string) {
		t.Helper()
		got, err := b.Conversations(t.Context(), f)
		var ids []string
		for _, c := range got {
			ids = append(ids, c.SessionID)
		}
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("%+v finds %q, %v, want %q", f, ids, err, want)
		}
	}
	closes := func(id string, want bool) {
		t.Helper()
		write(t, b, func(tx store.Tx) error {
			found, err := tx.CloseIdle("t", id, since, epoch.Add(2*time.Hour))
			if found != want {
				t.Errorf("closing %s: %t, want %t", id, found, want)
			}
			return err
		})
	}
	are(store.ConversationFilter{Idle: since}, "sess_1")
	are(store.ConversationFilter{Running: true})
	write(t, b, func(tx store.Tx) error {
		_, err := tx.InsertAgent(store.AgentRow{Tenant: "t", ID: "desk", State: store.AgentRunning, Settings: "{}", CreatedAt: epoch, UpdatedAt: epoch})
		return err
	})
	are(store.ConversationFilter{Running: true}, "sess_2", "sess_1")
	closes("sess_2", false) // something happened since
	write(t, b, func(tx store.Tx) error {
		_, err := tx.InsertMessage(store.MessageRow{Tenant: "t", SessionID: "sess_1", Role: store.Inbound, Body: []byte("{}"), At: epoch})
		return err
	})
	are(store.ConversationFilter{Idle: since})
	closes("sess_1", false) // a message waits
	write(t, b, func(tx store.Tx) error { return tx.Handled("t", "sess_1", 1) })
	write(t, b, func(tx store.Tx) error {
		_, err := tx.TakeTurn("t", "sess_1", "x", epoch, epoch.Add(3*time.Hour))
		return err
	})
	closes("sess_1", false) // the turn is taken
	write(t, b, func(tx store.Tx) error { _, err := tx.EndTurn("t", "sess_1", "x", epoch); return err })
	closes("sess_1", true)
	closes("sess_1", false)
	are(store.ConversationFilter{Idle: epoch.Add(24 * time.Hour)}, "sess_2")
}
