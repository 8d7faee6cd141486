package policy_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
)

// Each name that a policy speaks of is held against those there are, where it stands
// in the scope, in a condition, or comes of a rule in short.
func TestNamesThatThereAreNotAreFoundWithTheirPlace(t *testing.T) {
	t.Parallel()
	known := policy.Known{
		Groups: []string{"accountants"}, Roles: []string{"sender"}, Plugins: []string{"mail", "Email.ApplyDraft"}, Operations: []string{"mail/send"},
		Effects: []string{"gmail_send", "db_write"}, Agents: []string{"support"},
	}
	fine := `permit (principal in Group::"accountants", action, resource in Plugin::"mail") when { resource.effects.contains("db_write") };
permit (principal in Role::"sender", action, resource == Operation::"mail/send") when { principal == Agent::"support" };
permit (principal, action, resource in Effects::"gmail_*, db_write");`
	if problems, warnings := policy.Names([]policy.Document{{Name: "fine.cedar", Text: []byte(fine)}}, known); len(problems)+len(warnings) > 0 {
		t.Errorf("%v, %v", problems, warnings)
	}
	for text, want := range map[string]string{
		`permit (principal in Group::"acountants", action, resource);`:                                                `f:1:22: there is no group "acountants"; did you mean accountants?`,
		"permit (principal, action, resource)\nunless { principal in Role::\"senders\" };":                            `f:2:23: there is no role "senders"; did you mean sender?`,
		`permit (principal, action, resource in Plugin::"Email.AplyDraft");`:                                          `there is no plugin "Email.AplyDraft"; did you mean Email.ApplyDraft?`,
		`permit (principal, action, resource == Operation::"mail/sned");`:                                             `there is no operation "mail/sned"; did you mean mail/send?`,
		`permit (principal == Agent::"suport", action, resource);`:                                                    `there is no agent "suport"; did you mean support?`,
		`permit (principal, action, resource in Effects::"gmail_send, db_wirte");`:                                    `there is no effect "db_wirte"; did you mean db_write?`,
		`permit (principal, action == Action::"execute", resource) when { resource.effects.contains("gmail_sent") };`: `there is no effect "gmail_sent"; did you mean gmail_send?`,
	} {
		problems, warnings := policy.Names([]policy.Document{{Name: "f", Text: []byte(text)}}, known)
		closed := strings.Contains(want, "no group") || strings.Contains(want, "no role")
		found := warnings
		if closed {
			found = problems
		}
		if len(problems)+len(warnings) != 1 || len(found) != 1 || !strings.Contains(found[0].Error(), want) {
			t.Errorf("%s: %v, %v; want %q", text, problems, warnings, want)
		}
	}
	rules, err := policy.Rules([]policy.Rule{{Operations: []string{"mial/send", "mali"}, Effects: []string{"gmail_send"}}})()
	if err != nil {
		t.Fatal(err)
	}
	if problems, warnings := policy.Names(rules, known); len(problems) != 0 || len(warnings) != 2 {
		t.Errorf("rules: %v, %v", problems, warnings)
	}
	if _, warnings := policy.Names(rules, policy.Known{}); len(warnings) != 0 {
		t.Errorf("without a registry: %v", warnings)
	}
}
