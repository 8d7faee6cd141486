package contract

import "github.com/mortise-dev/mortise/plugin"

// AuthModes are the modes in which an operation acts with an account.
var AuthModes = []string{"user", "service_account", "domain_delegate"}

// SecretScopes are the scopes of a secret.
var SecretScopes = []string{plugin.SecretOfUser, plugin.SecretOfSystem, plugin.SecretOfSystemOrUser}

// SecretNeeds returns the secrets that an operation cannot do without.
func (v Value) SecretNeeds() map[string]plugin.SecretNeed {
	if !v.Mapping() || len(v.Keys()) == 0 {
		return nil
	}
	needs := map[string]plugin.SecretNeed{}
	for _, name := range v.Keys() {
		place, need := v.Get(name), plugin.SecretNeed{AllowedScope: plugin.SecretOfSystemOrUser}
		if reason := BadWord(name); reason != "" {
			place.Problem("%s", reason)
			continue
		}
		if _, isMapping := place.Is.(*Mapping); isMapping {
			if scope := place.Get("allowed_scope"); scope.There {
				need.AllowedScope = scope.OneOf(plugin.SecretOfSystemOrUser, SecretScopes...)
			}
		} else {
			place.Note("a mapping with allowed_scope belongs here, not %s: it is taken for %s", place.Kind(), need.AllowedScope)
		}
		needs[name] = need
	}
	return needs
}
