package client

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/editor"
	"github.com/mortise-dev/mortise/plugin"
)

// Each option that says which host is opened, or who acts, is in the entry that a program gets: one
// that was left out would have the program open another host, without the site's policy.
func TestConnectPassesOnWhatDecidesWhichHostIsOpened(t *testing.T) {
	t.Setenv("MORTISE_HOME", "")
	plain, err := entryOf(Options{}, []string{"mcp"})
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]string{
		"Token":  "no token is written: the context of the host has it",
		"Chosen": "it says that another option was given",
		"Say":    "it tells a person something",
	}
	options := reflect.TypeFor[Options]()
	for i := range options.NumField() {
		name := options.Field(i).Name
		o, value := Options{}, map[string]string{"Database": "postgres://host/db", "Server": "https://h.example.com"}[name]
		if value == "" {
			value = filepath.Join(t.TempDir(), "value")
		}
		switch f := reflect.ValueOf(&o).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString(value)
		case reflect.Bool:
			f.SetBool(true)
		default:
			if left[name] == "" {
				t.Errorf("%s is of a kind that this test does not know", name)
			}
			continue
		}
		e, err := entryOf(o, []string{"mcp"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		passed := slices.Contains(e.Args, value)
		for variable, is := range e.Env {
			passed = passed || is == value
			if !slices.Contains(editor.Variables, variable) {
				t.Errorf("%s is given as %s, which a second connect would not take for the host's own", name, variable)
			}
		}
		if changes := !reflect.DeepEqual(e, plain); changes != (left[name] == "") || changes && !passed {
			t.Errorf("with %s the entry is %+v", name, e)
		}
	}
}

// A password is written into no configuration of another program, wherever it stands in the URL.
func TestConnectWritesNoPassword(t *testing.T) {
	t.Setenv("MORTISE_HOME", "")
	for database, refused := range map[string]bool{
		"postgres://host/db": false, "postgresql://user@host:5432/db?sslmode=verify-full": false, "postgres:///db?host=/run/postgresql": false,
		"postgres://user:hunter2@host/db": true, "postgres://user:@host/db": true, "postgres://host/db?user=u&password=hunter2": true, "postgres://host/db?sslpassword=hunter2": true,
		"host=h password=hunter2": true, "mysql://host/db": true, "postgres://host/db?a;password=hunter2": true, "postgres://host/%zz": true,
	} {
		e, err := entryOf(Options{Database: database}, []string{"mcp"})
		if (plugin.CodeOf(err) == plugin.CodeInvalidInput) != refused || !refused && e.Env["MORTISE_DATABASE"] != database {
			t.Errorf("%s: %v, %v", database, e, err)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "--server")) {
			t.Errorf("%s: the message is %v", database, err)
		}
		if e, err := entryOf(Options{Database: database, Server: "https://h.example.com"}, []string{"mcp"}); err != nil || e.Env["MORTISE_DATABASE"] != "" {
			t.Errorf("at a URL no database of this machine counts: %v, %v", e, err)
		}
	}
}
