package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/plugin"
)

// A host that reads its configuration again reads those of its tenants too: each has its own
// quotas and policies from the next call on, and where one file is wrong nothing changes.
func TestReloadReadsTheFilesOfTenants(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	site := filepath.Join(home, config.FileName)
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(site, "quotas: {default: {day: 100}, principals: {\"local:owner\": {day: 1}, owner: {day: 1}}}\npolicy: {groups: {people: [owner]}}\n")
	a := open(t, home)
	made := tenants(t, a, "", "acme", "blue")
	acme, blue := made[0], made[1]
	own := filepath.Join(home, "tenants", "acme", config.FileName)
	n := 0
	call := func(of *app.App) error {
		n++
		_, err := of.Kernel.Call(t.Context(), plugin.Call{Tenant: of.Config.Tenant, Principal: of.Principal, Origin: plugin.OriginCLI, Operation: "upper/upper", Input: json.RawMessage(fmt.Sprintf(`{"text":"%d"}`, n))})
		return err
	}
	for _, of := range made {
		register(t, of, upper(t), false)
		for range 3 { // the site's bound of a principal of that name is not of theirs
			if err := call(of); err != nil {
				t.Fatal(err)
			}
		}
	}
	put := func(config.Config) (func(), error) { return func() {}, nil }

	write(own, "quotas: {total: {day: 1}}\n")
	report, err := a.Reload(put)
	if err != nil || !slices.Contains(report.Changed, "tenant acme: quotas.total") || slices.ContainsFunc(report.Changed, func(key string) bool { return strings.Contains(key, "blue") }) {
		t.Errorf("it reports %+v, %v", report, err)
	}
	if err := call(acme); err != nil {
		t.Errorf("the first call that the total counts: %v", err)
	}
	if err := call(acme); plugin.CodeOf(err) != plugin.CodeBudgetExceeded {
		t.Errorf("a call beyond the total: %v", err)
	}
	if err := call(blue); err != nil {
		t.Errorf("a call of another tenant: %v", err)
	}

	write(own, "quotas: {total: {day: 40}}\nsandbox: off\n")
	write(site, "quotas: {default: {day: 1}}\n")
	if _, err := a.Reload(put); err == nil || !strings.Contains(err.Error(), "tenant acme") || !strings.Contains(err.Error(), "sandbox is the site's") {
		t.Errorf("the file of a tenant is wrong: %v", err)
	}
	if err := call(acme); plugin.CodeOf(err) != plugin.CodeBudgetExceeded {
		t.Errorf("half of a wrong file is in force: %v", err)
	}
	if err := call(blue); err != nil {
		t.Errorf("the site's file is in force, and a tenant's is wrong: %v", err)
	}

	write(own, "quotas: {total: {day: 5}}\npolicy: {default: none}\n")
	report, err = a.Reload(put)
	if err != nil || !slices.Contains(report.Changed, "quotas.default") || !slices.Contains(report.Changed, "tenant blue: quotas.default") {
		t.Errorf("it reports %+v, %v", report, err)
	}
	if err := call(acme); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Errorf("the policies of a tenant are not in force: %v", err)
	}
	if err := call(blue); plugin.CodeOf(err) != plugin.CodeBudgetExceeded {
		t.Errorf("the site's quotas are of each tenant that has none of its own: %v", err)
	}
}
