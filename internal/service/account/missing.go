package account

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// missing is the refusal of a call whose account is not there. It says which
// provider, mode and scopes are meant, and what to do.
func missing(provider, mode string, scopes []string, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if mode == User {
		text += "; connect it: mortise connect " + provider
		if len(scopes) > 0 {
			text += " --scopes '" + strings.ReplaceAll(strings.Join(scopes, " "), "'", "") + "'"
		}
	}
	e := plugin.Errorf(plugin.CodeMissingIdentity, "%s", text)
	e.Details = details(provider, mode, scopes)
	return e
}

// supports refuses a mode that there is not with a provider, whatever the plugin
// declares: none with one that is not configured, and that of a user alone with
// Microsoft.
func (a *Accounts) supports(provider, mode string) error {
	p, err := a.provider(provider)
	if err == nil && p.Kind == Microsoft && mode != User {
		err = missing(provider, mode, nil, "%s has accounts of users alone here", provider)
	}
	if err == nil {
		return nil
	}
	e := *plugin.AsError(err)
	e.Details = fmt.Appendf(nil, `{"mode":%q,"unsupported":true}`, mode)
	return &e
}

func details(provider, mode string, scopes []string) json.RawMessage {
	raw, err := json.Marshal(struct {
		Mode     string   `json:"mode"`
		Provider string   `json:"provider"`
		Scopes   []string `json:"scopes"`
	}{mode, provider, append([]string{}, scopes...)})
	if err != nil {
		panic(err) // strings
	}
	return raw
}
