package all_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
)

func TestHostsOfTheManifest(t *testing.T) {
	t.Parallel()
	const hosts = "capabilities: [http]\nhttp: {hosts: [api.example.com, .example.com, \"api.example.com:8443\", 192.0.2.1, \"[2001:db8::1]:8443\", localhost]}\n"
	for _, manifest := range []string{
		"name: a\nversion: 1.0.0\noperations: {x: {}}\n" + hosts,
		"name: a\nversion: 1.0.0\ntype: operator\neffects: [http_write]\n" + hosts,
	} {
		r, err := contract.Inspect(dir(t, "manifest.yaml", manifest, "plugin.py", ""))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"api.example.com", ".example.com", "api.example.com:8443", "192.0.2.1", "[2001:db8::1]:8443", "localhost"}
		if got := r.Manifest.HTTP.Hosts; !slices.Equal(got, want) || len(r.Notes) != 0 {
			t.Errorf("got %q, notes %v", got, r.Notes)
		}
	}
}

func TestHostsThatAreNone(t *testing.T) {
	t.Parallel()
	const head = "name: a\nversion: 1.0.0\ncapabilities: [http]\noperations: {x: {}}\n"
	for _, c := range []struct{ http, want string }{
		{"[a.example]", "at /http: a mapping belongs here, not a list"},
		{"{host: [a.example]}", "at /http/host: unknown key; did you mean hosts?"},
		{"{hosts: a.example}", "at /http/hosts: a list belongs here, not text"},
		{"{hosts: [7, a.example, a.example]}", "at /http/hosts/0: text belongs here, not the number 7: put it in quotes\nmanifest.yaml: at /http/hosts/2: \"a.example\" stands here twice"},
		{`{hosts: ["https://a.example/x"]}`, `at /http/hosts/0: "https://a.example/x" is no host: write the name alone, such as api.example.com, without https:// and without a path`},
		{`{hosts: ["*.example.com"]}`, `at /http/hosts/0: "*.example.com" is no host: write .example.com for all hosts below example.com`},
		{`{hosts: [".com"]}`, `at /http/hosts/0: ".com" is no host: everything below .com is more than a manifest may ask for`},
		{`{hosts: [A.example]}`, `at /http/hosts/0: "A.example" is no host: write it in lower case`},
		{`{hosts: ["a.example:0443"]}`, `at /http/hosts/0: "a.example:0443" is no host: "0443" is no port`},
		{`{hosts: ["0x7f.1"]}`, `at /http/hosts/0: "0x7f.1" is no host: an IPv4 address is written as four decimal numbers, 192.0.2.1`},
		{`{hosts: ["bücher.example"]}`, `at /http/hosts/0: "bücher.example" is no host: a name of other letters is written in its ASCII form, xn--`},
	} {
		_, err := contract.Read(dir(t, "manifest.yaml", head+"http: "+c.http+"\n", "plugin.py", ""))
		if err == nil || err.Error() != "manifest.yaml: "+c.want {
			t.Errorf("%s:\ngot  %v\nwant manifest.yaml: %s", c.http, err, c.want)
		}
	}
}

func TestHostsAndTheCapabilityGoTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ keys, want string }{
		{"capabilities: [http]", "it asks for http and names no host"},
		{"http: {hosts: [a.example]}", "capabilities does not ask for http"},
		{"description: x", ""},
	} {
		r, err := contract.Inspect(dir(t, "manifest.yaml", "name: a\nversion: 1.0.0\noperations: {x: {}}\n"+c.keys+"\n", "plugin.py", ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Notes.Error(); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: notes %q, want %q", c.keys, got, c.want)
		}
	}
}
