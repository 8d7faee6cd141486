package app_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host/archive"
	"github.com/mortise-dev/mortise/internal/host/datadir"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// forbidding is the configuration of a tenant that forbids a tool, which is allowed without it.
var forbidding = []string{"mortise.yaml", "policy: {files: [rules/no.cedar]}\n",
	"rules/no.cedar", `@id("no") forbid (principal, action == Action::"execute", resource == Operation::"upper/upper");` + "\n"}

func callUpper(t *testing.T, of *app.App) error {
	t.Helper()
	_, err := of.Kernel.Call(t.Context(), plugin.Call{Tenant: of.Config.Tenant, Principal: of.Principal, Origin: plugin.OriginCLI, Operation: "upper/upper", Input: json.RawMessage(`{"text":"a"}`)})
	return err
}

// TestABackupHasAllThatADataDirectoryHolds fills every row of the list of what a data directory holds, and looks
// after a restore what became of each.
func TestABackupHasAllThatADataDirectoryHolds(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy: {files: [site.cedar]}\n", "site.cedar", "permit (principal == User::\"ada\", action, resource);\n")
	a := open(t, home)
	acme := tenants(t, a, "", "acme")[0]
	register(t, acme, upper(t), false)
	if err := callUpper(t, acme); err != nil {
		t.Fatalf("without a rule the tool does not run: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, "tenants", "acme"), forbidding...)
	for _, e := range datadir.Entries {
		found, err := filepath.Glob(filepath.Join(home, e.Name))
		if err != nil {
			t.Fatal(err)
		}
		name, dir := strings.CutSuffix(strings.ReplaceAll(e.Name, "*", "1"), "/")
		switch {
		case dir:
			write(t, home, filepath.Join(name, "one", "text"), "of "+e.Name)
		case len(found) == 0:
			write(t, home, name, "of "+e.Name)
		}
	}
	strange, err := os.ReadDir(home)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range strange {
		if _, known := datadir.Find(one.Name()); !known {
			t.Errorf("%s is in a data directory, and not in the list of what it holds", one.Name())
		}
	}
	outside := t.TempDir() // as a volume of Kubernetes has its files
	write(t, outside, "linked.cedar", "// linked\n")
	if err := os.Symlink(filepath.Join(outside, "linked.cedar"), filepath.Join(home, "tenants", "acme", "linked.cedar")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(home, "tenants", "acme", "..data")); err != nil {
		t.Fatal(err)
	}
	write(t, home, "notes.txt", "the host does not know it")
	if err := os.Remove(filepath.Join(home, "backup.lock")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}

	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "home")
	kept := map[string]string{} // what the directory has that is restored to
	for _, e := range datadir.With(datadir.Kept) {
		name := strings.ReplaceAll(e.Name, "*", "1")
		kept[name] = "kept " + e.Name
		write(t, to, name, kept[name])
	}
	had := filesOf(t, home)
	delete(had, "backup.lock")
	file := filepath.Join(t.TempDir(), "backup")
	if _, err := archive.Backup(t.Context(), archive.BackupOptions{Home: home, File: file, Recipients: []age.Recipient{id.Recipient()}, Keys: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Restore(t.Context(), archive.RestoreOptions{File: file, Home: to, Identities: []age.Identity{id}, Keys: true}); err != nil {
		t.Fatal(err)
	}
	has := filesOf(t, to)
	if got := has["tenants/acme/linked.cedar"]; got != "// linked\n" {
		t.Errorf("a linked file is %q after a restore", got)
	}
	for name, text := range kept {
		if has[name] != text {
			t.Errorf("%s was there before the restore, and is %.40q now", name, has[name])
		}
	}
	for name, text := range had {
		e, known := datadir.Find(name)
		want := text
		switch {
		case !known, e.Care == datadir.Passing:
			want = ""
		case e.Care == datadir.Kept:
			want = kept[name]
		case e.Care == datadir.Database:
			want = has[name] // a copy is another file
			if want == "" {
				t.Errorf("%s is not restored", name)
			}
		}
		if got := has[name]; got != want && name != "restored" {
			t.Errorf("%s (%s) is %.40q after a restore, want %.40q", name, e.Care, got, want)
		}
	}
	for _, e := range datadir.Entries {
		first := strings.TrimSuffix(e.Name, "/")
		if !slices.ContainsFunc(keysOf(had), func(name string) bool { of, _ := datadir.Find(name); return of.Name == e.Name }) {
			t.Errorf("nothing of %s was in the data directory", first)
		}
	}

	if err := os.Remove(filepath.Join(to, "ledger1.anchor")); err != nil { // it is of no ledger
		t.Fatal(err)
	}
	restored := open(t, to)
	if _, err := restored.As(restored.Principal).Admin().ConfirmRecovery(t.Context(), "nothing was done meanwhile"); err != nil {
		t.Fatal(err)
	}
	again, err := restored.Tenant(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := callUpper(t, again); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Errorf("after a restore, what the tenant forbids: %v, want policy_denied", err)
	}
}

// filesOf returns the files below a directory, with their texts.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func keysOf(files map[string]string) (names []string) {
	for name := range files {
		names = append(names, name)
	}
	return names
}

// TestATenantWithoutItsDirectoryIsNotServed: the store has the tenant, and its rules are gone.
func TestATenantWithoutItsDirectoryIsNotServed(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	a := open(t, home)
	row, err := a.As(a.Principal).Tenants().Create(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	for _, lost := range []func() error{
		func() error { return os.RemoveAll(row.Directory) },
		func() error { return os.WriteFile(row.Directory, nil, 0o600) },
	} {
		if err := lost(); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Tenant(t.Context(), "acme"); plugin.CodeOf(err) != plugin.CodeUnavailable {
			t.Errorf("a tenant without its directory: %v, want unavailable", err)
		}
	}
}

// TestARestoreNamesTenantsWithoutADirectory: an earlier release made backups without tenants/.
func TestARestoreNamesTenantsWithoutADirectory(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	a := open(t, home)
	tenants(t, a, "", "acme", "blue")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(home, "tenants", "acme")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	if _, err := archive.Backup(t.Context(), archive.BackupOptions{Home: home, File: file}); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "home")
	key, err := os.ReadFile(filepath.Join(home, store.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, store.KeyFile, string(key))
	r, err := archive.Restore(t.Context(), archive.RestoreOptions{File: file, Home: to})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(r.Manifest.Notes, "\n")
	if !strings.Contains(notes, "tenants/acme/, so tenant acme is not served") || strings.Contains(notes, "blue") {
		t.Errorf("the notes are %q, want acme in them and not blue", notes)
	}
}
