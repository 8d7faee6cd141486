package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
)

// TestWhatCannotBeMeantIsRefused has one policy a line, each with the place and
// the words of what is wrong with it.
func TestWhatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	const execute = `permit (principal, action == Action::"execute", resource) when `
	for _, c := range []struct{ text, want string }{
		// Syntax.
		{"permit (principal, action, resource)", "a.cedar:1:37: found the end where ; is expected"},
		{"permit (principal, action, resource) foo", "a.cedar:1:38: found foo where ; is expected"},
		{"permit (principal, action, resource);\nforbd (principal, action, resource);", "a.cedar:2:1: found forbd where a policy, permit or forbid, is expected"},
		{"permit (principl, action, resource);", "a.cedar:1:9: found principl where principal is expected"},
		{"// ü\npermit (principal, action, resource)\nwhen { \"ü\" == foo };", "a.cedar:3:15: a value is expected"},
		{"permit (principal, action, resource) when { [1 2] };", "a.cedar:1:48: found 2 where a comma"},
		{"permit (principal, action, resource) when { 99999999999999999999 > 1 };", "a.cedar:1:45: the number is out of range"},
		{"permit (principal, action, resource) when { \"a\" == \"\\q\" };", "a.cedar:1:52: "},
		{"permit (principal, action, resource) when { \"abc };", "a.cedar:1:45: literal not terminated"},
		{"permit (principal, action, resource) when { size(1) };", "a.cedar:1:45: `size` is not a function"},
		{"\xff", "a.cedar:1:1: the text is not UTF-8"},
		{strings.Repeat("(", 1000), "a.cedar:1:65: nested deeper than 64"},
		{execute + "{ " + strings.Repeat("true && ", 6000) + "true };", "more than 10000 words"},
		{strings.Repeat(" ", 1<<20+1), "more than 1048576 bytes"},

		// Names.
		{execute + `{ resource.efects.contains("a") };`, "a.cedar:1:75: attribute `efects` on entity type `Operation` not found"},
		{execute + "{\n  resource.effects.contains(\"a\") &&\n  resource.efects.contains(\"b\") };", "a.cedar:3:12: attribute `efects`"},
		{execute + "{ true } unless {\n resource.kynd == \"tool\" };", "a.cedar:2:11: attribute `kynd`"},
		{`permit (principal, action, resource) when { resource.kind == "tool" };`, "a.cedar:1:54: attribute `kind` on entity type `Plugin` not found; only operations have it"},
		{execute + `{ context.scope.contains("a") };`, "a.cedar:1:74: attribute `scope` in context not found"},
		{execute + `{ principal.name == "a" };`, "a.cedar:1:76: attribute `name`"},
		{`permit (principal, action == Action::"exec", resource);`, "a.cedar:1:38: unrecognized action `Action::\"exec\"`; there are execute, list, approve and configure"},
		{`permit (principal in Rol::"a", action, resource);`, "a.cedar:1:22: unrecognized entity type `Rol`; there are Agent, "},
		{execute + `{ principal in Rol::"a" };`, "a.cedar:1:79: unrecognized entity type `Rol`"},
		{execute + `{ principal is Usr };`, "a.cedar:1:79: unrecognized entity type `Usr`"},
		{execute + `{ principal is Usr in Group::"a" };`, "a.cedar:1:79: unrecognized entity type `Usr`"},
		{`permit (principal, action == Action::"configure", resource == Operation::"a/b");`, "a.cedar:1:1: no such principal can ever do this"},

		// Types and values.
		{execute + `{ context.depth like "1" };`, "a.cedar:1:59: unexpected type"},
		{execute + `{ context.scopes.contains(3) };`, "a.cedar:1:59: the types Long and String are not compatible"},
		{execute + `{ resource.kind == "tol" };`, `a.cedar:1:83: resource.kind is never "tol"; it is one of agent, operator, tool, adapter`},
		{execute + `{ ["tool", "agnt"].contains(resource.kind) };`, `a.cedar:1:75: resource.kind is never "agnt"`},
		{execute + `{ "al" != resource.isolation };`, `a.cedar:1:66: resource.isolation is never "al"`},
		{`permit (principal, action, resource in Effects::"a,,b");`, `a.cedar:1:49: "a,,b" is no list of patterns`},
		{execute + `{ resource in Effects::"[" };`, `is no list of patterns`},

		// Arguments.
		{execute + `{ context.input.amount > 3 };`, "a.cedar:1:80: not every call has the argument amount: ask first, as in `context.input has amount && "},
		{execute + `{ context.input has a && context.input.a == "x" && context.input.a > 3 };`, "a.cedar:1:59: unexpected type"},
		{execute + `{ context == {} };`, "a.cedar:1:66: context is read by its members"},
		{execute + `{ context.input == {} };`, "a.cedar:1:66: context.input is read by its members"},

		// Annotations and names.
		{"@aproval permit (principal, action, resource);", "a.cedar:1:2: there is no annotation @aproval"},
		{"@approval forbid (principal, action, resource);", "a.cedar:1:2: @approval belongs on a permit"},
		{`@untrusted("allow") forbid (principal, action, resource);`, "a.cedar:1:2: @untrusted belongs on a permit"},
		{`@untrusted permit (principal, action, resource);`, "a.cedar:1:2: @untrusted has the one value \"allow\""},
		{`@untrusted("deny") permit (principal, action, resource);`, "a.cedar:1:2: @untrusted has the one value \"allow\""},
		{`@reason("no") permit (principal, action, resource);`, "a.cedar:1:2: @reason belongs on a forbid"},
		{`@id("") permit (principal, action, resource);`, "a.cedar:1:2: @id is a name"},
		{`@id("a\u{1b}[0m") permit (principal, action, resource);`, "a.cedar:1:2: @id is longer than 300 characters or has some that cannot be shown"},
		{"@id(\"a\") permit (principal, action, resource);\n@id(\"a\") permit (principal, action, resource);", "a.cedar:2:1: a: another policy has this @id: a.cedar:1 a"},
	} {
		_, err := policy.Open(policy.Options{Sources: texts(c.text)})
		var problems policy.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.120s\n got  %v\n want %s", c.text, err, c.want)
		}
	}
}

func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	_, err := policy.Open(policy.Options{Sources: texts(
		"permit (principal in Rol::\"a\", action, resource);\n@maybe forbid (principal, action, resource);",
		"permit (principal, action, resource) when { context.dept > 1 };",
	)})
	var problems policy.Problems
	if !errors.As(err, &problems) || len(problems) != 3 || problems[0].Line != 1 || problems[1].Line != 2 || problems[2].File != "b.cedar" {
		t.Errorf("%v", err)
	}
}

// TestWhatCanBeMeantIsTaken has the ways to read arguments.
func TestWhatCanBeMeantIsTaken(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "// nothing\n",
		`permit (principal, action, resource) when { context.input has amount && context.input.amount > 3 };`,
		`permit (principal, action, resource) when { context.input has to.name && context.input.to.name like "a*" };`,
		`permit (principal, action, resource) when { context.input has to && context.input.to.contains("a") };`,
		`permit (principal, action, resource) when { context.input has to && ["a"].contains(context.input.to) };`,
		`permit (principal, action, resource) when { context.input has n && [1].containsAll(context.input.n) };`,
		`permit (principal, action, resource) when { context.input has ok && context.input.ok };`,
		`permit (principal, action, resource) when { context.input has ok && !context.input.ok };`,
		`permit (principal, action, resource) when { context.input has a && -context.input.a + 1 == 3 * context.depth };`,
		`permit (principal, action, resource) when { context.input has "odd name" && context.input["odd name"] == context.tenant };`,
		`permit (principal, action, resource) when { context.input has p && context.input.p.lessThan(decimal("1.5")) };`,
		`permit (principal, action, resource) when { context.input has tag && context.labels.contains(context.input.tag) };`,
		`permit (principal, action, resource) when { if context.input has a then context.input.a == 1 else false };`,
		`permit (principal is User in Group::"a", action == Action::"configure", resource) when { resource.dialect == "native" };`,
		`permit (principal in Tenant::"a", action in [Action::"list", Action::"execute"], resource in Effects::"db_read, cache_*");`,
	} {
		if _, err := policy.Open(policy.Options{Sources: texts(text)}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
