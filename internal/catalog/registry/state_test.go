package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

func TestStatesSurviveARestart(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := open(t)
	b.register(author(t, "p", "1.0.0", "x"), registry.RegisterOptions{})
	b.install(author(t, "p", "2.0.0", "x"))
	b.expect("p@1", "disabled: p@1.0.0 is disabled")
	b.expect("p", "p/x@2.0.0")
	if infos, err := b.Disable(ctx, "p"); err != nil || len(infos) != 2 {
		t.Errorf("%+v, %v", infos, err)
	}
	b.reopen()
	b.expect("p", "disabled: p@2.0.0 is disabled")
	if _, err := b.Enable(ctx, "p@1"); plugin.CodeOf(err) != plugin.CodeQuarantined {
		t.Errorf("an unapproved version was enabled because another one was approved: %v", err)
	}
	if info := b.approve("p@1"); info.State != registry.Active || info.Version != "1.0.0" {
		t.Errorf("%+v", info)
	}
	b.reopen()
	b.expect("p", "p/x@1.0.0")
	shown, err := b.Show(ctx, "p")
	if err != nil || shown.Version != "1.0.0" || strings.Join(shown.Versions, " ") != "2.0.0 1.0.0" || shown.Manifest.Name != "p" {
		t.Errorf("%+v, %v", shown, err)
	}
	_, err = b.Delete(ctx, "p")
	if want := "invalid_input: p has several versions: name the one to delete, as in p@1.0.0; there is 2.0.0, 1.0.0"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	info, err := b.Delete(ctx, "p@1.0.0")
	if err != nil || info.Version != "1.0.0" {
		t.Fatalf("%+v, %v", info, err)
	}
	if _, err := os.Stat(info.Path); !os.IsNotExist(err) {
		t.Errorf("the package is still there: %v", err)
	}
	b.reopen()
	b.expect("p@1", "not_found: p has no version 1; there is 2.0.0")
	for _, c := range []struct {
		ref, want string
	}{
		{"q", "not_found: no plugin is called q"}, {"p@7", "not_found: p has no version 7; there is 2.0.0"},
		{"p/x", "invalid_input: a plugin is meant here as a whole: p, without /x"}, {"", "invalid_input: an operation is named name, name/operation or name/operation@version; here is nothing"},
	} {
		_, enable := b.Enable(ctx, c.ref)
		_, disable := b.Disable(ctx, c.ref)
		_, remove := b.Delete(ctx, c.ref)
		_, show := b.Show(ctx, c.ref)
		for _, err := range []error{enable, disable, remove, show} {
			if err == nil || err.Error() != c.want {
				t.Errorf("%s: got %v, want %s", c.ref, err, c.want)
			}
		}
	}
	want := "plugin.registered p@1.0.0, plugin.registered p@2.0.0, plugin.enabled p@2.0.0, plugin.disabled p@2.0.0, plugin.quarantined p@1.0.0, plugin.approved p@1.0.0, delete p@1.0.0"
	if got := b.catalog.entries(); got != want {
		t.Errorf("ledger %s\nwant %s", got, want)
	}
}

func TestAPackageThatTwoVersionsShareStays(t *testing.T) {
	t.Parallel()
	b := open(t)
	one := b.install(author(t, "p", "1.0.0", "x"))
	other := b.catalog.records["p@1.0.0"]
	other.Name = "q"
	if err := b.catalog.Put(context.Background(), other, plugin.EntryPluginRegistered); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Delete(context.Background(), "p"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(one.Path); err != nil {
		t.Error(err)
	}
}

func TestEnableAsksTheCodeForWhatIsOpen(t *testing.T) {
	t.Parallel()
	b := open(t)
	dir := filepath.Join(t.TempDir(), "p")
	write(t, dir+"/manifest.yaml", "name: p\nversion: 1.0.0\nrunner: {entry: plugin.py}\n")
	write(t, dir+"/plugin.py", "crash")
	report, err := b.Register(context.Background(), dir, registry.RegisterOptions{Enable: true})
	if err != nil || len(report.Registered) != 1 || report.Registered[0].State != registry.Disabled {
		t.Fatalf("%+v, %v", report, err)
	}
	if got, want := report.Registered[0].NotEnabled.Error(), "crashed: asking the code what it does: the plugin ended before it answered"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	b.expect("p", "disabled: p@1.0.0 is disabled")
	if _, err := b.Delete(context.Background(), "p"); err != nil {
		t.Fatal(err)
	}

	write(t, dir+"/plugin.py", `{"name":"p","version":"1.0.0","operations":{"x":{"kind":"operator","effects":["db_write"],"input":{"type":"string"},"output":{}}}}`)
	b.install(dir)
	b.reopen()
	before := b.described.Load()
	target, err := b.Resolve(context.Background(), "p")
	if err != nil || target.Operation.Kind != plugin.Operator || target.Input.Check(t.Context(), []byte(`1`)) == nil {
		t.Errorf("%+v, %v", target, err)
	}
	if b.described.Load() != before {
		t.Error("the code was asked again")
	}
	write(t, dir+"/manifest.yaml", "name: p\nversion: 1.1.0\noperations: {x: {}}\n")
	if held := b.register(dir, registry.RegisterOptions{}); !held.Held || b.described.Load() != before {
		t.Errorf("unapproved code was run, or is not held: %+v", held)
	}
	_, err = b.Review(context.Background(), "p", true)
	want := "invalid_input: the plugin is not acceptable\ncode: at /operations/x/effects: the code says \"db_write\", the manifest does not\n" +
		"code: at /operations/x/kind: the code says operator, the manifest tool: a tool's results may be used again\ncode: at /version: the code says \"1.0.0\", the manifest \"1.1.0\""
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestTamperingIsDetected(t *testing.T) {
	t.Parallel()
	for name, tamper := range map[string]func(dir string) error{
		"content, of the same size and time": func(dir string) error {
			path := dir + "/plugin.py"
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			_ = os.Chmod(path, 0o644)
			if err := os.WriteFile(path, []byte("b"), 0o644); err != nil {
				return err
			}
			_ = os.Chmod(path, 0o444)
			return os.Chtimes(path, time.Time{}, info.ModTime())
		},
		"a file that is not hashed elsewhere": func(dir string) error {
			_ = os.Chmod(dir, 0o755)
			_ = os.Mkdir(dir+"/__pycache__", 0o755)
			return os.WriteFile(dir+"/__pycache__/plugin.cpython-311.pyc", nil, 0o644)
		},
		"a symbolic link": func(dir string) error { _ = os.Chmod(dir, 0o755); return os.Symlink("/", dir+"/link") },
		"executable bit":  func(dir string) error { return os.Chmod(dir+"/plugin.py", 0o555) },
		"a file less":     func(dir string) error { _ = os.Chmod(dir, 0o755); return os.Remove(dir + "/plugin.py") },
		"all of it":       func(dir string) error { return os.Rename(dir, dir+"-away") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			b := open(t)
			dir := author(t, "p", "1.0.0", "x")
			write(t, dir+"/plugin.py", "a")
			one := b.install(dir)
			target, err := b.Resolve(ctx, "p")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := b.CheckPackage(t.Context(), target.Package); err != nil {
					t.Fatal(err)
				}
			}
			if err := tamper(one.Path); err != nil {
				t.Fatal(err)
			}
			held := "quarantined: p@1.0.0 is held: its files were changed after it was registered; register it again and enable it"
			if err := b.CheckPackage(t.Context(), target.Package); err == nil || err.Error() != held {
				t.Errorf("got %v, want %s", err, held)
			}
			b.expect("p", held)
			b.reopen()
			b.expect("p", held)
			if _, err := b.Enable(ctx, "p"); err == nil || err.Error() != held {
				t.Errorf("enabled nevertheless: %v", err)
			}
			if again := b.register(dir, registry.RegisterOptions{Enable: true}); again.State != registry.Active {
				t.Errorf("%+v", again)
			}
			b.expect("p", "p/x@1.0.0")
			if err := b.CheckPackage(t.Context(), target.Package); err != nil {
				t.Error(err)
			}
			if got, want := b.catalog.entries(), "plugin.registered p@1.0.0, plugin.enabled p@1.0.0, plugin.quarantined p@1.0.0, plugin.enabled p@1.0.0"; got != want {
				t.Errorf("ledger %s\nwant %s", got, want)
			}
		})
	}
}

func TestAnotherProcessChangesTheCatalog(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := open(t)
	b.install(author(t, "p", "1.0.0", "x"))
	other, err := registry.Open(ctx, b.options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Disable(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	b.expect("p", "p/x@1.0.0") // nothing is asked yet
	asked := b.catalog.versionsAsked()
	b.clock.Add(1)
	b.expect("p", "disabled: p@1.0.0 is disabled")
	for range 100 {
		b.expect("p", "disabled: p@1.0.0 is disabled")
	}
	if got := b.catalog.versionsAsked() - asked; got != 1 {
		t.Errorf("the catalog was asked %d times for 101 calls", got)
	}
	b.clock.Add(-3600) // the clock goes back
	if _, err := other.Enable(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	b.clock.Add(1)
	b.expect("p", "p/x@1.0.0")
	b.catalog.fail = errors.New("the disk is gone")
	b.clock.Add(1)
	if _, err := b.Resolve(ctx, "p"); !errors.Is(err, b.catalog.fail) {
		t.Errorf("what cannot be known was answered: %v", err)
	}
	b.catalog.fail = nil
	b.expect("p", "p/x@1.0.0")
	if list, err := other.List(ctx, plugin.Agent); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := other.List(ctx, plugin.Tool); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestBundledPlugins(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	tree := fstest.MapFS{
		"README.md":            {Data: []byte("no plugin")},
		"docs/README.md":       {Data: []byte("no plugin")},
		"text/manifest.yaml":   {Data: []byte("name: text\nversion: 1.0.0\nrunner: {entry: plugin.py}\n")},
		"text/plugin.py":       {Data: []byte(`{"name":"text","version":"1.0.0","operations":{"count":{"kind":"tool"}}}`)},
		"broken/manifest.yaml": {Data: []byte("name: broken\nversion: 1.0.0\nrunner: {entry: plugin.py}\n")},
		"broken/plugin.py":     {Data: []byte("crash")},
	}
	b := open(t, func(o *registry.Options) { o.Bundled = tree })
	if got := b.described.Load(); got != 0 {
		t.Error("opening ran code")
	}
	b.expect("text", "text/count@1.0.0")
	b.expect("broken", "crashed: broken@1.0.0: asking the code what it does: the plugin ended before it answered")
	_, err := b.Delete(ctx, "text")
	if want := "invalid_input: text is part of Mortise: disable it instead"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := b.Disable(ctx, "text"); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	b.expect("text", "disabled: text@1.0.0 is disabled")

	// The next version of the host brings others.
	tree["text/manifest.yaml"] = &fstest.MapFile{Data: []byte(manifest("text", "1.1.0", "count"))}
	b.reopen()
	b.expect("text", "disabled: text@1.1.0 is disabled")
	if _, err := b.Enable(ctx, "text"); err != nil {
		t.Fatal(err)
	}
	tree["text/plugin.py"] = &fstest.MapFile{Data: []byte(`{"name":"text","version":"1.1.0","operations":{"count":{"kind":"tool"}}} `)}
	b.reopen()
	b.expect("text", "text/count@1.1.0")
	list, _ := b.List(ctx)
	if len(list) != 3 || list[1].Source != "bundled" {
		text, _ := json.Marshal(list)
		t.Errorf("%s", text)
	}
	if packages, _ := filepath.Glob(b.options.Dir + "/*"); len(packages) != 3 {
		t.Errorf("packages %v", packages)
	}
	before := b.catalog.entries()
	b.reopen()
	if b.catalog.entries() != before {
		t.Error("opening again wrote something")
	}
}

// After a pause no caller gets an answer from before it, however many come at once.
func TestNoCallerGetsAnOldAnswerAfterAPause(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := open(t)
	b.install(author(t, "p", "1.0.0", "x"))
	other, err := registry.Open(ctx, b.options)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		want := "p/x@1.0.0"
		if round%2 == 0 {
			want = "disabled: p@1.0.0 is disabled"
			_, err = other.Disable(ctx, "p")
		} else {
			_, err = other.Enable(ctx, "p")
		}
		if err != nil {
			t.Fatal(err)
		}
		b.clock.Add(3600)
		var wg sync.WaitGroup
		for range 16 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				if got := b.resolved("p"); got != want {
					t.Errorf("round %d: got %s, want %s", round, got, want)
				}
			}()
		}
		wg.Wait()
	}
}
