package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	m := d.Memory("t", "one")
	for _, kv := range [][2]string{{"a", "red apples"}, {"b", "green apples and pears"}, {"c", "pears"}, {"apples", "none"}} {
		if err := m.Upsert(t.Context(), "", kv[0], kv[1], []string{kv[0]}); err != nil {
			t.Fatal(err)
		}
	}
	found := func(query string, limit int) string {
		t.Helper()
		rows, err := m.Search(t.Context(), query, limit)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, r := range rows {
			keys = append(keys, r.Key)
		}
		return strings.Join(keys, " ")
	}
	for query, want := range map[string]string{"Apples, PEARS!": "b c apples a", "red red": "a", "plums": "", "": "", "apples": "apples a b"} {
		if got := found(query, 10); got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	if got := found("apples pears", 1) + found("apples", -1); got != "b" {
		t.Errorf("with a limit: %q", got)
	}
	if _, found, err := d.Memory("t", "two").Get(t.Context(), "a"); found || err != nil {
		t.Errorf("another agent remembers it: %t, %v", found, err)
	}
	for _, want := range []bool{true, false} {
		if got, err := m.Forget(t.Context(), "a"); got != want || err != nil {
			t.Errorf("forgetting: %t, %v", got, err)
		}
	}
	for _, bad := range [][2]string{{"", "x"}, {strings.Repeat("k", 256), "x"}, {"a\nb", "x"}, {"k", strings.Repeat("x", agent.MaxMemoryBytes+1)}, {"k", "\x00"}} {
		wantCode(t, m.Upsert(t.Context(), "", bad[0], bad[1], nil), plugin.CodeInvalidInput)
	}
	broken := errors.New("broken")
	if err := m.Upsert(t.Context(), "", "b", "other", nil, func(store.Tx) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("what shares the transaction: %v", err)
	}
	if got, _, err := m.Get(t.Context(), "b"); got != "green apples and pears" || err != nil {
		t.Errorf("it was written all the same: %q, %v", got, err)
	}
}

// An agent that is full remembers nothing new; what it knows it may know better.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write(func(tx store.Tx) error {
		for n := range agent.MaxMemories {
			if err := tx.PutMemory(store.MemoryRow{Tenant: "t", Agent: "one", Key: fmt.Sprint(n), Content: "x", Labels: []string{}, UpdatedAt: time.Now()}); err != nil {
				return err
			}
		}
		return nil
	})
	m := d.Memory("t", "one")
	wantCode(t, m.Upsert(t.Context(), "", "new", "x", nil), plugin.CodeLimitExceeded)
	if err := m.Upsert(t.Context(), "", "7", "y", nil); err != nil {
		t.Error(err)
	}
	if _, err := m.Forget(t.Context(), "8"); err != nil {
		t.Error(err)
	}
	if err := m.Upsert(t.Context(), "", "new", "x", nil); err != nil {
		t.Errorf("where there is room again: %v", err)
	}
}

// Who reads from a memory hears what it is tainted with, and so do all around.
func TestReadingTaints(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	m := d.Memory("t", "one")
	for key, label := range map[string]string{"a": plugin.Untrusted, "b": "private"} {
		if err := m.Upsert(t.Context(), "", key, "word", []string{label}); err != nil {
			t.Fatal(err)
		}
	}
	outer, all := agent.Tainting(t.Context())
	inner, some := agent.Tainting(outer)
	if _, _, err := m.Get(inner, "a"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.Get(outer, "none"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(some(), []string{plugin.Untrusted}) || !slices.Equal(all(), []string{plugin.Untrusted}) {
		t.Errorf("%q in %q", some(), all())
	}
	if _, err := m.Search(outer, "word", 5); err != nil {
		t.Fatal(err)
	}
	if len(some()) != 1 || len(all()) != 2 {
		t.Errorf("%q in %q", some(), all())
	}
}

// TestAMessageRecallsWhatItIsAbout: a note that shares stop words, single letters or
// parts of words with a message stays out of the prompt.
func TestAMessageRecallsWhatItIsAbout(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	m := d.Memory("t", "one")
	for key, text := range map[string]string{
		"salary": "the salary of Ann is a secret, and it is not to be told to anyone", "plan b": "I will leave in May if x is y", "cat": "Tom is a cat",
	} {
		if err := m.Upsert(t.Context(), "", key, text, []string{plugin.Private}); err != nil {
			t.Fatal(err)
		}
	}
	i, session := d.open("one")
	for message, want := range map[string]string{
		"I am what I am, and that is it": "", "a b c d e x y z": "", "to be or not to be": "", "category": "", "at": "", "is it so?": "",
		"how is the cat?": "cat", "what about Ann's salary": "salary",
	} {
		d.say(llm.Move{Text: "done"})
		if _, err := i.Turn(t.Context(), session, hello(message), agent.Audience{}); err != nil {
			t.Fatal(err)
		}
		heard := d.heard()
		system := heard[len(heard)-1].System
		for _, key := range []string{"salary", "plan b", "cat"} {
			if strings.Contains(system, key+": ") != (key == want) {
				t.Errorf("%q: the prompt is %q, want %q in it", message, system, want)
			}
		}
	}
}

// Of a memory with as much in it as there can be, the index gives what fits.
func TestSearchOfALongMemory(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write(func(tx store.Tx) error {
		for n := range 3000 {
			text := "common words of a note"
			if n == 1234 {
				text += " with a needle"
			}
			if err := tx.PutMemory(store.MemoryRow{Tenant: "t", Agent: "one", Key: fmt.Sprint(n), Content: text, Labels: []string{"private"}, UpdatedAt: time.Now(), Terms: text}); err != nil {
				return err
			}
		}
		return nil
	})
	ctx, read := agent.Tainting(t.Context())
	rows, err := d.Memory("t", "one").Search(ctx, "needle in common words", 3)
	if err != nil || len(rows) != 3 || rows[0].Key != "1234" || !slices.Equal(read(), []string{"private"}) {
		t.Errorf("found %+v, %v, tainted %q", rows, err, read())
	}
	if rows, err := d.Memory("t", "one").Recall(t.Context(), "where is the needle?", 8); err != nil || len(rows) != 1 {
		t.Errorf("recalled %+v, %v", rows, err)
	}
}
