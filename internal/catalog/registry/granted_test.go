package registry

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// filled returns a manifest in which every member has a value.
func filled() *plugin.Manifest {
	m := new(plugin.Manifest)
	fillIn(reflect.ValueOf(m).Elem())
	m.Runner.URL = "" // of a server that the host starts
	return m
}

func fillIn(v reflect.Value) {
	switch v.Interface().(type) {
	case json.RawMessage:
		v.SetBytes([]byte(`{}`))
		return
	case time.Duration:
		v.SetInt(int64(time.Second))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fillIn(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillIn(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillIn(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillIn(key)
		fillIn(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	}
}

// eachGrant visits every member of a manifest that is no struct, with its name.
func eachGrant(path string, v reflect.Value, visit func(at string, v reflect.Value)) {
	for i := range v.NumField() {
		at := path + memberName(v.Type().Field(i))
		if v.Field(i).Kind() == reflect.Struct && !slices.Contains(ownMembers, at) {
			eachGrant(at+".", v.Field(i), visit)
			continue
		}
		visit(at, v.Field(i))
	}
}

// TestNothingIsGrantedThatWasNotApproved: the members of a manifest are found by reflection, so one
// that manifests come to have is among them.
func TestNothingIsGrantedThatWasNotApproved(t *testing.T) {
	t.Parallel()
	asked := filled()
	if m, withheld := granted(asked, filled()); !reflect.DeepEqual(m, asked) || len(withheld) != 0 {
		t.Errorf("of a manifest that was approved as a whole, %v is withheld: %+v", withheld, m)
	}
	nothing, _ := granted(asked, new(plugin.Manifest))
	grants, own := 0, 0
	eachGrant("", reflect.ValueOf(nothing).Elem(), func(at string, v reflect.Value) {
		switch is := slices.Contains(ownMembers, at); {
		case is:
			own++
		case !v.IsZero() && v.Kind() != reflect.Map || v.Kind() == reflect.Map && v.Len() != 0:
			t.Errorf("%s is granted as %v, and nothing was approved", at, v)
		default:
			grants++
		}
	})
	if own != len(ownMembers) || grants < 20 {
		t.Errorf("a manifest has %d of the %d members that say what a package is, and %d grants", own, len(ownMembers), grants)
	}

	// Each grant alone: what was approved of it is another value, or none.
	for _, other := range []string{"another value", "nothing"} {
		approved := filled()
		eachGrant("", reflect.ValueOf(approved).Elem(), func(at string, v reflect.Value) {
			if slices.Contains(ownMembers, at) {
				return
			}
			before := reflect.New(v.Type()).Elem()
			before.Set(v)
			defer v.Set(before)
			v.SetZero()
			if other == "another value" {
				fillIn(v)
				differ(v)
			}
			m, withheld := granted(asked, approved)
			eachGrant("", reflect.ValueOf(m).Elem(), func(is string, v reflect.Value) {
				if is == at && (!v.IsZero() && v.Kind() != reflect.Map || v.Kind() == reflect.Map && v.Len() != 0) {
					t.Errorf("%s is granted as %v, and %s was approved", at, v, other)
				}
			})
			if strings.HasPrefix(at, "runner.") != slices.ContainsFunc(withheld, func(text string) bool { return strings.HasPrefix(text, at) }) && strings.HasPrefix(at, "runner.") {
				t.Errorf("%s is withheld and not named: %q", at, withheld)
			}
		})
	}
}

// differ changes a value that fillIn made.
func differ(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("another")
	case reflect.Bool:
		v.SetBool(false)
	case reflect.Int, reflect.Int64:
		v.SetInt(8)
	case reflect.Float64:
		v.SetFloat(8)
	case reflect.Struct:
		differ(v.Field(0))
	case reflect.Pointer:
		differ(v.Elem())
	case reflect.Slice:
		differ(v.Index(0))
	case reflect.Map:
		for key, value := range v.Seq2() {
			changed := reflect.New(value.Type()).Elem()
			changed.Set(value)
			differ(changed)
			v.SetMapIndex(key, changed)
		}
	}
}

// Of lists and maps what is in both is granted. A server is reached at its URL, whatever was
// approved, and no other host is.
func TestWhatIsInBothIsGranted(t *testing.T) {
	t.Parallel()
	asked := &plugin.Manifest{
		Runner:       plugin.Runner{URL: "https://mcp.example.com/", Env: map[string]plugin.Variable{"A": {Secret: "a"}, "B": {Secret: "b"}, "TEXT": {Text: "new"}}, OAuth: &plugin.OAuth{ClientID: "x", ClientSecret: "master"}},
		HTTP:         plugin.HTTP{Hosts: []string{"a.example.com", "mcp.example.com", "evil.example.com"}},
		Capabilities: []string{"http", "secrets"},
	}
	approved := &plugin.Manifest{
		Runner:       plugin.Runner{Env: map[string]plugin.Variable{"A": {Secret: "a"}, "B": {Secret: "another"}}, OAuth: &plugin.OAuth{ClientID: "x"}},
		HTTP:         plugin.HTTP{Hosts: []string{"a.example.com"}},
		Capabilities: []string{"http"},
	}
	m, withheld := granted(asked, approved)
	want := &plugin.Manifest{
		Runner:       plugin.Runner{URL: "https://mcp.example.com/", Env: map[string]plugin.Variable{"A": {Secret: "a"}, "TEXT": {Text: "new"}}},
		HTTP:         plugin.HTTP{Hosts: []string{"a.example.com", "mcp.example.com"}},
		Capabilities: []string{"http"},
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("granted %+v, want %+v", m, want)
	}
	slices.Sort(withheld)
	if want := []string{"http.hosts evil.example.com", "runner.env B", "runner.oauth"}; !slices.Equal(withheld, want) {
		t.Errorf("withheld %q, want %q", withheld, want)
	}
}
