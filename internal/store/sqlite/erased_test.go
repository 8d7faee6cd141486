package sqlite_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

// The words of what a person's agents remember are in the index no more once it is erased; those of another's are.
func TestErasedMemoriesLeaveNoWords(t *testing.T) {
	dir := t.TempDir()
	st := open(t, dir)
	write := func(do func(tx store.Tx) error) {
		t.Helper()
		if err := st.Write(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Now()
	write(func(tx store.Tx) error {
		for _, who := range []string{"ada", "bob"} {
			if _, err := tx.InsertAgent(store.AgentRow{Tenant: "t", ID: "of-" + who, State: store.AgentStopped, Settings: "{}", CreatedBy: who, CreatedAt: at, UpdatedAt: at}); err != nil {
				return err
			}
			for n := range 3 {
				if err := tx.PutMemory(store.MemoryRow{Tenant: "t", Agent: "of-" + who, Key: fmt.Sprint(n), Labels: []string{}, UpdatedAt: at, Terms: "marmot " + who}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	ada := store.Aliases{Tenant: "t", ID: "ada", Name: "ada", Typed: "user::ada", Type: "user"}
	pages, erased := 0, int64(0)
	for more := true; more; pages++ {
		write(func(tx store.Tx) error {
			counts, err := tx.EraseRows(ada, 2)
			more = len(counts) > 0
			erased += counts["memories"]
			return err
		})
	}
	if erased != 3 || pages != 3 {
		t.Errorf("%d memories were erased in %d pages, want 3 in 2 and one that finds none", erased, pages)
	}
	for word, want := range map[string]int{"ada": 0, "bob": 3, "marmot": 3} {
		var n int
		if err := raw(t, dir).QueryRowContext(t.Context(), `SELECT count(*) FROM kb_index WHERE kb_index MATCH ?`, "terms : "+word).Scan(&n); err != nil || n != want {
			t.Errorf("the index has %q %d times, %v; want %d", word, n, err, want)
		}
	}
}
