package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/host/config"
)

// secretly are databases whose password is hunter2.
var secretly = []config.Database{
	"postgres://ann:hunter2@db.example/mortise?sslmode=require",
	"postgresql://ann@db.example/mortise?password=hunter2",
	"postgresql://ann@db.example/mortise?sslpassword=hunter2",
	"postgres://ann:hunter2%zz@db.example/mortise", // no URL
	"postgres://ann:a/hunter2@db.example/mortise",
	"postgres://ann:a@hunter2@db.example/mortise",
	"mysql://ann:hunter2@db.example/mortise",
	"host=db.example password=hunter2",
}

func TestThePasswordIsNeverPrinted(t *testing.T) {
	t.Parallel()
	for _, d := range secretly {
		c := config.Default()
		c.Database = d
		asYAML, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("opened", "database", d)
		for how, text := range map[string]string{
			"yaml": string(asYAML), "json": string(asJSON), "log": log.String(),
			"text": fmt.Sprint(d), "fields": fmt.Sprintf("%+v", c), "Go": fmt.Sprintf("%#v", c), "check": fmt.Sprint(d.Check()),
		} {
			if strings.Contains(text, "hunter2") {
				t.Errorf("%s: %s", how, text)
			}
		}
		if d.URL() != string(d) {
			t.Errorf("URL is %q", d.URL())
		}
	}
	if got, want := secretly[0].String(), "postgres://ann:hidden@db.example/mortise?sslmode=require"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestAMistakeBesideThePasswordDoesNotShowIt: an error shows the lines around
// the mistake.
func TestAMistakeBesideThePasswordDoesNotShowIt(t *testing.T) {
	t.Parallel()
	for _, d := range secretly {
		for _, text := range []string{
			"database: " + string(d) + "\nnonsense: 1\n",
			"database: [" + string(d) + "]\n",
			"workers: x\ndatabase: \"" + string(d) + "\"\n",
			"database: \"" + string(d) + "\"\nworkers: -1\n",
		} {
			_, err := config.Parse([]byte(text))
			if err == nil {
				t.Errorf("%s passes", text)
			} else if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

func TestADatabaseIsSQLiteOrPostgreSQL(t *testing.T) {
	t.Parallel()
	for d, want := range map[config.Database]string{
		"": "", "postgres://db/x": "", "postgresql://db/x": "",
		"mysql://db/x":  "the database's scheme is mysql; it is postgres:// or postgresql://, or empty for SQLite in the data directory",
		"/var/lib/x.db": "the database is no URL; it is postgres:// or postgresql://, or empty for SQLite in the data directory",
	} {
		got := ""
		if err := d.Check(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", string(d), got, want)
		}
	}
}
