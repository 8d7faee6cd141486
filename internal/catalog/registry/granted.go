package registry

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// ownMembers are the members of a manifest that say what its package is and how the code in it is
// reached. They give the code nothing that is not in the package. Every other member is a grant.
var ownMembers = []string{
	"name", "version", "version_text", "display_name", "owner", "description", "dialect", "pillar", "dir", "Contract",
	"environment", // files of the package, which an administrator had the host put there
	"runner.kind", "runner.entry", "runner.module", "runner.class", "runner.command", "runner.protocol", "runner.url",
}

// granted returns the manifest with which code runs that waits for approval: what its package is,
// and of each kind of grant what asked has in common with approved. It begins with nothing, so a
// member that manifests come to have is withheld until it is approved. withheld names what asked
// has beyond that of what its server would be started with.
//
// A server at a URL is reached there, with nothing that was not approved.
func granted(asked, approved *plugin.Manifest) (m *plugin.Manifest, withheld []string) {
	m = new(plugin.Manifest)
	note := func(at, what string) {
		if strings.HasPrefix(at, "http.") || strings.HasPrefix(at, "runner.") {
			withheld = append(withheld, strings.TrimSpace(at+" "+what))
		}
	}
	grantMembers("", reflect.ValueOf(m).Elem(), reflect.ValueOf(asked).Elem(), reflect.ValueOf(approved).Elem(), note)
	if u, err := egress.ParseURL(asked.Runner.URL); err == nil {
		for _, host := range asked.HTTP.Hosts {
			if egress.Allow([]string{host}, u) == nil && !slices.Contains(m.HTTP.Hosts, host) {
				m.HTTP.Hosts = append(m.HTTP.Hosts, host)
				withheld = slices.DeleteFunc(withheld, func(text string) bool { return text == "http.hosts "+host })
			}
		}
	}
	return m, withheld
}

// grantMembers sets the members of to, a struct that is empty.
func grantMembers(path string, to, asked, approved reflect.Value, note func(at, what string)) {
	for i := range to.NumField() {
		at := path + memberName(to.Type().Field(i))
		switch {
		case slices.Contains(ownMembers, at):
			to.Field(i).Set(asked.Field(i))
		case to.Field(i).Kind() == reflect.Struct:
			grantMembers(at+".", to.Field(i), asked.Field(i), approved.Field(i), note)
		default:
			to.Field(i).Set(common(at, asked.Field(i), approved.Field(i), note))
		}
	}
}

// memberName is the name of a field in a manifest that is written as JSON.
func memberName(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
		return name
	}
	return f.Name
}

// common returns what two values have in common: of a list or a map the elements, of all else the
// whole value or nothing.
func common(at string, asked, approved reflect.Value, note func(at, what string)) reflect.Value {
	same := func(a, b reflect.Value) bool { return reflect.DeepEqual(a.Interface(), b.Interface()) }
	both := reflect.New(asked.Type()).Elem()
	switch {
	case asked.IsZero():
	case same(asked, approved):
		both.Set(asked)
	case asked.Kind() == reflect.Slice && asked.Type().Elem().Kind() != reflect.Uint8:
		for _, one := range asked.Seq2() {
			if slices.ContainsFunc(elements(approved), func(other reflect.Value) bool { return same(one, other) }) {
				both.Set(reflect.Append(both, one))
			} else {
				note(at, called(one))
			}
		}
	case asked.Kind() == reflect.Map:
		both.Set(reflect.MakeMap(asked.Type()))
		for key, one := range asked.Seq2() {
			text, isVariable := one.Interface().(plugin.Variable)
			other := approved.MapIndex(key)
			if isVariable && text.Secret == "" || other.IsValid() && same(one, other) { // a text is in the package
				both.SetMapIndex(key, one)
			} else {
				note(at, fmt.Sprint(key))
			}
		}
	default:
		note(at, "")
	}
	return both
}

func elements(list reflect.Value) (all []reflect.Value) {
	for _, one := range list.Seq2() {
		all = append(all, one)
	}
	return all
}

// called names an element of a list for a person: a text, or the first text in it.
func called(v reflect.Value) string {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Struct {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		} else {
			v = v.Field(0)
		}
	}
	return fmt.Sprint(v)
}
