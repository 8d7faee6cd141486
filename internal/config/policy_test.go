package config_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/policy"
)

// TestTheDefaultRuleStandsAlone: it holds where neither files nor rules are
// named, and is added to nothing.
func TestTheDefaultRuleStandsAlone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]policy.Rule{
		"policy: {}":                                policy.Default,
		"policy: {files: []}":                       policy.Default,
		"policy: {roles: {sender: [ann]}}":          policy.Default,
		"policy: {files: [a.cedar]}":                nil,
		"policy: {allow: []}":                       {},
		"policy: {files: [a.cedar], allow: []}":     {},
		"policy: {files: [a.cedar], allow: [{}]}":   {{}},
		"policy: {allow: [{operations: [mail/*]}]}": {{Operations: []string{"mail/*"}}},
	} {
		c, err := config.Parse([]byte(text))
		if err != nil || !reflect.DeepEqual(c.Policy.Allow, want) {
			t.Errorf("%s: %+v, %v", text, c.Policy.Allow, err)
		}
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
