package rest_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// Verifying over the API finds what was changed from outside, and puts what it found on
// record, by whom and when.
func TestTheLedgerIsVerifiedOverTheAPI(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	b.is(b.ask("mrt_ann", "POST", line, `{"input":{"text":"one"}}`), 200, "")
	const verify = "/api/v1/ledger:verify"
	b.is(b.ask("mrt_ann", "POST", verify, ""), 403, "policy_denied")
	b.is(b.ask("mrt_root:read", "POST", verify, ""), 403, "scope_denied")
	a := b.is(b.ask("mrt_root", "POST", verify, ""), 200, "")
	if a.at("ok") != true || a.at("fault") != nil || fmt.Sprint(a.at("chains")) != "1" {
		t.Errorf("the ledger that nothing was done to: %s", a)
	}
	last := func() map[string]any {
		entries, _ := b.is(b.ask("mrt_root", "GET", "/api/v1/ledger/entries?newest=1&subject=ledger&kind=ledger.verified", ""), 200, "").at("entries").([]any)
		if len(entries) != 1 {
			t.Fatalf("%d entries", len(entries))
		}
		return entries[0].(map[string]any)
	}
	if e := last(); e["body"].(map[string]any)["ok"] != true || e["principal"] != "root" {
		t.Errorf("on record is %s", e)
	}

	db, err := sql.Open("sqlite", filepath.Join(filepath.Dir(b.log), "mortise.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE entries SET principal = 'ben' WHERE seq = 2"); err != nil {
		t.Fatal(err)
	}
	a = b.is(b.ask("mrt_root", "POST", verify, ""), 200, "")
	if a.at("ok") != false || fmt.Sprintf("%v/%v", a.at("fault", "chain"), a.at("fault", "seq")) != "1/2" {
		t.Errorf("the ledger with a changed entry: %s", a)
	}
	if e := last(); e["body"].(map[string]any)["ok"] != false {
		t.Errorf("on record is %s", e)
	}
}
