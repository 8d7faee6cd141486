package check_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/surface/check"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// listening lets a plugin hear of events, well or badly.
func listening(p *mortise.Plugin, role string) {
	veto := func(v mortise.Verdict, err error) {
		mortise.Veto(p, "tool.before@v1", func(*mortise.Call, mortise.Payload) (mortise.Verdict, error) { return v, err })
	}
	switch role {
	case "only_hears":
		veto(mortise.Verdict{Allow: true}, nil)
	case "hears":
		veto(mortise.Verdict{Allow: true}, nil)
		mortise.Transform(p, "channel.message.in@v1", func(_ *mortise.Call, p mortise.Payload) (mortise.Payload, error) { return p.With("text", "x") })
		mortise.Listen(p, "session.opened@v1", func(*mortise.Call, mortise.Payload) error { return nil })
	case "refuses":
		veto(mortise.Verdict{Reason: "never"}, nil)
	case "fails_to_hear":
		veto(mortise.Verdict{}, mortise.Errorf("NO_RULES", "it did not look"))
	case "hears_nothing_more":
		mortise.Veto(p, "tool.before@v1", func(*mortise.Call, mortise.Payload) (mortise.Verdict, error) {
			testwait.Block() // it never answers
			return mortise.Verdict{}, nil
		})
	case "mishears":
		mortise.Transform(p, "channel.message.in@v1", func(*mortise.Call, mortise.Payload) (mortise.Payload, error) {
			return mortise.Payload(`{"text":7}`), nil
		})
	}
}

func TestEachHookIsAskedForItsExample(t *testing.T) {
	t.Parallel()
	const veto = "hooks: [{event: tool.before@v1, deadline: 60s}]\n"
	const hasty = "hooks: [{event: tool.before@v1, deadline: 1s}]\n"
	const answers = ": answers its event: "
	for _, c := range []struct {
		role, hooks string
		want        []string
	}{
		{"hears", "hooks: [{event: tool.before@v1}, {event: channel.message.in@v1}, {event: session.opened@v1}]\n", []string{
			"pass text.count: tool.before@v1" + answers + "it allowed it", "pass text.count: channel.message.in@v1" + answers + "it changed text",
			"pass text.count: session.opened@v1" + answers + "it heard it", "pass text.count: its code is what the manifest says: ",
		}},
		{"refuses", veto, []string{"pass text.count: tool.before@v1" + answers + "it refused: never"}},
		{"fails_to_hear", veto, []string{"fail text.count: tool.before@v1" + answers + "plugin_error (NO_RULES): it did not look"}},
		{"hears_nothing_more", hasty, []string{"fail text.count: tool.before@v1" + answers + "timeout: text.count/tool.before@v1: the plugin did not answer the hook in time"}},
		{"mishears", "hooks: [{event: channel.message.in@v1}]\n", []string{"fail text.count: channel.message.in@v1" + answers + "invalid_output: "}},
		{"good", veto, []string{"fail text.count: tool.before@v1" + answers + "tool_not_exposed: "}},
		{"refuses", "", []string{"fail text.count: its code is what the manifest says: invalid_input: the code has a hook of tool.before@v1 and the manifest does not name it"}},
	} {
		t.Run(strings.TrimSpace(c.role+" "+c.hooks), func(t *testing.T) {
			t.Parallel()
			dir, own := t.TempDir(), files(c.role)
			own["manifest.yaml"] += c.hooks
			write(t, dir, own)
			got := outcomes(t, dir, check.Options{})
			for _, want := range c.want {
				if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, want) }) {
					t.Errorf("there is no %q in\n%s", want, strings.Join(got, "\n"))
				}
			}
		})
	}
}

// A plugin may have hooks and nothing else.
func TestAPluginOfHooksAloneIsChecked(t *testing.T) {
	t.Parallel()
	dir, own := t.TempDir(), files("only_hears")
	head, _, _ := strings.Cut(own["manifest.yaml"], "operations:")
	write(t, dir, map[string]string{"manifest.yaml": head})
	got := outcomes(t, dir, check.Options{})
	want := "pass text.count: tool.before@v1: answers its event: it allowed it"
	if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, want) }) || strings.Contains(strings.Join(got, "\n"), "fail ") {
		t.Errorf("there is no %q, or a failure, in\n%s", want, strings.Join(got, "\n"))
	}
}
