package all_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/contract/shu"
	"github.com/mortise-dev/mortise/plugin"
)

const digest = `"""What the digest is."""
from __future__ import annotations

PLUGIN_MANIFEST: dict = {
    "name": "mail_digest",  # its directory may be called otherwise
    "version": "1.0",
    "display_name": "Mail " "digest",
    "module": "plugins.mail.plugin:MailPlugin",
    "capabilities": ["http", "auth", "kb", "log", "secrets", "telepathy"],
    "secrets": ["api_key"],
    "default_feed_op": "ingest",
    "allowed_feed_ops": ("ingest", "digest"),
    "chat_callable_ops": ["list"],
    "required_identities": [{"provider": "google", "mode": "user", "scopes": ["a"], "optional": True}],
    "op_auth": {
        "list": {"provider": "google", "mode": "user", "allowed_modes": ["user", "domain_delegate"],
                 "scopes": ["https://www.googleapis.com/auth/gmail.readonly"], "subject_hint": "identity:google_email"},
        "digest": {"secrets": {"token": {"allowed_scope": "user"}, "api_key": {}}},
    },
    "min_host_version": 3,
}
`

func shuDir(t *testing.T, files ...string) string {
	return dir(t, append([]string{"plugin.py", "class MailPlugin: pass\nA = 'https://gmail.googleapis.com/gmail/v1'\n", "manifest.py", digest,
		"tests/test_mail.py", "HOST = 'https://only.in-tests.example'\n"}, files...)...)
}

// read returns the manifest as JSON has it, so that what is stored is compared.
func read(t *testing.T, m *plugin.Manifest) map[string]any {
	t.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	return members
}

func TestShuManifestIsReadWithoutRunningIt(t *testing.T) {
	t.Parallel()
	r, err := contract.Inspect(shuDir(t))
	if err != nil {
		t.Fatal(err)
	}
	m := r.Manifest
	want := &plugin.Manifest{
		Name: "mail_digest", Version: "1.0.0", VersionText: "1.0", DisplayName: "Mail digest", Dialect: "shu", Isolation: plugin.IsolationTenant,
		Runner:       plugin.Runner{Kind: "process", Protocol: "2", Entry: "plugin.py", Module: "plugins.mail.plugin", Class: "MailPlugin"},
		Capabilities: []string{"auth", "cursor", "http", "kb", "secrets"}, // kb implies cursor; log is always there
		HTTP:         plugin.HTTP{Hosts: []string{"gmail.googleapis.com", "www.googleapis.com"}},
		Feed:         plugin.Feed{Default: "ingest", Allowed: []string{"ingest", "digest"}},
		Identities:   []plugin.Auth{{Provider: "google", Mode: "user", Scopes: []string{"a"}, Optional: true}},
	}
	shared := plugin.SecretNeed{AllowedScope: "system_or_user", Optional: true}
	for _, name := range []string{"list", "ingest", "digest"} { // chats, then feeds, as declared
		op := &plugin.Operation{
			Name: name, Kind: plugin.Operator, Timeout: 600e9, Brokered: true,
			Effects: []string{"cursor_write", "http_write", "kb_write", "secret_write"}, Secrets: map[string]plugin.SecretNeed{"api_key": shared},
		}
		want.Operations = append(want.Operations, op)
	}
	want.Operation("digest").Secrets = map[string]plugin.SecretNeed{"api_key": {AllowedScope: "system_or_user"}, "token": {AllowedScope: "user"}}
	want.Operation("list").AutoInvoke = true
	want.Operation("list").Auth = &plugin.Auth{
		Provider: "google", Mode: "user", AllowedModes: []string{"user", "domain_delegate"},
		Scopes: []string{"https://www.googleapis.com/auth/gmail.readonly"}, SubjectHint: "identity:google_email",
	}
	if got, want := read(t, m), read(t, want); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	notes := r.Notes.Error()
	for _, want := range []string{
		`manifest.py: at /capabilities/5: there is no service "telepathy": the plugin does without it`,
		"manifest.py: at /min_host_version: the contract has no such key",
		`manifest.py: at /version: "1.0" is no semantic version: it is taken for 1.0.0`,
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note %q in\n%s", want, notes)
		}
	}
}

func TestAVersionThatIsANumberIsItsText(t *testing.T) {
	t.Parallel()
	r, err := contract.Inspect(dir(t, "manifest.py", `PLUGIN_MANIFEST = {"name": "notes", "version": 1.5, "module": "plugins.notes.plugin:P"}`, "plugin.py", ""))
	if err != nil || r.Manifest.Version != "1.5.0" || r.Manifest.VersionText != "1.5" {
		t.Fatalf("got %+v, %v", r, err)
	}
	if want := `manifest.py: at /version: text belongs here, not the number 1.5: it is taken for the text "1.5"`; !strings.Contains(r.Notes.Error(), want) {
		t.Errorf("no note %q in\n%s", want, r.Notes.Error())
	}
}

func TestShuManifestOfEntrypoints(t *testing.T) {
	t.Parallel()
	for file, manifest := range map[string]string{
		"manifest.yaml": "name: gchat\nversion: 1.0.0\nentrypoints: {gchat: my_gchat.plugin:Plugin}\ncapabilities: [cache]\nsecrets: [key]\n",
		"manifest.json": `{"name":"gchat","version":"1.0.0","entrypoints":{"gchat":"my_gchat.plugin:Plugin"},"capabilities":["cache"]}`,
		"manifest.py":   `PLUGIN_MANIFEST = {"name": "gchat", "version": "1.0.0", "entrypoints": {"gchat": "my_gchat.plugin:Plugin"}, "capabilities": ["cache"]}`,
	} {
		m, err := contract.Read(dir(t, file, manifest, "my_gchat/plugin/__init__.py", "", "my_gchat/__init__.py", ""))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if m.Dialect != shu.Name || m.Runner.Entry != "my_gchat/plugin/__init__.py" || m.Runner.Module != "my_gchat.plugin" ||
			len(m.Operations) != 1 || m.Operations[0].Name != "execute" || len(m.Operations[0].Effects) != 0 {
			t.Errorf("%s: got %+v, %+v", file, m, m.Operations[0])
		}
	}
}

func TestAModuleCalledManifestIsNone(t *testing.T) {
	t.Parallel()
	at := dir(t, "manifest.yaml", "name: a\nversion: 1.0.0\noperations: {x: {}}\n", "plugin.py", "", "manifest.py", "x = 1\n")
	if m, err := contract.Read(at); err != nil || m.Dialect != "native" || !contract.HasManifest(at) {
		t.Errorf("got %v, %v", m, err)
	}
	if contract.HasManifest(dir(t, "manifest.py", "x = 1\n")) {
		t.Error("a module that assigns no manifest is one")
	}
}

func TestWhatShuRefuses(t *testing.T) {
	t.Parallel()
	manifest := func(members string) string {
		return `PLUGIN_MANIFEST = {"name": "a", "version": "1.0.0", "module": "plugins.a.plugin:P", ` + members + `}`
	}
	for _, c := range []struct {
		name  string
		files []string
		want  string
	}{
		{"a reserved name", []string{"manifest.py", `PLUGIN_MANIFEST = {"name": "int", "version": "1", "module": "plugins.a.plugin:P"}`},
			`manifest.py: at /name: "int" is reserved: give the plugin another name`},
		{"a name that is a number", []string{"manifest.py", `PLUGIN_MANIFEST = {"name": 7, "version": "1", "module": "plugins.a.plugin:P"}`},
			"manifest.py: at /name: text belongs here, not the number 7: a plugin is not called by a number"},
		{"another kind's name", []string{"manifest.py", `PLUGIN_MANIFEST = {"name": "mcp-x", "version": "1", "module": "plugins.a.plugin:P"}`},
			`manifest.py: at /name: "mcp-x" begins with mcp-, which names of another kind of plugin do: give it another name`},
		{"a colon", []string{"manifest.py", `PLUGIN_MANIFEST = {"name": "a:b", "version": "1", "module": "plugins.a.plugin:P"}`},
			`manifest.py: at /name: "a:b" holds a colon, which names of operations and sources are made with: give the plugin another name`},
		{"no name, no module", []string{"manifest.py", `PLUGIN_MANIFEST = {}`},
			"manifest.py: at /entrypoints: neither module nor entrypoints says which class the plugin is\nmanifest.py: at /name: it is missing"},
		{"code in place of a literal", []string{"manifest.py", "PLUGIN_MANIFEST = {\n    \"name\": name(),\n}\n"},
			"manifest.py:2:13: name is a name: only literals are read, and nothing is run"},
		{"a module that is not there", []string{"manifest.py", `PLUGIN_MANIFEST = {"name": "a", "version": "1.0.0", "module": "plugins.a.b.c:P"}`},
			"manifest.py: at /module: there is no b/c.py and no b/c/__init__.py in the package"},
		{"a module out of the package", []string{"manifest.py", `PLUGIN_MANIFEST = {"name": "a", "version": "1.0.0", "module": "..os:P"}`},
			`manifest.py: at /module: "..os:P" has not the form`},
		{"operations alike", []string{"manifest.py", manifest(`"op_auth": {"List": {}, "list": {}}`)},
			"manifest.py: at /op_auth/list: list differs from List in letter case only"},
		{"a scope that is none", []string{"manifest.py", manifest(`"op_auth": {"x": {"secrets": {"k": {"allowed_scope": "all"}}}}`)},
			`manifest.py: at /op_auth/x/secrets/k/allowed_scope: "all" is none of user, system, system_or_user`},
		{"an HTTP client", []string{"manifest.py", manifest(""), "util/net.py", "import os\n\ndef f():\n    try:\n        from urllib import parse, request as r\n    except ImportError: pass\n"},
			"util/net.py:5:9: it imports urllib.request: a plugin reaches the network through host.http alone"},
		{"the host, in vendor too", []string{"manifest.py", manifest(""), "vendor/x/__init__.py", "import shu_plugin_sdk, urllib.parse\nfrom shu.core import db\n"},
			"vendor/x/__init__.py:2:1: it imports shu.core.db: a plugin has no part of its host but what execute is given; shu_plugin_sdk is there for it"},
		{"imports by other names", []string{"manifest.py", manifest(""), "a.py", "x = __import__('htt' 'px')\n", "b.py", "from importlib import import_module\nx = import_module('shu.core')\n", "c.py", "import urllib3;import requests as q\n"},
			"a.py:1:5: it imports httpx: a plugin reaches the network through host.http alone\n" +
				"b.py:2:5: it imports shu.core: a plugin has no part of its host but what execute is given; shu_plugin_sdk is there for it\n" +
				"c.py:1:1: it imports urllib3: a plugin reaches the network through host.http alone\n" +
				"c.py:1:16: it imports requests: a plugin reaches the network through host.http alone"},
		{"code that cannot be read", []string{"manifest.py", manifest(""), "a.py", "x = '''\n"},
			"a.py:1:5: the text does not end, so that what it imports is not known"},
	} {
		_, err := contract.Read(dir(t, append([]string{"plugin.py", ""}, c.files...)...))
		var problems contract.Problems
		if !errors.As(err, &problems) || !strings.HasPrefix(problems.Error(), c.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestImportsThatAreFine(t *testing.T) {
	t.Parallel()
	code := `"""import requests"""
# import httpx
import json, urllib.parse
from urllib import parse
from shu_plugin_sdk import PluginResult
from . import requests
from .shu import x
import requests_like, shuffle, importlib_like
text = "__import__('requests')"
import urllib, urllib.error, urllib.response, urllib.robotparser
from urllib import error, robotparser as robots
from urllib.error import HTTPError, URLError
import importlib, importlib.metadata, importlib.util as u
from importlib import resources, import_module
own = import_module(".client", __package__), importlib.import_module("json")
`
	if _, err := contract.Read(shuDir(t, "extra.py", code, ".venv/x.py", "import requests")); err != nil {
		t.Error(err)
	}
}

// shuDescribed is what a plugin's code says: operations by name, as the wire has them.
func shuDescribed(t *testing.T, operations string) contract.Described {
	t.Helper()
	d, err := contract.ParseDescribed([]byte(`{"plugins":[{"name":"mail_digest","version":"9.9.9","operations":`+operations+`}]}`), "mail_digest")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestShuCodeHasTheSchemasAndTheActions(t *testing.T) {
	t.Parallel()
	m, err := contract.Read(shuDir(t))
	if err != nil {
		t.Fatal(err)
	}
	if !contract.NeedsDescribe(m) {
		t.Error("the code is not asked")
	}
	schema := `{"type":"object","properties":{"op":{"enum":["list","ingest","digest","purge"]},"n":{"type":["integer","null"],"x-ui":{"help":"how many"}}},"required":["op","n"]}`
	d := shuDescribed(t, `{
		"list": {"kind":"operator","input":{"type":"object","title":"List","description":"List what there is.","additionalProperties":false}},
		"ingest": {"kind":"operator","input":`+schema+`,"output":{"type":"object"}},
		"digest": {"kind":"operator","input":`+schema+`},
		"purge": {"kind":"tool","effects":["everything"],"input":`+schema+`},
		"send": {"kind":"operator","description":"Send.","preview":true,"policy_tags":["requires_approval","action"],"permissions":["mail:send"],"input":{"type":"object"}}}`)
	merged, err := contract.Merge(m, d)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, op := range merged.Operations {
		names = append(names, op.Name)
		if op.Kind != plugin.Operator || !op.Brokered || !slices.Equal(op.Effects, m.Operations[0].Effects) {
			t.Errorf("%s: the code decided what it may do: %+v", op.Name, op)
		}
	}
	if !slices.Equal(names, []string{"list", "ingest", "digest", "purge", "send"}) {
		t.Errorf("operations %v", names)
	}
	list, send, ingest := merged.Operation("list"), merged.Operation("send"), merged.Operation("ingest")
	if list.Title != "List" || list.Description != "List what there is." || list.Auth == nil || !list.AutoInvoke {
		t.Errorf("%+v", list)
	}
	if !send.Preview || !slices.Equal(send.PolicyTags, []string{"action", "requires_approval"}) || !slices.Equal(send.Permissions, []string{"mail:send"}) {
		t.Errorf("%+v", send)
	}
	if !strings.HasSuffix(string(ingest.Input), `"required":["n"]}`) || string(ingest.Output) != `{"type":"object"}` {
		t.Errorf("input %s, output %s", ingest.Input, ingest.Output)
	}
	if got := merged.Operation("purge").Secrets; len(got) != 1 || !got["api_key"].Optional {
		t.Errorf("secrets %v", got)
	}
	if merged.Version != "1.0.0" || len(m.Operations) != 3 {
		t.Errorf("the manifest was changed, or its version: %s, %d", merged.Version, len(m.Operations))
	}
	again, err := contract.Merge(merged, d)
	if err != nil || !reflect.DeepEqual(read(t, again), read(t, merged)) {
		t.Errorf("merging again: %v\n%v\n%v", err, read(t, again), read(t, merged))
	}
}

func TestASchemaOfAShuOperationSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	m, err := contract.Read(shuDir(t))
	if err != nil {
		t.Fatal(err)
	}
	titled := `{"kind":"operator","input":{"type":"object","title":"T","description":"D"}}`
	_, err = contract.Merge(m, shuDescribed(t, `{"list":{"kind":"operator","input":{"type":"object","title":"T"}},"ingest":`+titled+`,"digest":{"kind":"operator","input":{}}}`))
	want := `code: at /operations/digest/input: feeds call it, so get_schema_for_op("digest") has to return a schema with a title and a description, or get_schema() one whose property op has an enum
code: at /operations/list/input: chats call it, so get_schema_for_op("list") has to return a schema with a title and a description, or get_schema() one whose property op has an enum`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	merged, err := contract.Merge(m, shuDescribed(t, `{"list":{"kind":"operator"},"ingest":`+titled+`,"digest":{"kind":"operator"}}`))
	if err != nil || merged.Operation("list").Input != nil || merged.Operation("digest").Input != nil {
		t.Errorf("operations of chats and feeds without a schema: %v", err)
	}
}

func TestShuPlaceholderGivesWayToTheCode(t *testing.T) {
	t.Parallel()
	m, err := contract.Read(dir(t, "plugin.py", "", "manifest.py", `PLUGIN_MANIFEST = {"name": "mail_digest", "version": "1.0.0", "module": "plugins.x.plugin:P"}`))
	if err != nil {
		t.Fatal(err)
	}
	for said, want := range map[string]string{
		`{"a":{"kind":"operator"},"b":{"kind":"operator"}}`:                    "a b",
		`{"execute":{"kind":"operator"}}`:                                      "execute",
		`{"send":{"kind":"operator","preview":true,"policy_tags":["action"]}}`: "send",
	} {
		merged, err := contract.Merge(m, shuDescribed(t, said))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, op := range merged.Operations {
			names = append(names, op.Name)
		}
		if strings.Join(names, " ") != want {
			t.Errorf("%s: got %v", said, names)
		}
	}
}

// Published hosts look for a module below plugins.DIRECTORY: another place is noted, for the key
// module alone, since entrypoints name any package.
func TestAShuModuleElsewhereIsNoted(t *testing.T) {
	t.Parallel()
	for key, noted := range map[string]bool{
		`"module": "plugins.a.plugin:P"`: false, `"module": "plugins.b.plugin:P"`: false, `"module": "plugins.a:P"`: true,
		`"module": "plugin:P"`: true, `"module": "pluginsx.a.plugin:P"`: true, `"module": "a.plugin:P"`: true,
		`"entrypoints": {"a": "a.plugin:P"}`: false,
	} {
		r, err := contract.Inspect(dir(t, "manifest.py", `PLUGIN_MANIFEST = {"name": "a", "version": "1.0.0", `+key+`}`,
			"plugin.py", "", "__init__.py", "", "a/plugin.py", "", "pluginsx/a/plugin.py", ""))
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		found := false
		for _, note := range r.Notes {
			found = found || note.Pointer == "/module" && strings.Contains(note.Reason, "below plugins.DIRECTORY")
		}
		if found != noted {
			t.Errorf("%s: noted is %t, want %t: %v", key, found, noted, r.Notes)
		}
	}
}
