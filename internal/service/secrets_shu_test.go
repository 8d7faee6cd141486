package service

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// TestOfAShuPluginTheCapabilityOpensItsOwnSecretsAlone: it reads any name, the
// user's before the system's, and never one that is another plugin's or, without
// declaring it, one that is there for all.
func TestOfAShuPluginTheCapabilityOpensItsOwnSecretsAlone(t *testing.T) {
	t.Parallel()
	s := keeping(t)
	s.target.Manifest.Contract.SecretsByCapability = true
	s.target.Operation.Secrets = map[string]plugin.SecretNeed{"declared": {AllowedScope: plugin.SecretOfUser}}
	s.target.Manifest.Operations = append(s.target.Manifest.Operations, s.target.Operation)
	own, system := s.target.Manifest.Name, secret.System
	for _, n := range []store.SecretName{
		{Owner: own, Scope: system, Name: "undeclared"},
		{Owner: own, Scope: secret.User, Subject: secret.Subject(s.call.Principal), Name: "undeclared"},
		{Owner: own, Scope: system, Name: "of-system"},
		{Owner: own, Scope: secret.User, Subject: "user::bob", Name: "of-bob"},
		{Owner: secret.Anyone, Scope: system, Name: "of-all"},
		{Owner: secret.Anyone, Scope: secret.User, Subject: secret.Subject(s.call.Principal), Name: "mine-for-all"},
		{Owner: "another", Scope: system, Name: "of-another"},
		{Owner: secret.Anyone, Scope: system, Name: "declared"},
	} {
		n.Tenant = s.call.Tenant
		if err := oneVault().Put(t.Context(), n, n.Scope+" of "+n.Owner, secret.By{}); err != nil {
			t.Fatal(err)
		}
	}
	s.equal("secrets.get", `{"name":"undeclared"}`, `{"found":true,"value":"user of `+own+`"}`)
	s.equal("secrets.get", `{"name":"of-system"}`, `{"found":true,"value":"system of `+own+`"}`)
	s.equal("secrets.get", `{"name":"declared"}`, `{"found":true,"value":"system of *"}`) // allowed_scope counts before the call alone
	for _, name := range []string{"of-bob", "of-all", "mine-for-all", "of-another", "nowhere"} {
		s.equal("secrets.get", `{"name":"`+name+`"}`, `{"found":false}`)
	}
	s.equal("secrets.set", `{"name":"new","value":"v"}`, `{}`)
	s.equal("secrets.get", `{"name":"new"}`, `{"found":true,"value":"v"}`)
	s.equal("secrets.delete", `{"name":"new"}`, `{"deleted":true}`)
	s.equal("secrets.delete", `{"name":"new"}`, `{"deleted":false}`)
	s.equal("secrets.delete", `{"name":"undeclared"}`, `{"deleted":true}`)
	s.equal("secrets.get", `{"name":"undeclared"}`, `{"found":true,"value":"system of `+own+`"}`)
}
