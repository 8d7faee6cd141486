package dialect

import (
	"net/url"

	"github.com/mortise-dev/mortise/plugin"
)

// webhookRunner is the kind of runner of plugins that stand elsewhere and are
// told of events.
const webhookRunner = "webhook"

// webhookRunner reads where such a plugin is told, and what that is signed with.
func (v value) webhookRunner() plugin.Runner {
	runner := plugin.Runner{Kind: webhookRunner, Protocol: "2", URL: v.get("url").required().address(), Secret: v.get("secret").required().word()}
	for _, key := range []string{"entry", "command", "protocol"} {
		if place := v.get(key); place.there {
			place.problem("a runner of kind %s has no such key", webhookRunner)
		}
	}
	return runner
}

// address reads an absolute address of http or https.
func (v value) address() string {
	text := v.word()
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Fragment != "" {
		v.problem("%q is no address such as https://hooks.example.com/mortise", clip(text))
		return ""
	}
	return text
}

// webhook completes the manifest of a plugin that is told of events elsewhere: it
// has hooks, and nothing else.
func (p *page) webhook(top value, m *plugin.Manifest) *plugin.Manifest {
	top.get("hooks").webhooked(m.Hooks)
	for _, key := range []string{"operations", "capabilities", "isolation", "http", "feed", "requires"} {
		if place := top.get(key); place.there {
			place.problem("a plugin behind a webhook has hooks and nothing else")
		}
	}
	return m
}
