package postgres

import "testing"

func TestFacts(t *testing.T) {
	good := facts{version: 150000, synchronous: "on", fsync: "on", encoding: "UTF8"}
	if err := good.judge(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*facts){
		"version":     func(f *facts) { f.version = 129999 },
		"synchronous": func(f *facts) { f.synchronous = "off" },
		"fsync":       func(f *facts) { f.fsync = "off" },
		"encoding":    func(f *facts) { f.encoding = "SQL_ASCII" },
		"read only":   func(f *facts) { f.readOnly = true },
	} {
		f := good
		change(&f)
		if f.judge() == nil {
			t.Errorf("a server with another %s will do", name)
		}
	}
}

func TestSchemaIsTheNewestMigration(t *testing.T) {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != schema {
		t.Errorf("schema is %d and there are %d migrations", schema, len(files))
	}
}

func TestRebind(t *testing.T) {
	if got, want := rebind("a = ? AND b IN (?, ?)"), "a = $1 AND b IN ($2, $3)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
