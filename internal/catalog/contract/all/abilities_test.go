package all_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

func TestAbilitiesOfTheManifest(t *testing.T) {
	t.Parallel()
	for _, manifest := range []string{
		"name: a\nversion: 1.0.0\noperations: {a: {kind: operator, preview: true, reconcile: true, brokered: true, labels: [untrusted, private]}}\n",
		"name: a\nversion: 1.0.0\ntype: operator\npreview: true\nreconcile: true\nbrokered: true\nlabels: [untrusted, private]\n",
	} {
		m, err := contract.Read(dir(t, "manifest.yaml", manifest, "plugin.py", ""))
		if err != nil {
			t.Fatal(err)
		}
		op := m.Operations[0]
		if !op.Preview || !op.Reconcile || !op.Brokered || !slices.Equal(op.Labels, []string{"private", "untrusted"}) {
			t.Errorf("%s: %+v", manifest, op)
		}
	}
	for _, manifest := range []string{
		"name: a\nversion: 1.0.0\noperations: {a: {kind: agent, allowed_actions: [Mail.Send@1.x, b/c]}}\n",
		"name: a\nversion: 1.0.0\ntype: agent\nallowed_actions: [Mail.Send@1.x, b/c]\n",
	} {
		m, err := contract.Read(dir(t, "manifest.yaml", manifest, "plugin.py", ""))
		if err != nil || !slices.Equal(m.Operations[0].AllowedActions, []string{"Mail.Send@1.x", "b/c"}) {
			t.Errorf("%s: %+v, %v", manifest, m, err)
		}
	}
}

func TestAbilitiesThatCannotBe(t *testing.T) {
	t.Parallel()
	const head = "name: a\nversion: 1.0.0\n"
	for _, c := range []struct{ manifest, want string }{
		{"operations: {x: {kind: tool, preview: true}}", "at /operations/x/preview: only an operator can have it, and this is of kind tool"},
		{"operations: {x: {kind: agent, reconcile: true}}", "at /operations/x/reconcile: only an operator can have it, and this is of kind agent"},
		{"operations: {x: {kind: adapter, brokered: true}}", "at /operations/x/brokered: only an operator can have it, and this is of kind adapter"},
		{"operations: {x: {kind: operator, preview: yes please}}", "at /operations/x/preview: true or false belongs here, not text"},
		{"operations: {x: {kind: operator, allowed_actions: [b]}}", "at /operations/x/allowed_actions: only an agent proposes actions, and this is of kind operator"},
		{"operations: {x: {kind: agent, allowed_actions: [b@]}}", "at /operations/x/allowed_actions/0: \"b@\" names no version after the @"},
		{"operations: {x: {labels: [secret, private, private]}}", "at /operations/x/labels/0: \"secret\" is none of untrusted, private\nmanifest.yaml: at /operations/x/labels/2: \"private\" stands here twice"},
		{"runner: {entry: plugin.py, protocol: 1}\noperations: {x: {kind: operator, preview: true, reconcile: true}}",
			"at /operations/x/preview: a plugin of protocol 1 cannot have it: it takes protocol 2\nmanifest.yaml: at /operations/x/reconcile: a plugin of protocol 1 cannot have it: it takes protocol 2"},
		{"type: tool\nreconcile: true", "at /reconcile: only an operator can have it, and this is of kind tool"},
		{"type: operator\nrunner: {entry: plugin.py, protocol: 1}\nbrokered: true", "at /brokered: a plugin of protocol 1 cannot have it: it takes protocol 2"},
	} {
		_, err := contract.Read(dir(t, "manifest.yaml", head+c.manifest+"\n", "plugin.py", ""))
		if err == nil || err.Error() != "manifest.yaml: "+c.want {
			t.Errorf("%s:\ngot  %v\nwant manifest.yaml: %s", c.manifest, err, c.want)
		}
	}
}

func TestIdempotencyHeaders(t *testing.T) {
	t.Parallel()
	const head = "name: a\nversion: 1.0.0\ncapabilities: [http]\noperations: {x: {}}\n"
	m, err := contract.Read(dir(t, "manifest.yaml", head+"http: {hosts: [api.example.com, \"b.example:8443\"], idempotency: {api.example.com: Idempotency-Key, \"b.example:8443\": x-request-id}}\n", "plugin.py", ""))
	if got := fmt.Sprint(m.HTTP.Idempotency); err != nil || got != "map[api.example.com:Idempotency-Key b.example:8443:x-request-id]" {
		t.Errorf("%s, %v", got, err)
	}
	for _, c := range []struct{ idempotency, want string }{
		{"{other.example: Key}", "at /http/idempotency/other.example: other.example is none of hosts"},
		{"{api.example.com: a b}", "at /http/idempotency/api.example.com: \"a b\" is no name of a header"},
		{"{api.example.com: \"Key:\"}", "at /http/idempotency/api.example.com: \"Key:\" is no name of a header"},
		{"{api.example.com: content-length}", "at /http/idempotency/api.example.com: the header content-length is not a plugin's to send"},
		{"{api.example.com: \"\"}", "at /http/idempotency/api.example.com: it is empty"},
		{"Idempotency-Key", "at /http/idempotency: a mapping belongs here, not text"},
	} {
		_, err := contract.Read(dir(t, "manifest.yaml", head+"http: {hosts: [api.example.com], idempotency: "+c.idempotency+"}\n", "plugin.py", ""))
		if err == nil || err.Error() != "manifest.yaml: "+c.want {
			t.Errorf("%s:\ngot  %v\nwant manifest.yaml: %s", c.idempotency, err, c.want)
		}
	}
}

const abilities = `{"plugins":[{"name":"p","version":"1.0.0","operations":{
 "send":{"kind":"operator","preview":true,"reconcile":true,"brokered":true,"labels":["untrusted"]},
 "decide":{"kind":"agent","allowed_actions":["p/send"],"context_fields":["student.profile"]}}}]}`

func TestCodeSaysWhatItCanDo(t *testing.T) {
	t.Parallel()
	d, err := contract.ParseDescribed([]byte(abilities), "p")
	if err != nil {
		t.Fatal(err)
	}
	// Where the manifest names no operation, all of it counts.
	m, err := contract.Merge(&plugin.Manifest{Name: "p", Version: "1.0.0"}, d)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(map[string]any{"operations": m.Operations, "requires": m.Requires})
	want := `{"operations":[{"name":"decide","kind":"agent","timeout":120000000000,"allowed_actions":["p/send"]},` +
		`{"name":"send","kind":"operator","timeout":120000000000,"preview":true,"reconcile":true,"brokered":true,"labels":["untrusted"]}],"requires":{"context_fields":["student.profile"]}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	// Where it does, the code may only narrow it.
	declared := func() *plugin.Manifest {
		return &plugin.Manifest{Name: "p", Version: "1.0.0", Operations: []*plugin.Operation{
			{Name: "decide", Kind: plugin.Agent, AllowedActions: []string{"p/send", "other"}},
			{Name: "send", Kind: plugin.Operator, Preview: true, Reconcile: true, Brokered: true, Labels: []string{"private"}},
		}}
	}
	m, err = contract.Merge(declared(), d)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Operation("send").Labels; !slices.Equal(got, []string{"private", "untrusted"}) {
		t.Errorf("labels %q", got)
	}
	if got := m.Requires.ContextFields; !slices.Equal(got, []string{"student.profile"}) {
		t.Errorf("context fields %q", got)
	}
	for _, c := range []struct {
		change func(*plugin.Manifest)
		want   string
	}{
		{func(m *plugin.Manifest) { m.Operations[1].Preview = false }, `code: at /operations/send/preview: the code says true, the manifest does not`},
		{func(m *plugin.Manifest) { m.Operations[1].Reconcile = false }, `code: at /operations/send/reconcile: the code says true, the manifest does not`},
		{func(m *plugin.Manifest) { m.Operations[1].Brokered = false }, `code: at /operations/send/brokered: the code says true, the manifest does not`},
		{func(m *plugin.Manifest) { m.Operations[0].AllowedActions = nil }, `code: at /operations/decide/allowed_actions: the code says "p/send", the manifest does not`},
		{func(m *plugin.Manifest) { m.Requires.ContextFields = []string{"a"} }, `code: at /operations/decide/context_fields: the code says "student.profile", the manifest does not`},
	} {
		m := declared()
		c.change(m)
		if _, err := contract.Merge(m, d); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}

	// What cannot be is refused of the code too.
	d, err = contract.ParseDescribed([]byte(`{"plugins":[{"name":"p","operations":{
		"a":{"kind":"tool","preview":true,"labels":["secret"],"context_fields":["x"]},"b":{"kind":"operator","allowed_actions":["c"]},"c":{"kind":"agent","allowed_actions":["d@"]}}}]}`), "p")
	if err != nil {
		t.Fatal(err)
	}
	_, err = contract.Merge(&plugin.Manifest{}, d)
	for _, want := range []string{
		"/operations/a/preview: only an operator", "/operations/a/labels: \"secret\" is none of", "/operations/a/context_fields: only an agent",
		"/operations/b/allowed_actions: only an agent", "/operations/c/allowed_actions: \"d@\" names no version",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}
