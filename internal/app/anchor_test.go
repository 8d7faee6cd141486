package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/plugin"
)

// A host that stays moves its anchor while it is at work: it is killed, an older
// copy of its database is put back, and the next host notices. A host of one
// command moves it only as it closes.
func TestTheAnchorMovesWhileAHostServes(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	at := func() int64 {
		t.Helper()
		a, err := chain.ReadAnchor(home)
		if err != nil {
			t.Fatal(err)
		}
		if a == nil {
			return 0
		}
		return a.Seq
	}
	note := func(a *app.App) int64 {
		t.Helper()
		err := a.Store.Write(t.Context(), func(tx store.Tx) error {
			tx.Append(plugin.Entry{Tenant: "local", Kind: "test.noted", Subject: "x", At: time.Now()})
			return nil
		})
		heads, headsErr := a.Store.Chains(t.Context())
		if err = errors.Join(err, headsErr); err != nil || len(heads) != 1 {
			t.Fatal(heads, err)
		}
		return heads[0].Seq
	}
	host, err := app.Open(t.Context(), app.Options{Home: home, Log: quiet, Standby: true, Anchors: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	for range 3 {
		want := note(host)
		testwait.Until(t, "the anchor moves while the host is at work", func() bool { return at() == want })
	}
	// Nothing of it closes before its database is copied.
	copied := t.TempDir()
	if err := errors.Join(os.CopyFS(copied, os.DirFS(home)), os.Chmod(filepath.Join(copied, store.KeyFile), 0o600)); err != nil {
		t.Fatal(err)
	}
	last := note(host)
	testwait.Until(t, "the anchor moves again", func() bool { return at() == last })
	raw, err := os.ReadFile(filepath.Join(home, chain.AnchorFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(copied, chain.AnchorFile), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	next, err := app.Open(t.Context(), app.Options{Home: copied, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = next.Close() })
	if rec, err := store.ReadRecovery(t.Context(), next.Store); err != nil || rec == nil || len(rec.Anchors) != 1 || rec.Anchors[0].Seq != last {
		t.Errorf("the next host, on an older copy, notices %+v, %v", rec, err)
	}

	other := t.TempDir()
	command, err := app.Open(t.Context(), app.Options{Home: other, Log: quiet, Anchors: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	note(command)
	for range 2 { // a host that stays moves its anchor meanwhile, although it does so less often
		want := note(host)
		testwait.Until(t, "the anchor of the other host moves", func() bool { return at() == want })
	}
	if _, err := os.Stat(filepath.Join(other, chain.AnchorFile)); !os.IsNotExist(err) {
		t.Errorf("a host of one command moved its anchor before it closed: %v", err)
	}
	if err := command.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(other, chain.AnchorFile)); err != nil {
		t.Error(err)
	}
}
