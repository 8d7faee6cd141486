package ledger_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

func claim(key string, effects ...string) ledger.Claim {
	call := &plugin.Call{
		ID: uuid.Must(uuid.NewV7()).String(), Tenant: "t", Principal: plugin.Principal{ID: "ada"}, Origin: plugin.OriginCLI,
		Labels: []string{"private"}, Key: key,
	}
	rec := record(call.ID)
	rec.Operation, rec.Effects, rec.Status = "mail.send/send", effects, plugin.InProgress
	return ledger.Claim{
		Call: call, Record: rec, Fingerprint: "fp", InputHash: "in", PolicyVersion: "p1", Deadline: at.Add(time.Minute), At: at,
		Target: &plugin.Target{
			Manifest:  &plugin.Manifest{Name: "mail.send", Version: "1.2.3"},
			Operation: &plugin.Operation{Name: "send", Effects: effects},
			Package:   plugin.Package{Digest: "sha256:pkg"},
		},
	}
}

func take(t *testing.T, l *ledger.Ledger, c ledger.Claim) ledger.Lease {
	t.Helper()
	lease, prior, err := l.Claim(t.Context(), c)
	if err != nil || prior != nil {
		t.Fatalf("claiming gave %+v, %v", prior, err)
	}
	return lease
}

const operation = "mail.send/send"

func TestClaimSettleLookup(t *testing.T) {
	st := openStore(t, t.TempDir())
	l := openLedger(t, st, ledger.Options{Flush: never})
	c := claim("order-7", "mail_send")
	key := ledger.StoredKey(c.Call)
	if prior, err := l.Lookup(t.Context(), "t", operation, key); prior != nil || err != nil {
		t.Fatalf("before it was claimed: %+v, %v", prior, err)
	}
	lease := take(t, l, c)
	prior, err := l.Lookup(t.Context(), "t", operation, key)
	if err != nil || prior == nil || prior.State != store.CallRunning || prior.CallID != c.Call.ID || prior.Fingerprint != "fp" || prior.Result != nil || prior.Err != nil {
		t.Fatalf("while it runs: %+v, %v", prior, err)
	}

	// Spaces, escapes and digits that any decoder would spell another way.
	data := `{ "id":12345678901234567890,  "t":"\u003cé<&>\/", "n":1.0e+2, "e": {} }`
	first := &plugin.Result{
		Status: plugin.Succeeded, CallID: c.Call.ID, Operation: operation, Version: "1.2.3", Data: []byte(data),
		Metrics: plugin.Metrics{"latency_ms": 3.0}, SchemaVersion: plugin.SchemaVersion, Diagnostics: []byte(`{}`),
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel() // a caller who hung up does not undo what happened
	if err := l.Settle(gone, lease, ledger.Outcome{State: store.CallSucceeded, Result: first}, record(c.Call.ID), at); err != nil {
		t.Fatal(err)
	}
	again := claim("order-7", "mail_send")
	_, prior, err = l.Claim(t.Context(), again)
	if err != nil || prior == nil || prior.State != store.CallSucceeded || prior.CallID != c.Call.ID {
		t.Fatalf("claimed again: %+v, %v", prior, err)
	}
	if string(prior.Result.Data) != data {
		t.Errorf("data is\n%s, want\n%s", prior.Result.Data, data)
	}
	first.Labels = c.Call.Labels // labels only grow
	if !reflect.DeepEqual(prior.Result, first) {
		t.Errorf("the answer is %+v, want %+v", prior.Result, first)
	}
	if got := onDisk(t, st); !slices.Equal(got, []string{c.Call.ID, c.Call.ID}) {
		t.Errorf("the entries are about %v", got)
	}
	row, err := st.Call(t.Context(), "t", c.Call.ID)
	if err != nil || row.Key != "k:order-7" || !row.Effectful || row.Version != "1.2.3" || row.PackageDigest != "sha256:pkg" || row.Lease != "" {
		t.Errorf("the row is %+v, %v", row, err)
	}
}

func TestStoredError(t *testing.T) {
	l := openLedger(t, openStore(t, t.TempDir()), ledger.Options{})
	c := claim("k")
	want := &plugin.Error{
		Code: plugin.CodePluginError, Message: "no <such> box", PluginCode: "BOX", Details: []byte(`{"a":[1]}`), Retryable: true, RetryAfter: time.Second,
	}
	if err := l.Settle(t.Context(), take(t, l, c), ledger.Outcome{State: store.CallFailed, Err: want}, record(c.Call.ID), at); err != nil {
		t.Fatal(err)
	}
	prior, err := l.Lookup(t.Context(), "t", operation, "k:k")
	if err != nil || prior.State != store.CallFailed || prior.Result != nil || !reflect.DeepEqual(prior.Err, want) {
		t.Errorf("the answer is %+v with %+v, %v, want %+v", prior, prior.Err, err, want)
	}
}

func TestErasedAnswer(t *testing.T) {
	dir := t.TempDir()
	l := openLedger(t, openStore(t, dir), ledger.Options{Keep: time.Hour})
	c := claim("k")
	if err := l.Settle(t.Context(), take(t, l, c), ledger.Outcome{State: store.CallSucceeded, Result: &plugin.Result{Status: plugin.Succeeded}}, record(c.Call.ID), at); err != nil {
		t.Fatal(err)
	}
	tamper(t, dir, "UPDATE bodies SET data = NULL WHERE expires_at > 0")
	prior, err := l.Lookup(t.Context(), "t", operation, "k:k")
	if err != nil || !prior.Erased || prior.State != store.CallSucceeded {
		t.Errorf("the answer is %+v, %v", prior, err)
	}
}

// TestAChangedAnswerIsNotGivenAgain edits the stored answer in the database.
func TestAChangedAnswerIsNotGivenAgain(t *testing.T) {
	dir := t.TempDir()
	l := openLedger(t, openStore(t, dir), ledger.Options{})
	c := claim("k")
	if err := l.Settle(t.Context(), take(t, l, c), ledger.Outcome{State: store.CallSucceeded, Result: &plugin.Result{Status: plugin.Succeeded, Data: []byte(`{"paid":10}`)}}, record(c.Call.ID), at); err != nil {
		t.Fatal(err)
	}
	if prior, err := l.Lookup(t.Context(), "t", operation, "k:k"); err != nil || string(prior.Result.Data) != `{"paid":10}` {
		t.Fatalf("before: %+v, %v", prior, err)
	}
	tamper(t, dir, `UPDATE bodies SET data = CAST(replace(CAST(data AS TEXT), '"paid":10', '"paid":99') AS BLOB)`)
	prior, err := l.Lookup(t.Context(), "t", operation, "k:k")
	if plugin.CodeOf(err) != plugin.CodeInternal || !strings.Contains(err.Error(), "mortise ledger verify") {
		t.Errorf("the answer is %+v, %v", prior, err)
	}
	tamper(t, dir, `UPDATE calls SET result_hash = ''`)
	if prior, err := l.Lookup(t.Context(), "t", operation, "k:k"); plugin.CodeOf(err) != plugin.CodeInternal || !strings.Contains(err.Error(), "mortise ledger verify") {
		t.Errorf("without an answer it is %+v, %v", prior, err)
	}
}

func TestLostLease(t *testing.T) {
	st := openStore(t, t.TempDir())
	l := openLedger(t, st, ledger.Options{})
	c := claim("")
	lease := take(t, l, c)
	for _, o := range []ledger.Outcome{{State: store.CallRunning}, {State: ""}, {State: store.CallSucceeded, Result: &plugin.Result{Data: []byte(`{"a":1,"a":2}`)}}} {
		if err := l.Settle(t.Context(), lease, o, record(c.Call.ID), at); err == nil || errors.Is(err, ledger.ErrLeaseLost) {
			t.Errorf("settling as %+v ended with %v", o, err)
		}
	}
	unknown := ledger.Outcome{State: store.CallUnknown, Err: plugin.Errorf(plugin.CodeOutcomeUnknown, "who knows")}
	if err := l.Settle(t.Context(), lease, unknown, record(c.Call.ID), at); err != nil {
		t.Fatal(err)
	}
	late := ledger.Outcome{State: store.CallSucceeded, Result: &plugin.Result{Data: []byte(`{}`)}}
	for _, lease := range []ledger.Lease{lease, {}} {
		if err := l.Settle(t.Context(), lease, late, record(c.Call.ID), at); !errors.Is(err, ledger.ErrLeaseLost) {
			t.Errorf("settling late ended with %v", err)
		}
	}
	if got := onDisk(t, st); len(got) != 2 {
		t.Errorf("the entries are about %v", got)
	}
}

func TestOneOfManyClaims(t *testing.T) {
	l := openLedger(t, openStore(t, t.TempDir()), ledger.Options{})
	var ran atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			c := claim("same", "mail_send")
			lease, prior, err := l.Claim(context.Background(), c)
			switch {
			case err != nil:
				t.Error(err)
			case prior == nil:
				ran.Add(1)
				res := &plugin.Result{Status: plugin.Succeeded, Data: []byte(`1`)}
				if err := l.Settle(context.Background(), lease, ledger.Outcome{State: store.CallSucceeded, Result: res}, record(c.Call.ID), at); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if ran.Load() != 1 {
		t.Errorf("%d callers ran", ran.Load())
	}
}

// fail ends a process of a test that cannot do its part.
func fail(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// dieRunning claims two calls and waits to be killed.
func dieRunning(dir string) {
	st, err := sqlite.Open(context.Background(), dir, sqlite.Options{})
	fail(err)
	l, err := ledger.Open(context.Background(), st, ledger.Options{})
	fail(err)
	for _, c := range []ledger.Claim{claim("pure"), claim("effect", "mail_send")} {
		_, _, err := l.Claim(context.Background(), c)
		fail(err)
	}
	fmt.Println("claimed")
	testwait.Block()
}

func TestKilledHostsCallsAreSettled(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, dir)
	cmd.Env = append(os.Environ(), role+"=die")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "claimed\n" {
		t.Errorf("the child said %q, %v", line, err)
	}
	st := openStore(t, dir)
	l := openLedger(t, st, ledger.Options{})
	if prior, err := l.Lookup(t.Context(), "t", operation, "k:pure"); err != nil || prior == nil || prior.State != store.CallRunning {
		t.Errorf("while the other host lives: %+v, %v", prior, err)
	}
	l.Close()
	cmd.Process.Kill()
	cmd.Wait()

	l = openLedger(t, st, ledger.Options{})
	for _, test := range []struct {
		key   string
		state store.CallState
		code  plugin.Code
		kind  plugin.EntryKind
	}{
		{"k:pure", store.CallFailed, plugin.CodeCrashed, plugin.EntryCallFailed},
		{"k:effect", store.CallUnknown, plugin.CodeOutcomeUnknown, plugin.EntryCallUnknown},
	} {
		prior, err := l.Lookup(t.Context(), "t", operation, test.key)
		if err != nil || prior.State != test.state || prior.Err == nil || prior.Err.Code != test.code {
			t.Errorf("%s: %+v, %v", test.key, prior, err)
			continue
		}
		entries, err := l.List(t.Context(), ledger.Filter{Subject: prior.CallID, Code: test.code, Operation: operation})
		if err != nil || len(entries) != 1 || entries[0].Kind != test.kind || entries[0].Principal != "user:ada" {
			t.Errorf("%s: entries are %+v, %v", test.key, entries, err)
		}
	}
	if entries, err := l.List(t.Context(), ledger.Filter{Kind: string(plugin.EntryNodeUnclean)}); err != nil || len(entries) != 1 {
		t.Errorf("unclean ends are %v, %v", entries, err)
	}
	if n, err := l.Recover(t.Context()); n != 0 || err != nil {
		t.Errorf("recovered again: %d, %v", n, err)
	}
}
