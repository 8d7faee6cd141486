package native

import (
	"net/url"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// webhookOf reads where such a plugin is told, and what that is signed with.
func webhookOf(v contract.Value) plugin.Runner {
	runner := plugin.Runner{Kind: contract.WebhookRunner, Protocol: "2", URL: addressOf(v.Get("url").Required()), Secret: v.Get("secret").Required().Word()}
	for _, key := range []string{"entry", "command", "protocol", "env", "oauth"} {
		if place := v.Get(key); place.There {
			place.Problem("a runner of kind %s has no such key", contract.WebhookRunner)
		}
	}
	return runner
}

// addressOf reads an absolute address of http or https.
func addressOf(v contract.Value) string {
	text := v.Word()
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Fragment != "" {
		v.Problem("%q is no address such as https://hooks.example.com/mortise", contract.Clip(text))
		return ""
	}
	return text
}

// webhook completes the manifest of a plugin that is told of events elsewhere: it
// has hooks, and nothing else.
func webhook(top contract.Value, m *plugin.Manifest) *plugin.Manifest {
	checkWebhooks(top.Get("hooks"), m.Hooks)
	for _, key := range []string{"operations", "capabilities", "isolation", "http", "feed", "requires"} {
		if place := top.Get(key); place.There {
			place.Problem("a plugin behind a webhook has hooks and nothing else")
		}
	}
	return m
}
