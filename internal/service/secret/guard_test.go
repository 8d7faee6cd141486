package secret_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
)

// Whatever text of what is kept a plugin chooses, a secret in it is not in the
// database afterwards: it is taken out, sealed, or the write is refused. The fields come
// from the rows themselves, so that none can be forgotten.
func TestNoTextThatAPluginChoosesPutsASecretIntoTheDatabase(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	bare, err := sqlite.Open(t.Context(), home, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	scrubber := secret.NewScrubber()
	st := scrubber.Guard(store.Authorised(bare, home), home)
	now := time.Now().UTC().Truncate(time.Microsecond)
	write := func(do func(store.Tx) error) error { return st.Write(t.Context(), do) }
	if err := write(func(tx store.Tx) error {
		if _, err := tx.InsertAgent(store.AgentRow{Tenant: "local", ID: "desk", Settings: "{}", State: store.AgentStopped, CreatedAt: now, UpdatedAt: now}); err != nil {
			return err
		}
		_, err := tx.InsertKB(store.KBRow{Tenant: "local", ID: "base", CreatedAt: now})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	document := store.DocumentRow{Tenant: "local", KB: "base", ID: "doc", SourceID: "source", SourceType: "plugin:p", ObjectID: "ko", Extraction: "{}", Attributes: "{}", CreatedAt: now, UpdatedAt: now}
	rows := []struct {
		row  any
		host []string // what the host writes: never a plugin's choice, or cleaned before
		put  func(tx store.Tx, row any) error
	}{
		{&store.KVRow{KVKey: store.KVKey{Tenant: "local", Owner: "p", Scope: "user::a", Namespace: "storage/n", Key: "k"}, Value: []byte("1"), UpdatedAt: now},
			[]string{"Tenant", "Owner", "Scope", "MAC"}, func(tx store.Tx, row any) error { return tx.PutKV(*row.(*store.KVRow)) }},
		{&store.MemoryRow{Tenant: "local", Agent: "desk", Key: "k", Content: "c", UpdatedAt: now},
			[]string{"Tenant", "Agent", "MAC"}, func(tx store.Tx, row any) error { return tx.PutMemory(*row.(*store.MemoryRow)) }},
		{&document, []string{"Tenant", "KB", "ID", "SourceType", "ObjectID", "ContentHash", "Principal", "CallID", "TextHash", "MAC", "Text"},
			func(tx store.Tx, row any) error { _, err := tx.PutDocument(*row.(*store.DocumentRow), nil); return err }},
	}
	tried := 0
	for _, r := range rows {
		value := reflect.ValueOf(r.row).Elem()
		for _, f := range reflect.VisibleFields(value.Type()) {
			if f.Anonymous || f.Type.Kind() != reflect.String || slices.Contains(r.host, f.Name) {
				continue
			}
			name := value.Type().Name() + "." + f.Name
			hidden := "s3cret-of-" + name + "-0123456789"
			if err := scrubber.Know(hidden); err != nil {
				t.Fatal(err)
			}
			one := reflect.New(value.Type())
			one.Elem().Set(value)
			text := hidden
			if f.Name == "Extraction" || f.Name == "Attributes" {
				text = `{"a":"` + hidden + `"}`
			}
			one.Elem().FieldByIndex(f.Index).SetString(text)
			err := write(func(tx store.Tx) error { return r.put(tx, one.Interface()) })
			tried++
			for _, file := range []string{"mortise.db", "mortise.db-wal"} {
				raw, readErr := os.ReadFile(filepath.Join(home, file))
				if readErr == nil && bytes.Contains(raw, []byte(hidden)) {
					t.Errorf("%s is in %s in clear (%v)", name, file, err)
				}
			}
		}
	}
	if tried < 10 {
		t.Errorf("%d fields were tried", tried)
	}
}
