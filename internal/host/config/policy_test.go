package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/host/config"
)

// TestRulesAddToTheDefault: whatever rules and files a configuration has, tools
// need none, until it says otherwise in so many words.
func TestRulesAddToTheDefault(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		standing string
		rules    []policy.Rule
	}{
		"policy: {}":                                {"tools", nil},
		"policy: {files: [a.cedar]}":                {"tools", nil},
		"policy: {allow: []}":                       {"tools", []policy.Rule{}},
		"policy: {files: [a.cedar], allow: [{}]}":   {"tools", []policy.Rule{{}}},
		"policy: {allow: [{operations: [mail/*]}]}": {"tools", []policy.Rule{{Operations: []string{"mail/*"}}}},
		"policy: {default: tools}":                  {"tools", nil},
		"policy: {default: none}":                   {"none", nil},
	} {
		c, err := config.Parse([]byte(text))
		if err != nil || c.Policy.Default != want.standing || !reflect.DeepEqual(c.Policy.Allow, want.rules) {
			t.Errorf("%s: %q, %+v, %v", text, c.Policy.Default, c.Policy.Allow, err)
		}
	}
	if _, err := config.Parse([]byte("policy: {default: all}")); err == nil || !strings.Contains(err.Error(), "policy.default") {
		t.Error(err)
	}
}

func TestGroupsAndRolesAreRead(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte("policy: {groups: {staff: [ann, 'service::bot']}, roles: {sender: [ann]}}"))
	if err != nil || len(c.Policy.Groups["staff"]) != 2 || c.Policy.Roles["sender"][0] != "ann" {
		t.Errorf("%+v, %v", c.Policy, err)
	}
	if _, err := config.Parse([]byte("policy: {files: ['']}")); err == nil || !strings.Contains(err.Error(), "policy.files has an empty name") {
		t.Error(err)
	}
}

// TestConfiguredPrincipalsApproveAndConfigure, unless others are named.
func TestConfiguredPrincipalsApproveAndConfigure(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"":                                    {"local:owner", "local:owner"},
		"tenant: acme":                        {"local:owner", "local:owner"},
		"principal: ann":                      {"ann", "ann"},
		"{principal: ann, policy: {}}":        {"ann", "ann"},
		"policy: {configure: []}":             {"local:owner", ""},
		"approvals: {by: []}":                 {"", "local:owner"},
		"approvals: {by: [ann, 'user::b']}":   {"ann user::b", "local:owner"},
		"policy: {configure: ['service::x']}": {"local:owner", "service::x"},
	} {
		c, err := config.Parse([]byte(text))
		if got := [2]string{strings.Join(c.Approvals.By, " "), strings.Join(c.Policy.Configure, " ")}; err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

func TestApprovalsAndConsentAreRead(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte("{policy: {consent: {ann: [gmail_send]}}, approvals: {self: true, expire: 90m, notify: [bin/tell, -x]}}"))
	if err != nil || c.Policy.Consent["ann"][0] != "gmail_send" || !c.Approvals.Self || time.Duration(c.Approvals.Expire) != 90*time.Minute || c.Approvals.Notify[1] != "-x" {
		t.Errorf("%+v, %v", c, err)
	}
	if d := config.Default().Approvals; d.Self || time.Duration(d.Expire) != 24*time.Hour || d.Notify != nil {
		t.Errorf("%+v", d)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, config.FileName)
	if err := os.WriteFile(path, []byte("approvals: {notify: [bin/tell]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := config.Load(path); err != nil || c.Approvals.Notify[0] != filepath.Join(dir, "bin/tell") {
		t.Errorf("%v, %v", c.Approvals.Notify, err)
	}
	for text, want := range map[string]string{
		"approvals: {by: ['agent::x']}":                "approvals.by: agent::x is an agent, and agents approve nothing",
		"approvals: {by: ['robot::x']}":                `approvals.by: "robot::x" is no principal; write a user's id, service::id or agent::id`,
		"approvals: {by: ['']}":                        `approvals.by: "" is no principal`,
		"approvals: {expire: 0s}":                      "approvals.expire is 0s; it is more than 0s",
		"approvals: {expire: 10000h}":                  "approvals.expire is 10000h0m0s",
		"approvals: {notify: [' ']}":                   "approvals.notify: the program has no name",
		"approvals: {slef: true}":                      "slef",
		"policy: {configure: [' ann']}":                `policy.configure: " ann" is no principal`,
		"policy: {groups: {staff: ['x::ann']}}":        `policy.groups.staff: "x::ann" is no principal`,
		"policy: {groups: {g: ['sender:desk:U1']}}":    `policy.groups.g: "sender:desk:U1" is no principal`,
		"policy: {groups: {g: ['Sender:desk:U1']}}":    `policy.groups.g: "Sender:desk:U1" is no principal`,
		"approvals: {by: ['user::sender:desk:U1']}":    `approvals.by: "user::sender:desk:U1" is no principal`,
		"policy: {groups: {g: ['user::agent::desk']}}": `policy.groups.g: "user::agent::desk" is no principal`,
		"policy: {roles: {r: ['service::']}}":          `policy.roles.r: "service::" is no principal`,
		"policy: {consent: {ann: ['']}}":               `policy.consent.ann: "" is no effect`,
		"policy: {consent: {'': [a]}}":                 `policy.consent: "" is no principal`,
		"policy: {allow: [{untrusted: deny}]}":         `untrusted is "deny"; it is "allow", or not written`,
	} {
		if _, err := config.Parse([]byte(text)); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
