package sqlite

import (
	"database/sql"
	"strconv"
	"strings"
	"testing"
)

func TestConnectionThatIsNotDurableIsRefused(t *testing.T) {
	for parameters, want := range map[string]string{
		"_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)":    "",
		"_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)":  "synchronous=1",
		"_pragma=journal_mode(DELETE)&_pragma=synchronous(FULL)": "journal_mode=delete",
	} {
		db, err := sql.Open("sqlite", dsn(t.TempDir(), parameters))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		err = durable(t.Context(), conn)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", parameters, err, want)
		}
	}
}

func TestSchemaIsTheNewestMigration(t *testing.T) {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	newest := files[len(files)-1].Name() // they are in the order of their names
	if n, err := strconv.Atoi(newest[:5]); err != nil || n != schema {
		t.Errorf("schema is %d and the newest migration is %s", schema, newest)
	}
}
