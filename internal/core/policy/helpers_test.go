package policy_test

import (
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

func target(name, operation string, kind plugin.Kind, effects ...string) *plugin.Target {
	return &plugin.Target{
		Manifest:  &plugin.Manifest{Name: name, Version: "1.0.0", Dialect: "native"},
		Operation: &plugin.Operation{Name: operation, Kind: kind, Effects: effects},
	}
}

// texts is the source of some documents: a.cedar, b.cedar, ...
func texts(documents ...string) []policy.Source {
	return []policy.Source{func() ([]policy.Document, error) {
		all := make([]policy.Document, len(documents))
		for i, text := range documents {
			all[i] = policy.Document{Name: fmt.Sprintf("%c.cedar", 'a'+i), Text: []byte(text)}
		}
		return all, nil
	}}
}

func open(t testing.TB, o policy.Options) *policy.Engine {
	t.Helper()
	e, err := policy.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
