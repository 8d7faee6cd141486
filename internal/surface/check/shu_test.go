package check

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

func TestHintsThatAreWellFormed(t *testing.T) {
	t.Parallel()
	for property, want := range map[string]string{
		`{"x-ui":{"hidden":true,"help":"a","placeholder":"Auto","show_when":{"field":"m","equals":1}}}`:   "",
		`{"enum":["a",1],"x_ui":{"enum_labels":{"a":"A"},"enum_help":{"1":"one"},"show_when":{"m":"a"}}}`: "",
		`{"x-ui":{"show_when":{"field":"m","in":["a","b"]}},"x-binding":"identity:google_email"}`:         "",
		`{"x-ui":{"show_when":{"field":"m"}}}`:                                                            "", // a map: the member called field is to be m
		`{"x-binding":"secret:"}`:                                                                         "x-binding is identity:KEY, secret:NAME or env:NAME",
		`{"x_binding":"secret"}`:                                                                          "x_binding is identity:KEY, secret:NAME or env:NAME",
		`{"x_binding":"env:A","x-binding":"env:A"}`:                                                       "x-binding and x_binding: only one of them",
		`{"x-binding":"file:/etc/passwd"}`:                                                                "x-binding is identity:KEY, secret:NAME or env:NAME",
		`{"x-ui":"hidden"}`:                                                                               "x-ui is an object of hints",
		`{"x-ui":{},"x_ui":{}}`:                                                                           "x-ui and x_ui: only one of them",
		`{"x-ui":{"hidden":"yes"}}`:                                                                       "x-ui.hidden is true or false",
		`{"x-ui":{"help":""}}`:                                                                            "x-ui.help is a text",
		`{"enum":["a"],"x-ui":{"enum_labels":{"b":"B"}}}`:                                                 `x-ui.enum_labels has "b", which is no value of the enum`,
		`{"enum":["a"],"x-ui":{"enum_help":["A"]}}`:                                                       "x-ui.enum_help has a text for each value of the enum",
		`{"x-ui":{"show_when":{"field":"m","equals":1,"in":[]}}}`:                                         "x-ui.show_when is {",
		`{"x-ui":{"show_when":{"field":"m","in":"a"}}}`:                                                   "x-ui.show_when is {",
		`{"x-ui":{"show_when":{}}}`:                                                                       "x-ui.show_when is {",
		`{"x-ui":{"tooltip":"a"}}`:                                                                        "x-ui.tooltip is no hint that there is: hidden, help, show_when, enum_labels, enum_help, placeholder",
	} {
		var members map[string]any
		if err := json.Unmarshal([]byte(property), &members); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(hintFaults(members), "; ")
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", property, got, want)
		}
	}
}

func TestAuthFieldsAreFlaggedAtAnyDepth(t *testing.T) {
	t.Parallel()
	found := map[string][]finding{}
	schemaFindings(&plugin.Operation{
		Name: "list", Title: "T", Description: "D", Output: json.RawMessage(`{}`),
		Input: json.RawMessage(`{"properties":{"auth_mode":{},"a":{"properties":{"user_email":{}}},"b":{"items":{"anyOf":[{"properties":{"impersonate_email":{}}}]}},"mail":{}}}`),
	}, found)
	var got []string
	for _, f := range found[shuAuth] {
		got = append(got, f.place)
	}
	want := []string{"list: at /properties/a/properties/user_email", "list: at /properties/auth_mode", "list: at /properties/b/items/anyOf/properties/impersonate_email"}
	if !slices.Equal(got, want) || len(found) != 1 {
		t.Errorf("got %q and %v", got, found)
	}
}

func TestKeysForFeeds(t *testing.T) {
	t.Parallel()
	known := &plugin.Operation{Name: "a", Input: json.RawMessage(`{}`), Effects: []string{"kb_write"}}
	for _, c := range []struct {
		feed plugin.Feed
		want string
	}{
		{plugin.Feed{Default: "a", Allowed: []string{"a"}}, ""},
		{plugin.Feed{}, ""},
		{plugin.Feed{Default: "b", Allowed: []string{"a"}}, "default_feed_op: b is none of allowed_feed_ops"},
		{plugin.Feed{Allowed: []string{"b"}}, "allowed_feed_ops: b is no operation that the code describes"},
		{plugin.Feed{Default: "a"}, "allowed_feed_ops: it is missing: without a list a feed calls operations without effects only"},
	} {
		m := &plugin.Manifest{Feed: c.feed, Operations: []*plugin.Operation{known, {Name: "b"}}}
		var got []string
		for _, f := range feedFindings(m) {
			got = append(got, f.String())
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%+v: got %q, want %q", c.feed, got, c.want)
		}
	}
}
