package registry_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	runtimecontract "github.com/mortise-dev/mortise/internal/catalog/contract/runtime"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

func TestLinkedDirectoryIsFollowed(t *testing.T) {
	t.Parallel()
	b := open(t)
	dir := author(t, "p", "1.0.0", "x")
	one := b.register(dir, registry.RegisterOptions{Dev: true, DisplayName: "P"})
	if !one.Dev || one.State != registry.Active || one.Path != dir {
		t.Errorf("%+v", one)
	}
	before, err := b.Resolve(context.Background(), "p/x")
	if err != nil || !before.Package.Dev || before.Package.Dir != dir {
		t.Fatalf("%+v, %v", before, err)
	}
	later := func() { b.clock.Add(1) }

	later()
	write(t, dir+"/__pycache__/plugin.pyc", "compiled")
	if now, _ := b.Resolve(context.Background(), "p/x"); now != before {
		t.Error("what is no part of the package changed it")
	}
	later()
	write(t, dir+"/plugin.py", "# changed")
	now, err := b.Resolve(context.Background(), "p/x")
	if err != nil || now.Package.Digest == before.Package.Digest {
		t.Errorf("a changed file was not seen: %v", err)
	}
	if now.Manifest.DisplayName != "P" {
		t.Error("the display name was lost")
	}
	b.expect("p/y", "not_found: p 1.0.0 has no operation y")
	later()
	write(t, dir+"/manifest.yaml", manifest("p", "1.1.0", "x", "y"))
	b.expect("p/y", "p/y@1.1.0")
	b.expect("p/x@1.0.0", "not_found: p has no version 1.0.0; there is 1.1.0")

	later()
	write(t, dir+"/manifest.yaml", "name: p\nversion: 1.1.0\noperations: {x: {inptu: 1}}\n")
	b.expect("p/y", "invalid_input: p@1.1.0: the plugin is not acceptable\nmanifest.yaml: at /operations/x/inptu: unknown key; did you mean input?")
	if list, _ := b.List(context.Background()); len(list) != 1 || !strings.Contains(list[0].Problem, "unknown key") {
		t.Errorf("%+v", list)
	}
	later()
	write(t, dir+"/manifest.yaml", manifest("renamed", "1.1.0", "x"))
	b.expect("p/y", "invalid_input: p@1.1.0: it was registered as p and is called renamed now: register it again")
	later()
	_ = os.Rename(dir, dir+"-gone")
	if got := b.resolved("p/y"); !strings.HasPrefix(got, "invalid_input: p@1.1.0: the plugin is not acceptable\nopen ") {
		t.Error(got)
	}
	later()
	_ = os.Rename(dir+"-gone", dir)
	write(t, dir+"/manifest.yaml", manifest("p", "1.1.0", "y"))
	b.expect("p", "p/y@1.1.0")

	b.reopen() // what was seen last is known again
	b.expect("p", "p/y@1.1.0")
	write(t, dir+"/manifest.yaml", manifest("p", "1.2.0", "z"))
	b.reopen()
	b.expect("p", "p/z@1.2.0")
	if got, want := b.catalog.entries(), "plugin.registered p@1.0.0, plugin.registered p@1.0.0, plugin.registered p@1.1.0, delete p@1.0.0, plugin.registered p@1.1.0, plugin.registered p@1.2.0, delete p@1.1.0"; got != want {
		t.Errorf("ledger %s\nwant %s", got, want)
	}
	if _, err := b.Delete(context.Background(), "p"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + "/manifest.yaml"); err != nil {
		t.Error("deleting a link took the author's files")
	}
	if err := b.CheckPackage(t.Context(), now.Package); err != nil {
		t.Errorf("a linked package is not the host's to check: %v", err)
	}
}

func TestLinkedSourceFile(t *testing.T) {
	t.Parallel()
	b := open(t)
	file := t.TempDir() + "/words.py"
	write(t, file, `{"name":"text.words","version":"1.0.0","operations":{"count":{"kind":"tool"}}}`)
	write(t, file+"-beside", "not part of it")
	_ = os.Symlink("/", file+"-link")
	one := b.register(file, registry.RegisterOptions{Dev: true})
	if one.Name != "text.words" || one.Path != file {
		t.Errorf("%+v", one)
	}
	b.expect("text.words", "text.words/count@1.0.0")
	b.clock.Add(1)
	write(t, file, `{"name":"text.words","version":"1.0.0","operations":{"count2":{"kind":"tool"}}}`)
	b.expect("text.words", "text.words/count2@1.0.0")
	target, _ := b.Resolve(context.Background(), "text.words")
	if target.Package.Dir != strings.TrimSuffix(file, "/words.py") || target.Manifest.Runner.Entry != "words.py" {
		t.Errorf("%+v", target)
	}
	b.clock.Add(1)
	write(t, file, "crash")
	b.expect("text.words", "crashed: text.words@1.0.0: asking the code what it does: the plugin ended before it answered")
}

func TestManyResolveALinkAtOnceAndItIsAskedOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	file := t.TempDir() + "/p.py"
	write(t, file, `{"name":"p","operations":{"a":{"kind":"tool"}}}`)
	b.register(file, registry.RegisterOptions{Dev: true})
	b.expect("p", "p/a@0.0.0")
	before := b.described.Load()
	b.clock.Add(1)
	write(t, file, `{"name":"p","operations":{"bb":{"kind":"tool"}}}`)
	var wg sync.WaitGroup
	for range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			b.expect("p", "p/bb@0.0.0")
		}()
	}
	wg.Wait()
	if got := b.described.Load() - before; got != 1 {
		t.Errorf("the code was asked %d times", got)
	}
}

func TestCallerWhoGivesUpSpoilsNothing(t *testing.T) {
	t.Parallel()
	b := open(t)
	dir := author(t, "p", "1.0.0", "x")
	b.register(dir, registry.RegisterOptions{Dev: true})
	b.clock.Add(1)
	write(t, dir+"/plugin.py", "# changed")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.Resolve(ctx, "p"); plugin.CodeOf(err) != plugin.CodeCancelled {
		t.Errorf("got %v", err)
	}
	b.expect("p", "p/x@1.0.0")
}

func TestBindings(t *testing.T) {
	t.Parallel()
	script := t.TempDir() + "/echo.sh"
	write(t, script, "#!/bin/sh\n")
	_ = os.Chmod(script, 0o755)
	b := open(t, func(o *registry.Options) {
		o.Bindings = []runtimecontract.Binding{
			{PluginID: "example.echo", Command: []string{script}, Tools: runtimecontract.Tools("plugin.echo"), Effects: []string{"db_write"}},
			{PluginID: "interpreted", Command: []string{"sh", script, "-x"}, Tools: runtimecontract.Tools("x")},
			{PluginID: "absent", Command: []string{"/no/such/program"}, Tools: runtimecontract.Tools("x")},
		}
	})
	b.expect("example.echo", "example.echo/plugin.echo@0.0.0")
	b.expect("interpreted", "interpreted/x@0.0.0")
	b.expect("absent", "absent/x@0.0.0")
	target, _ := b.Resolve(context.Background(), "example.echo/plugin.echo")
	if target.Package.Dir != strings.TrimSuffix(script, "/echo.sh") || len(target.Package.Digest) != 71 || target.Manifest.Runner.Binding == nil || target.Operation.Kind != plugin.Operator {
		text, _ := json.Marshal(target)
		t.Errorf("%s", text)
	}
	if err := b.CheckPackage(t.Context(), target.Package); err != nil {
		t.Error(err)
	}
	b.clock.Add(1)
	write(t, script, "#!/bin/sh\n# changed\n")
	if now, err := b.Resolve(context.Background(), "example.echo"); err != nil || now.Package.Digest == target.Package.Digest {
		t.Errorf("another program has the same digest: %v", err)
	}
	list, err := b.List(context.Background())
	if err != nil || len(list) != 3 || list[0].Name != "absent" || list[1].Source != "config" || list[1].Digest == "" || list[1].Dialect != "runtime" {
		t.Errorf("%+v, %v", list, err)
	}
	want := "invalid_input: example.echo is bound in the host's configuration: change it there"
	if _, err := b.Disable(context.Background(), "example.echo"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := b.Delete(context.Background(), "example.echo"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = b.Register(context.Background(), author(t, "absent", "1.0.0", "x"), registry.RegisterOptions{})
	if want := "invalid_input: the host's configuration binds absent already"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if got := b.catalog.entries(); got != "" {
		t.Errorf("bindings were written down: %s", got)
	}
}

func TestWrongBindingsStopTheHost(t *testing.T) {
	t.Parallel()
	_, err := registry.Open(context.Background(), registry.Options{Dir: t.TempDir(), Catalog: &catalog{}, Approver: "ann", Bindings: []runtimecontract.Binding{
		{PluginID: "a", Command: []string{"sh"}, Tools: runtimecontract.Tools("x"), Capabilities: []string{"x "}},
		{PluginID: "b", Command: []string{"sh"}, Tools: runtimecontract.Tools("x")}, {PluginID: "B", Command: []string{"sh"}, Tools: runtimecontract.Tools("x")},
	}})
	want := "reading the bindings of the configuration: binding of \"a\": at /capabilities/0: \"x \" has white space around it\nat /plugin_id: B is bound twice, letter case aside"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
