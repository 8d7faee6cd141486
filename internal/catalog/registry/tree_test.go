package registry_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// millManifest is that of an Event Mill tool of the pillar log_analysis.
func millManifest(name, version string) string {
	return fmt.Sprintf(`{"tool_name": %q, "version": %q, "pillar": "log_analysis", "display_name": "T", "description_short": "A tool.", "entry_point": "tool.py", "class_name": "T"}`, name, version)
}

// grove makes a tree of Event Mill tools, all of version 1.0.0, and returns it.
func grove(t testing.TB, names ...string) (tree string) {
	t.Helper()
	tree = filepath.Join(t.TempDir(), "plugins")
	write(t, tree+"/__init__.py", "")
	write(t, tree+"/shared.py", "n = 1\n")
	for _, name := range names {
		write(t, filepath.Join(tree, "log_analysis", name, "manifest.json"), millManifest(name, "1.0.0"))
		write(t, filepath.Join(tree, "log_analysis", name, "tool.py"), "class T: pass\n")
	}
	return tree
}

// names are the plugins of a report, those that failed in brackets.
func names(tree string, report registry.RegisterReport) string {
	var all []string
	for _, one := range report.Registered {
		all = append(all, one.Name)
	}
	for _, failed := range report.Failed {
		all = append(all, "("+strings.TrimPrefix(failed.Path, tree+"/")+")")
	}
	return strings.Join(all, " ")
}

func TestATreeOfToolsIsOnePackage(t *testing.T) {
	t.Parallel()
	b := open(t)
	tree := grove(t, "fetch", "report", "_template", "broken")
	write(t, tree+"/log_analysis/broken/manifest.json", `{"tool_name": "broken"}`)
	write(t, tree+"/_old/log_analysis/past/manifest.json", millManifest("past", "1.0.0"))
	write(t, tree+"/log_analysis/twin/manifest.json", millManifest("report", "2.0.0"))
	write(t, tree+"/log_analysis/twin/tool.py", "")
	report, err := b.Register(t.Context(), tree, registry.RegisterOptions{Enable: true})
	if err != nil || names(tree, report) != "fetch report (log_analysis/broken) (log_analysis/report)" {
		t.Fatalf("%s, %v", names(tree, report), err)
	}
	if got := report.Failed[1].Err.Error(); !strings.Contains(got, "at /tool_name: the tool in log_analysis/twin of the same tree is called so too") {
		t.Error(got)
	}
	if got := b.packages(); len(got) != 1 {
		t.Fatalf("packages %q", got)
	}
	fetch, err := b.Resolve(t.Context(), "fetch")
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.Resolve(t.Context(), "report/report@2.x")
	if err != nil {
		t.Fatal(err)
	}
	if fetch.Package != other.Package || fetch.Package.Dir != filepath.Join(b.options.Dir, b.packages()[0]) ||
		fetch.Manifest.Dir != "log_analysis/fetch" || fetch.Name() != "fetch/fetch" {
		t.Errorf("%+v\n%+v", fetch, other)
	}
	for _, name := range []string{fetch.Manifest.Runner.Entry, other.Manifest.Runner.Entry, "shared.py", "__init__.py"} {
		if _, err := os.Stat(filepath.Join(fetch.Package.Dir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := b.CheckPackage(t.Context(), fetch.Package); err != nil {
		t.Error(err)
	}

	// What is the same again changes nothing, for one tool of it too.
	again := b.register(tree+"/log_analysis/fetch", registry.RegisterOptions{})
	if !again.Unchanged || again.State != registry.Active {
		t.Errorf("%+v", again)
	}
	// One tool's change makes the tree another: all that was approved waits.
	write(t, tree+"/log_analysis/fetch/manifest.json", millManifest("fetch", "1.1.0"))
	report, _ = b.Register(t.Context(), tree, registry.RegisterOptions{})
	for _, one := range report.Registered {
		if !one.Held {
			t.Errorf("not held: %+v", one)
		}
	}
	b.expect("fetch", "fetch/fetch@1.0.0")
	for _, one := range report.Registered {
		b.approve(one.Name + "@" + one.Version)
	}
	b.expect("fetch", "fetch/fetch@1.1.0")
	if now, err := b.Resolve(t.Context(), "report"); err != nil || now.Package == other.Package {
		t.Errorf("%+v, %v", now, err)
	}

	// The package is there as long as one of its tools is.
	for _, ref := range []string{"fetch@1.0.0", "fetch@1.1.0"} {
		if _, err := b.Delete(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.packages(); len(got) != 1 {
		t.Errorf("packages %q", got)
	}
	b.reopen()
	b.expect("report", "report/report@2.0.0")
	now, _ := b.Resolve(t.Context(), "report")
	if err := b.CheckPackage(t.Context(), now.Package); err != nil {
		t.Error(err)
	}
	if _, err := b.Delete(t.Context(), "report"); err != nil {
		t.Fatal(err)
	}
	if got := b.packages(); len(got) != 0 {
		t.Errorf("packages %q", got)
	}
}

// Whatever is changed in a tree holds all of its tools: they use each other's code.
func TestTamperingHoldsAllToolsOfATree(t *testing.T) {
	t.Parallel()
	b := open(t)
	if _, err := b.Register(t.Context(), grove(t, "fetch", "report"), registry.RegisterOptions{Enable: true}); err != nil {
		t.Fatal(err)
	}
	target, err := b.Resolve(t.Context(), "fetch")
	if err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(target.Package.Dir, "shared.py")
	_ = os.Chmod(shared, 0o644)
	write(t, shared, "n = 2\n")
	if err := b.CheckPackage(t.Context(), target.Package); plugin.CodeOf(err) != plugin.CodeQuarantined {
		t.Error(err)
	}
	for _, name := range []string{"fetch", "report"} {
		if got := b.resolved(name); !strings.HasPrefix(got, "quarantined: ") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A linked tool follows all of its tree.
func TestALinkedToolFollowsItsTree(t *testing.T) {
	t.Parallel()
	b := open(t)
	tree := grove(t, "fetch", "report")
	dir := tree + "/log_analysis/fetch"
	one := b.register(dir, registry.RegisterOptions{Dev: true})
	if one.Path != dir || one.State != registry.Active {
		t.Errorf("%+v", one)
	}
	first, err := b.Resolve(t.Context(), "fetch")
	if err != nil || first.Package.Dir != tree || first.Manifest.Runner.Entry != "log_analysis/fetch/tool.py" {
		t.Fatalf("%+v, %v", first, err)
	}
	if got := b.resolved("report"); !strings.HasPrefix(got, "not_found: ") {
		t.Errorf("its neighbour was linked too: %s", got)
	}
	later := func() { b.clock.Add(1) }

	later()
	write(t, tree+"/shared.py", "n = 2\n")
	second, err := b.Resolve(t.Context(), "fetch")
	if err != nil || second.Package.Digest == first.Package.Digest || second.Package.Dir != tree {
		t.Errorf("after a change elsewhere in the tree: %+v, %v", second, err)
	}
	later()
	write(t, dir+"/manifest.json", "{")
	if got := b.resolved("fetch"); !strings.HasPrefix(got, "invalid_input: fetch@1.0.0: the plugin is not acceptable\nmanifest.json: ") {
		t.Error(got)
	}
	later()
	write(t, dir+"/manifest.json", millManifest("fetch", "1.1.0"))
	b.expect("fetch", "fetch/fetch@1.1.0")

	b.reopen()
	third, err := b.Resolve(t.Context(), "fetch")
	if err != nil || third.Package.Dir != tree || third.Manifest.Dir != "log_analysis/fetch" {
		t.Errorf("after a restart: %+v, %v", third, err)
	}
	report, err := b.Register(t.Context(), tree, registry.RegisterOptions{Dev: true})
	if err != nil || names(tree, report) != "fetch report" {
		t.Errorf("%s, %v", names(tree, report), err)
	}
	target, _ := b.Resolve(t.Context(), "report")
	if target.Package != third.Package {
		t.Errorf("two packages of one tree: %+v, %+v", target.Package, third.Package)
	}
}

// A tool that stands in no tree is a package by itself.
func TestAToolWithoutATree(t *testing.T) {
	t.Parallel()
	b := open(t)
	dir := t.TempDir() + "/fetch"
	write(t, dir+"/manifest.json", millManifest("fetch", "1.0.0"))
	write(t, dir+"/tool.py", "class T: pass\n")
	write(t, filepath.Dir(dir)+"/other.py", "")
	b.install(dir)
	target, err := b.Resolve(t.Context(), "fetch")
	if err != nil || target.Manifest.Dir != "" || target.Manifest.Runner.Entry != "tool.py" {
		t.Fatalf("%+v, %v", target, err)
	}
	if _, err := os.Stat(filepath.Join(target.Package.Dir, "tool.py")); err != nil {
		t.Error(err)
	}
	// Where nothing was approved, it stands for its files as any plugin does.
	other := t.TempDir() + "/second"
	write(t, other+"/manifest.json", millManifest("second", "1.0.0"))
	write(t, other+"/tool.py", "class T: pass\n")
	b.register(other, registry.RegisterOptions{})
	write(t, other+"/tool.py", "class T: x = 1\n")
	if _, err := b.Register(t.Context(), other, registry.RegisterOptions{}); err == nil || !strings.Contains(err.Error(), "is registered with other files") {
		t.Error(err)
	}
}

// A tree of which nothing was approved yet is replaced as a whole, whatever
// the versions of its tools.
func TestATreeNotYetApprovedIsReplaced(t *testing.T) {
	t.Parallel()
	b := open(t)
	tree := grove(t, "fetch", "report")
	for _, text := range []string{"n = 1\n", "n = 2\n"} {
		write(t, tree+"/shared.py", text)
		report, err := b.Register(t.Context(), tree, registry.RegisterOptions{})
		if err != nil || names(tree, report) != "fetch report" {
			t.Fatalf("%s, %v", names(tree, report), err)
		}
	}
	if got := b.packages(); len(got) != 1 {
		t.Errorf("packages %q", got)
	}
}

// A tree that one node registered is on another when one of its tools is launched.
func TestATreeComesFromTheArchive(t *testing.T) {
	t.Parallel()
	one, two, shared := nodes(t)
	if _, err := one.Register(t.Context(), grove(t, "fetch", "report"), registry.RegisterOptions{Enable: true}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"report", "fetch"} {
		target := two.target(name)
		if err := two.CheckPackage(t.Context(), target.Package); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(target.Package.Dir, target.Manifest.Runner.Entry)); err != nil {
			t.Error(err)
		}
	}
	if shared.opened != 1 {
		t.Errorf("fetched %d times", shared.opened)
	}
}

// A bundled tool is a package by itself, whatever the host has around it.
func TestABundledToolIsAPackageByItself(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"log_analysis/fetch/manifest.json": bundledFile(millManifest("fetch", "1.0.0")),
		"log_analysis/fetch/tool.py":       bundledFile("class T: pass\n"),
		"log_analysis/other.py":            bundledFile(""),
	}
	b := open(t, func(o *registry.Options) { o.Bundled, o.BundledDirs = files, []string{"log_analysis/fetch"} })
	target, err := b.Resolve(context.Background(), "fetch")
	if err != nil || target.Manifest.Dir != "" || target.Manifest.Runner.Entry != "tool.py" {
		t.Fatalf("%+v, %v", target, err)
	}
	if err := b.CheckPackage(t.Context(), target.Package); err != nil {
		t.Error(err)
	}
	b.reopen()
	b.expect("fetch", "fetch/fetch@1.0.0")
	if b.described.Load() != 0 {
		t.Error("its code was asked what it does")
	}
}
