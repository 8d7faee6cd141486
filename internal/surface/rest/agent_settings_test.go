package rest_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// What the host keeps of an agent's settings the API can say, member for member: the
// command line says it by the API.
func TestSettingsOfAgentsAreTheHosts(t *testing.T) {
	t.Parallel()
	members := func(of reflect.Type) (names []string) {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	has, have := reflect.TypeFor[rest.AgentSettings](), reflect.TypeFor[host.AgentSettings]()
	if got, want := members(has), members(have); !slices.Equal(got, want) {
		t.Errorf("the API has %q, the host %q", got, want)
	}
	channel := func(of reflect.Type) reflect.Type {
		field, _ := of.FieldByName("Channels")
		return field.Type.Elem()
	}
	if got, want := members(channel(has)), members(channel(have)); !slices.Equal(got, want) {
		t.Errorf("of channels the API has %q, the host %q", got, want)
	}
}
