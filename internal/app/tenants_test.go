package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

// tenants makes tenants on a host, each with a configuration if that is given.
func tenants(t *testing.T, a *app.App, configuration string, names ...string) (made []*app.App) {
	t.Helper()
	for _, name := range names {
		row, err := a.As(a.Principal).Tenants().Create(t.Context(), name)
		if err == nil && configuration != "" {
			err = os.WriteFile(filepath.Join(row.Directory, "mortise.yaml"), []byte(configuration), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		one, err := a.Tenant(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, one)
	}
	return made
}

// Two tenants of one site have things of the same names, and neither has the other's.
func TestTenantsOfOneSiteAreApart(t *testing.T) {
	t.Parallel()
	a := open(t, t.TempDir())
	made := tenants(t, a, "", "acme", "blue")
	acme, blue := made[0], made[1]
	ctx := t.Context()

	register(t, acme, upper(t), false)
	if _, err := blue.As(blue.Principal).Plugins().Show(ctx, "upper"); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("blue sees the plugin of acme: %v", err)
	}
	if _, err := a.As(a.Principal).Plugins().Show(ctx, "upper"); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("the site has the plugin of acme: %v", err)
	}
	call := func(of *app.App) (plugin.Result, error) {
		return of.Kernel.Call(ctx, plugin.Call{Tenant: of.Config.Tenant, Principal: of.Principal, Origin: plugin.OriginCLI, Operation: "upper/upper", Input: json.RawMessage(`{"text":"a"}`), Key: "k"})
	}
	if res, err := call(acme); err != nil || !strings.Contains(string(res.Data), "A") {
		t.Errorf("acme calls its plugin: %s, %v", res.Data, err)
	}
	if _, err := call(blue); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("blue calls the plugin of acme: %v", err)
	}
	register(t, blue, upper(t), false)
	if res, err := call(blue); err != nil || res.Replayed {
		t.Errorf("the key of acme's call is not blue's: %+v, %v", res, err)
	}

	// The same package is in both; deleting it in one leaves it to the other.
	if _, err := acme.As(acme.Principal).Plugins().Delete(ctx, "upper"); err != nil {
		t.Fatal(err)
	}
	if _, err := call(blue); err != nil {
		t.Errorf("acme deleted its plugin, and blue's does not run: %v", err)
	}

	s, err := acme.As(acme.Principal).Sessions().Create(ctx, session.Open{Name: "case"})
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]*app.App{"blue": blue, "the site": a} {
		if _, err := of.As(of.Principal).Sessions().Get(ctx, s.ID); plugin.CodeOf(err) != plugin.CodeNotFound {
			t.Errorf("%s finds the session of acme: %v", name, err)
		}
	}
	for _, of := range made {
		if _, err := of.As(of.Principal).Knowledge().Create(ctx, kb.Base{ID: "notes"}); err != nil {
			t.Errorf("a knowledge base of the same name: %v", err)
		}
		if _, err := of.As(of.Principal).Secrets().Set(ctx, host.SecretPlace{Name: "key"}, "the secret of "+of.Config.Tenant); err != nil {
			t.Errorf("a secret of the same name: %v", err)
		}
	}
	entries, _, err := blue.As(blue.Principal).Ledger().List(ctx, host.EntryQuery{})
	for _, e := range entries {
		if e.Tenant != "blue" {
			t.Errorf("blue reads an entry of %q: %s %s", e.Tenant, e.Kind, e.Subject)
		}
	}
	if err != nil || len(entries) == 0 {
		t.Errorf("blue reads %d entries: %v", len(entries), err)
	}
}

// The owner of a tenant has what the tenant has, and nothing of the site.
func TestATenantsOwnerHasNothingOfTheSite(t *testing.T) {
	t.Parallel()
	a := open(t, t.TempDir())
	acme := tenants(t, a, "", "acme")[0]
	ctx, own := t.Context(), acme.As(acme.Principal)
	for what, try := range map[string]func() error{
		"the heads of the ledger": func() error { _, err := own.Ledger().Heads(ctx); return err },
		"the metrics":             func() error { return own.Admin().MayWatch(ctx) },
		"a backup":                func() error { return own.Admin().MayBackup(ctx) },
		"the recovery":            func() error { _, err := own.Admin().ConfirmRecovery(ctx, "because"); return err },
		"events of the ledger": func() error {
			_, _, err := own.Events().Open(ctx, host.EventQuery{Types: []string{host.EventLedger}})
			return err
		},
		"tenants":          func() error { _, err := own.Tenants().List(ctx); return err },
		"another tenant":   func() error { _, err := own.Tenants().Create(ctx, "mine"); return err },
		"another disabled": func() error { _, err := own.Tenants().Disable(ctx, "acme"); return err },
	} {
		if err := try(); plugin.CodeOf(err) != plugin.CodePolicyDenied {
			t.Errorf("the owner of a tenant has %s: %v", what, err)
		}
	}
	if _, err := own.References().Add(ctx, "hosts", fileOf(t, "hosts.csv", "a,b\n")); err != nil {
		t.Errorf("a tenant has reference data of its own: %v", err)
	}
	if list, err := a.As(a.Principal).References().List(); err != nil || slices.ContainsFunc(list, func(k host.ReferenceKey) bool { return k.Key == "hosts" }) {
		t.Errorf("the site has the reference data of a tenant: %v, %v", list, err)
	}
}

// A tenant that is disabled is not served by the hosts that run, and neither is one whose
// configuration says what is the site's.
func TestATenantIsServedWhileItIsEnabled(t *testing.T) {
	t.Parallel()
	a := open(t, t.TempDir())
	acme := tenants(t, a, "principal: boss\n", "acme")[0]
	ctx := t.Context()
	_, secret, err := acme.As(acme.Principal).Tokens().Create(ctx, host.NewToken{Name: "ci", Scopes: host.Scopes})
	if err != nil {
		t.Fatal(err)
	}
	auth := a.Host.Authenticator()
	c, err := auth.Token(ctx, secret, "1")
	if err != nil || c.Tenant() != "acme" || c.Principal.ID != "boss" || a.Host.For(c).Tenant() != "acme" {
		t.Fatalf("the token of a tenant stands for %+v of %q: %v", c.Principal, c.Tenant(), err)
	}
	if _, err := a.As(a.Principal).Tenants().Disable(ctx, "acme"); err != nil {
		t.Fatal(err)
	}
	a.Forget()
	if _, err := a.Host.Authenticator().Token(ctx, secret, "1"); plugin.CodeOf(err) != plugin.CodeUnauthenticated {
		t.Errorf("the token of a disabled tenant: %v", err)
	}
	if _, err := a.Tenant(ctx, "acme"); !host.IsNotServed(err) {
		t.Errorf("a disabled tenant: %v", err)
	}
	if _, err := a.As(a.Principal).Tenants().Enable(ctx, "acme"); err != nil {
		t.Fatal(err)
	}
	a.Forget()
	if _, err := a.Host.Authenticator().Token(ctx, secret, "1"); err != nil {
		t.Errorf("the token of a tenant that is enabled again: %v", err)
	}

	wrong, err := a.As(a.Principal).Tenants().Create(ctx, "wrong")
	if err == nil {
		err = os.WriteFile(filepath.Join(wrong.Directory, "mortise.yaml"), []byte("sandbox: off\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.Forget()
	if _, err := a.Tenant(ctx, "wrong"); plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(plugin.AsError(err).Err.Error(), "sandbox is the site's") {
		t.Errorf("a tenant that says how the site is walled: %v", err)
	}
}

// --tenant is for the owner of the site, who then acts as the owner of the tenant, or on
// behalf of one of its principals.
func TestOnlyTheOwnerOfTheSiteActsForATenant(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	a := open(t, home)
	tenants(t, a, "policy: {groups: {people: [ann]}}\n", "acme")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for as, want := range map[string]string{"": "owner", "ann": "ann"} {
		of, err := app.Open(t.Context(), app.Options{Home: home, Tenant: "acme", As: as})
		if err != nil {
			t.Fatal(err)
		}
		if of.Principal.ID != want || of.Host.As(of.Principal).Tenant() != "acme" {
			t.Errorf("--tenant acme --as %q acts as %s of %s", as, of.Principal.ID, of.Host.As(of.Principal).Tenant())
		}
		if err := of.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := app.Open(t.Context(), app.Options{Home: home, Tenant: "none"}); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("a tenant that there is not: %v", err)
	}
	a = open(t, home)
	own := a.Host.Guard() // of another owner: who runs this is not they
	guard := &host.Guard{Tenant: own.Tenant, Owner: "another", Names: own.Names, Policy: own.Policy, Store: own.Store}
	if _, err := a.As(a.Principal).Users().Create(t.Context(), "local:owner", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := guard.AtTenant(t.Context(), "acme"); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Errorf("a user of the host who is not its owner acts for a tenant: %v", err)
	}
}
