package all_test

import (
	"reflect"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

func TestCredentialsOfTheManifest(t *testing.T) {
	t.Parallel()
	const head = "name: a\nversion: 1.0.0\ncapabilities: [http]\noperations: {x: {auth: {provider: google, mode: user}}}\n"
	m, err := contract.Read(dir(t, "manifest.yaml", head+`http:
  hosts: [a.example.com, "b.example.com:8443"]
  inject:
    - {host: a.example.com, header: Authorization, format: "Bearer {}", secret: key}
    - {host: "b.example.com:8443", query: k, secret: other, allowed_scope: system, optional: true}
    - {host: a.example.com, secret: placed}
    - {host: "b.example.com:8443", account: google}
`, "plugin.py", ""))
	if err != nil {
		t.Fatal(err)
	}
	want := []plugin.Injection{
		{Host: "a.example.com", Header: "Authorization", Format: "Bearer {}", Secret: "key", AllowedScope: "system_or_user"},
		{Host: "b.example.com:8443", Query: "k", Secret: "other", AllowedScope: "system", Optional: true},
		{Host: "a.example.com", Secret: "placed", AllowedScope: "system_or_user"},
		{Host: "b.example.com:8443", Header: "Authorization", Format: "Bearer {}", Account: "google"},
	}
	if !reflect.DeepEqual(m.HTTP.Inject, want) {
		t.Errorf("got  %+v\nwant %+v", m.HTTP.Inject, want)
	}
	for _, c := range []struct{ entry, want string }{
		{"{host: c.example.com, header: A, secret: k}", "at /http/inject/0/host: c.example.com is none of hosts"},
		{"{host: a.example.com, header: A}", "at /http/inject/0: it names one credential: a secret, or the provider of an account"},
		{"{host: a.example.com, header: A, secret: k, account: google}", "at /http/inject/0: it names one credential: a secret, or the provider of an account"},
		{"{host: a.example.com, header: A, query: q, secret: k}", "at /http/inject/0: a credential is sent in one place: header or query"},
		{"{host: a.example.com, header: a b, secret: k}", `at /http/inject/0/header: "a b" is no name of a header`},
		{"{host: a.example.com, header: Host, secret: k}", "at /http/inject/0/header: the header Host is the host's own to write"},
		{"{host: a.example.com, format: \"Bearer {}\", secret: k}", "at /http/inject/0/format: without header or query the plugin says how it is sent"},
		{"{host: a.example.com, header: A, format: Bearer, secret: k}", "at /http/inject/0/format: it has {} once, where the credential stands: Bearer {}"},
		{"{host: a.example.com, header: A, secret: k, allowed_scope: mine}", "at /http/inject/0/allowed_scope: \"mine\" is none of user, system, system_or_user"},
		{"{host: a.example.com, account: google, optional: true}", "at /http/inject/0: an operation says under auth whose account it is and whether it does without"},
		{"{host: a.example.com, account: other}", "at /http/inject: no operation declares that it acts with other: auth: {provider: other, mode: user}"},
		{"{host: a.example.com, header: A, secret: k}, {host: a.example.com, header: a, secret: l}", "at /http/inject/1: another one is sent to a.example.com in the same place"},
		{"{host: a.example.com, head: A, secret: k}", "at /http/inject/0/head: unknown key"},
	} {
		_, err := contract.Read(dir(t, "manifest.yaml", head+"http: {hosts: [a.example.com], inject: ["+c.entry+"]}\n", "plugin.py", ""))
		if err == nil || err.Error() != "manifest.yaml: "+c.want {
			t.Errorf("%s:\ngot  %v\nwant manifest.yaml: %s", c.entry, err, c.want)
		}
	}
}
