package registry_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
)

// pillared is the manifest of an Event Mill tool of any pillar.
func pillared(name, pillar string) string {
	return strings.ReplaceAll(millManifest(name, "1.0.0"), "log_analysis", pillar)
}

// holdsCanary reports whether a package holds what stands beside it.
func holdsCanary(t *testing.T, dir string) bool {
	t.Helper()
	found := false
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		found = found || entry != nil && entry.Name() == "canary"
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// What a manifest says of its pillar makes no directory above the one that was
// named a part of the package, unless that is the contract's plugins directory.
func TestAPackageIsNoWiderThanWhatWasNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool, pillar string // where the tool is, below the directory of canaries
		named        string
		beside       string // a file that makes the directory of canaries a home
	}{
		"the tool itself": {tool: "evil/tool", pillar: "evil", named: "evil/tool"},
		"the repository":  {tool: "evil/tool", pillar: "evil", named: "evil"},
		"the repository, with a pillar of the five":    {tool: "log_analysis/tool", pillar: "log_analysis", named: "log_analysis"},
		"another pillar than the directory":            {tool: "risk_assessment/tool", pillar: "other", named: "risk_assessment/tool"},
		"a repository with its manifest at the top":    {tool: "home/evil", pillar: "home", named: "home/evil"},
		"a home that is named":                         {tool: "evil/tool", pillar: "evil", named: ".", beside: ".ssh/id"},
		"a home that is called plugins":                {tool: "plugins/evil/tool", pillar: "evil", named: "plugins/evil", beside: "plugins/.bashrc"},
		"a repository that is called plugins, further": {tool: "plugins/evil/tool", pillar: "evil", named: "plugins/evil/tool"},
	} {
		for _, dev := range []bool{true, false} {
			for _, linked := range []bool{false, true} {
				b, top := open(t), filepath.Join(t.TempDir(), "top")
				write(t, top+"/canary", "secret")
				if name == "a home that is called plugins" {
					write(t, top+"/plugins/canary", "secret")
				}
				write(t, filepath.Join(top, c.tool, "manifest.json"), pillared("tool", c.pillar))
				write(t, filepath.Join(top, c.tool, "tool.py"), "class T: pass\n")
				if c.beside != "" {
					write(t, filepath.Join(top, c.beside), "")
				}
				named := filepath.Join(top, c.named)
				if linked {
					link := filepath.Join(t.TempDir(), "link")
					if err := os.Symlink(named, link); err != nil {
						t.Fatal(err)
					}
					named = link
				}
				report, err := b.Register(t.Context(), named, registry.RegisterOptions{Dev: dev, Enable: true})
				if err != nil || len(report.Registered) == 0 {
					t.Errorf("%s: %v, %+v", name, err, report)
					continue
				}
				target, err := b.Resolve(t.Context(), "tool")
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if holdsCanary(t, target.Package.Dir) {
					t.Errorf("%s, linked %v, by a link %v: the package is %s and holds the file beside it", name, dev, linked, target.Package.Dir)
				}
			}
		}
	}
}

// A package that was linked does not grow when its manifest names another pillar
// afterwards, in this process or in the next.
func TestALinkedPackageDoesNotGrow(t *testing.T) {
	t.Parallel()
	b, top := open(t), filepath.Join(t.TempDir(), "top")
	write(t, top+"/canary", "secret")
	dir := top + "/evil/tool"
	write(t, dir+"/manifest.json", pillared("tool", "other"))
	write(t, dir+"/tool.py", "class T: pass\n")
	b.register(dir, registry.RegisterOptions{Dev: true})
	for _, step := range []func(){func() { b.clock.Add(1) }, func() { b.reopen() }} {
		write(t, dir+"/manifest.json", pillared("tool", "evil"))
		step()
		target, err := b.Resolve(t.Context(), "tool")
		if err != nil {
			t.Fatal(err)
		}
		if target.Package.Dir != dir || holdsCanary(t, target.Package.Dir) {
			t.Errorf("the package is %s now", target.Package.Dir)
		}
	}
}

// The directory of all pillars is the package where it was named, whatever it is
// called, and where it is called as the contract has it.
func TestATreeIsOnePackageWhereItMayBe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tree, named string }{
		{"tools", "."}, {"tools", "tools"}, {"plugins", "plugins/evil"}, {"plugins", "plugins/evil/tool"},
	} {
		for _, dev := range []bool{true, false} {
			b, top := open(t), filepath.Join(t.TempDir(), "top")
			write(t, filepath.Join(top, c.tree, "shared.py"), "")
			write(t, filepath.Join(top, c.tree, "evil/tool/manifest.json"), pillared("tool", "evil"))
			write(t, filepath.Join(top, c.tree, "evil/tool/tool.py"), "class T: pass\n")
			b.register(filepath.Join(top, c.named), registry.RegisterOptions{Dev: dev, Enable: true})
			target, err := b.Resolve(t.Context(), "tool")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(target.Package.Dir, "shared.py")); err != nil || target.Manifest.Dir != "evil/tool" {
				t.Errorf("%+v, linked %v: %+v, %v", c, dev, target, err)
			}
		}
	}
}
