package secret

import "github.com/mortise-dev/mortise/plugin"

// NeedOf returns what a plugin needs for a principal: a secret of the user or of the
// system, where its manifest does not say which.
func NeedOf(tenant, pluginName string, who plugin.Principal, name, scope string) Need {
	if scope == "" {
		scope = plugin.SecretOfSystemOrUser
	}
	return Need{Tenant: tenant, Plugin: pluginName, Subject: Subject(who), Name: name, Scope: scope}
}
