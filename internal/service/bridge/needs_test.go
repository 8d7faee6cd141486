package bridge

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// A call is refused for exactly the secrets that are listed as missing, wherever its manifest
// names them.
func TestACallIsRefusedForTheSecretsThatAreListedAsMissing(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	vault := secret.New(st, secret.Place{Dir: t.TempDir()}, secret.NewScrubber())
	ann := plugin.Principal{Type: "user", ID: "ann"}
	scopes := []string{"", plugin.SecretOfUser, plugin.SecretOfSystem, plugin.SecretOfSystemOrUser}
	refused := 0
	for i := range 150 {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		m := &plugin.Manifest{Name: fmt.Sprint("p", i), Version: "1.0.0"}
		op := &plugin.Operation{Name: "send", Secrets: map[string]plugin.SecretNeed{}}
		if r.IntN(5) > 0 {
			m.Capabilities = []string{"http"}
		}
		named := map[string]bool{} // by the manifest, in any place that counts
		for _, name := range []string{"a", "b", "c"} {
			if r.IntN(2) == 0 {
				op.Secrets[name] = plugin.SecretNeed{AllowedScope: scopes[r.IntN(4)], Optional: r.IntN(3) == 0}
				named[name] = true
			}
			for range r.IntN(3) {
				m.HTTP.Inject = append(m.HTTP.Inject, plugin.Injection{Host: "example.com", Header: "X-" + name, Secret: name, AllowedScope: scopes[1+r.IntN(3)], Optional: r.IntN(3) == 0})
				named[name] = named[name] || m.Capabilities != nil
			}
			for _, place := range []store.SecretName{{Scope: secret.User, Subject: secret.Subject(ann)}, {Scope: secret.System}} {
				if r.IntN(3) == 0 {
					place.Tenant, place.Owner, place.Name = "t", m.Name, name
					if err := vault.Put(t.Context(), place, "a value of "+name, secret.By{Principal: "ann"}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		var listed, missing []string
		for _, need := range SecretNeeds(m, op) {
			listed = append(listed, need.Name)
			there, err := vault.Where(t.Context(), secret.NeedOf("t", m.Name, ann, need.Name, need.AllowedScope))
			if err != nil {
				t.Fatal(err)
			}
			if there == "" && !need.Optional {
				missing = append(missing, need.Name)
			}
		}
		for name, is := range named {
			if is && !slices.Contains(listed, name) {
				t.Errorf("%+v with %+v needs %s, and lists %v", m.HTTP.Inject, op.Secrets, name, listed)
			}
		}
		_, _, err := Filler{Vault: vault}.Fill(t.Context(), &plugin.Target{Manifest: m, Operation: op}, &plugin.Call{Tenant: "t", Principal: ann, Input: []byte("{}")})
		var details struct{ Missing []string }
		if err != nil {
			refused++
			if e := plugin.AsError(err); e.Code != plugin.CodeMissingSecrets || json.Unmarshal(e.Details, &details) != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(details.Missing, missing) {
			t.Errorf("%+v with %+v is refused for %v, and %v are listed as missing", m.HTTP.Inject, op.Secrets, details.Missing, missing)
		}
	}
	if refused < 50 || refused > 140 {
		t.Errorf("%d of 150 calls are refused: the test tries too little", refused)
	}
}
