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
