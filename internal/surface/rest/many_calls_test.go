package rest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// manyCalls are how many calls the list of TestAHundredThousandCallsArePagedQuickly has.
const manyCalls = 100_000

// fillCalls puts n ended calls into the store: of 20 operations, one in ten failed, one in
// 10,000 with an unknown outcome, and one in 5,000 made by ann.
func (b *bench) fillCalls(n int) {
	b.Helper()
	began := time.Now().UTC().Add(-time.Duration(n) * time.Second)
	for from := 0; from < n; from += 1000 {
		err := b.app.Store.Write(b.Context(), func(tx store.Tx) error {
			for i := from; i < from+1000; i++ {
				at := began.Add(time.Duration(i) * time.Second)
				id := fmt.Sprintf("%08x-%04x-7000-8000-%012x", at.UnixMilli()>>16, at.UnixMilli()&0xffff, i) // ids begin with their time
				row := store.CallRow{
					Tenant: "local", ID: id, Operation: fmt.Sprintf("desk/op%d", i%20), Key: "k:" + id, Fingerprint: "sha256:f", Principal: "ben", Origin: "api", Labels: []string{},
					Version: "1.0.0", PackageDigest: "sha256:p", PolicyVersion: "1", InputHash: "sha256:i", ResultHash: "sha256:r", State: store.CallSucceeded, Attempt: 1,
					Effectful: true, Journalled: true, CreatedAt: at, UpdatedAt: at, Plan: fmt.Sprintf("plan-%d", i/100),
				}
				switch {
				case i%10_000 == 5000:
					row.State = store.CallUnknown
				case i%10 == 0:
					row.State, row.Code = store.CallFailed, "timeout"
				}
				if i%5000 == 1 {
					row.Principal = "ann"
				}
				if _, err := tx.InsertCall(row); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// A person pages through 100,000 calls, with and without filters, and waits at most 100 ms
// for each page.
func TestAHundredThousandCallsArePagedQuickly(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-long: it measures the time that a page takes")
	}
	b := begin(t, rest.Options{})
	b.fillCalls(manyCalls)
	const most = 100 * time.Millisecond
	for _, list := range []struct {
		name, by, query string
		rows            int // on all pages that are looked at
	}{
		{"all", "mrt_root", "?page_size=50", 500},
		{"the largest pages", "mrt_root", "?page_size=200", 2000},
		{"failed", "mrt_root", "?page_size=50&state=failed", 500},
		{"succeeded", "mrt_root", "?page_size=50&state=succeeded", 500},
		{"of unknown outcome", "mrt_root", "?page_size=50&state=unknown", 10},
		{"in progress, of which there are none", "mrt_root", "?page_size=50&state=in_progress", 0},
		{"waiting for approval, of which there are none", "mrt_root", "?page_size=50&state=pending_approval", 0},
		{"of one operation", "mrt_root", "?page_size=50&operation=desk/op7", 500},
		{"of one operation, failed", "mrt_root", "?page_size=50&state=failed&operation=desk/op10", 500},
		{"of one operation, failed, of which there are none", "mrt_root", "?page_size=50&state=failed&operation=desk/op7", 0},
		{"of an operation that was never called", "mrt_root", "?page_size=50&operation=desk/none", 0},
		{"of a plan", "mrt_root", "?page_size=50&plan=plan-500", 100},
		{"of a caller who made few of them", "mrt_ann", "?page_size=50", 20},
		{"of a caller who made few of them, of unknown outcome", "mrt_ann", "?page_size=50&state=unknown", 0},
		{"of a caller who made none", "mrt_bobs", "?page_size=50", 0},
	} {
		var took []time.Duration
		rows, token := 0, ""
		for range 10 {
			where := "/api/v1/calls" + list.query
			if token != "" {
				where += "&page_token=" + token
			}
			began := time.Now()
			a := b.is(b.ask(list.by, "GET", where, ""), 200, "")
			first := time.Since(began)
			began = time.Now() // once more: what else this machine does is no part of it
			b.is(b.ask(list.by, "GET", where, ""), 200, "")
			took = append(took, min(first, time.Since(began)))
			page, _ := a.at("calls").([]any)
			rows += len(page)
			if token, _ = a.at("next_page_token").(string); token == "" {
				break
			}
		}
		slowest := slices.Max(took)
		t.Logf("%-50s %4d rows on %2d pages, the slowest page %s", list.name, rows, len(took), slowest.Round(100*time.Microsecond))
		if rows != list.rows {
			t.Errorf("%s: %d rows, want %d", list.name, rows, list.rows)
		}
		if slowest > most {
			t.Errorf("%s: a page took %s, more than %s", list.name, slowest, most)
		}
	}
}
