package postgres

import (
	"strconv"
	"testing"
)

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
	newest := files[len(files)-1].Name() // they are in the order of their names
	if n, err := strconv.Atoi(newest[:5]); err != nil || n != schema {
		t.Errorf("schema is %d and the newest migration is %s", schema, newest)
	}
}

func TestRebind(t *testing.T) {
	if got, want := rebind("a = ? AND b IN (?, ?)"), "a = $1 AND b IN ($2, $3)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
