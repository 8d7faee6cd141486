package registry_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	b := open(t)
	for _, version := range []string{"1.0.0", "1.2.0", "1.10.0", "2.0.0", "3.0.0-rc.1"} {
		b.install(author(t, "mail", version, "send", "draft"))
	}
	b.install(author(t, "int", "0.1.0", "add"))
	b.install(author(t, "beta", "1.0.0-beta", "x"))
	b.register(author(t, "off", "1.0.0", "x"), registry.RegisterOptions{})
	dir := author(t, "hid", "1.0.0")
	write(t, dir+"/manifest.yaml", "name: hid\nversion: 1.0.0\noperations: {a: {hidden: true}, b: {}}\n")
	b.install(dir)
	dir = filepath.Join(t.TempDir(), "draft_tool")
	write(t, dir+"/manifest.json", `{"tool_name": "draft_tool", "version": "0.2.0-beta", "pillar": "log_analysis", "display_name": "Draft", "description_short": "A draft.",
		"entry_point": "tool.py", "class_name": "Draft"}`)
	write(t, dir+"/tool.py", "class Draft:\n    pass\n")
	b.install(dir)
	for _, v := range []string{"2025.11-rc1", "1.0.0-beta.2"} {
		dir := t.TempDir()
		name := "shu_" + strings.ReplaceAll(strings.ReplaceAll(v, ".", "_"), "-", "_")
		write(t, dir+"/manifest.py", `PLUGIN_MANIFEST = {"name": "`+name+`", "version": "`+v+`", "module": "plugin:Plugin"}`)
		write(t, dir+"/plugin.py", "class Plugin:\n    pass\n")
		write(t, dir+"/describe.json", `{"name": "`+name+`", "operations": {"one": {"kind": "operator", "input": {}}}}`)
		b.install(dir)
	}
	if _, err := b.Disable(context.Background(), "mail@1.10.0"); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct{ ref, want string }{
		{"mail/send", "mail/send@2.0.0"},
		{"mail/send@1", "mail/send@1.2.0"},
		{"mail/send@^1.0", "mail/send@1.2.0"},
		{"mail/send@1.0.0", "mail/send@1.0.0"},
		{"mail/send@=1.0.0", "mail/send@1.0.0"},
		{"mail/send@~1.0", "mail/send@1.0.0"},
		{"mail/draft@>=1, <2", "mail/draft@1.2.0"},
		{"mail/send@*", "mail/send@2.0.0"},
		{"mail/send@3.0.0-rc.1", "mail/send@3.0.0-rc.1"},
		{"mail/send@>=3.0.0-0", "mail/send@3.0.0-rc.1"},
		{"int", "int/add@0.1.0"},
		{"int@0.1", "int/add@0.1.0"},
		{"hid", "hid/b@1.0.0"},
		{"hid/a", "hid/a@1.0.0"},

		{"mail", "invalid_input: mail has 2 operations: name one, as in mail/draft, mail/send"},
		{"mail/sned", "not_found: mail 2.0.0 has no operation sned; did you mean mail/send?"},
		{"mail/zzzzzz", "not_found: mail 2.0.0 has no operation zzzzzz"},
		{"mail/send@4", "not_found: mail has no version 4; there is 3.0.0-rc.1, 2.0.0, 1.10.0, 1.2.0, 1.0.0"},
		{"mail/send@3", "not_found: mail has no version 3; there is 3.0.0-rc.1, 2.0.0, 1.10.0, 1.2.0, 1.0.0"},
		{"mail/send@1.10.0", "disabled: mail@1.10.0 is disabled"},
		{"off", "disabled: off@1.0.0 is disabled"},
		{"draft_tool", "draft_tool/draft_tool@0.2.0-beta"},
		{"shu_2025_11_rc1/one", "shu_2025_11_rc1/one@2025.11.0-rc1"},
		{"shu_1_0_0_beta_2/one", "shu_1_0_0_beta_2/one@1.0.0-beta.2"},
		{"beta", "not_found: beta has pre-releases only, which must be asked for: 1.0.0-beta"},
		{"Mail/send", "not_found: no plugin is called Mail; did you mean mail?"},
		{"mial/send", "not_found: no plugin is called mial; did you mean mail?"},
		{"quite_else", "not_found: no plugin is called quite_else"},
		{"", "invalid_input: an operation is named name, name/operation or name/operation@version; here is nothing"},
		{"mail/", `invalid_input: "mail/" is not of the form name/operation@version`},
		{"mail/send/x", `invalid_input: "mail/send/x" is not of the form name/operation@version`},
		{"../mail", `invalid_input: "../mail" is not of the form name/operation@version`},
		{"mail@", `invalid_input: "mail@" names no version after the @`},
		{"mail@latest", `invalid_input: "latest" is no version or range of versions`},
		{"mail@" + strings.Repeat("1||", 300) + "1", `invalid_input: "` + strings.Repeat("1||", 66) + `1|..." is no version or range of versions`},
	} {
		b.expect(c.ref, c.want)
	}
}

func TestTargetHoldsWhatACallNeeds(t *testing.T) {
	t.Parallel()
	b := open(t)
	one := b.install(author(t, "mail", "1.0.0", "send", "draft"))
	target, err := b.Resolve(context.Background(), "mail/send")
	if err != nil {
		t.Fatal(err)
	}
	again, _ := b.Resolve(context.Background(), "mail/send@1.0.0")
	if again != target {
		t.Error("the same operation has two targets")
	}
	if target.Package != (plugin.Package{Digest: one.Digest, Dir: one.Path}) || target.Operation.Name != "send" {
		t.Errorf("%+v", target)
	}
	if err := target.Input.Check(t.Context(), []byte(`{}`)); err != nil {
		t.Error(err)
	}
	if err := target.Input.Check(t.Context(), []byte(`1`)); err == nil {
		t.Error("the input schema accepts a number")
	}
	if err := target.Output.Check(t.Context(), []byte(`"x"`)); err != nil {
		t.Error(err)
	}
}

// Run with -race: each reader sees a complete answer while plugins come and go.
func TestResolveWhileRegistering(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.install(author(t, "mail", "1.0.0", "send"))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				ref := fmt.Sprintf("mail/send@>=0.%d.%d", i, n%50)
				if target, err := b.Resolve(context.Background(), ref); err != nil || target.Operation.Name != "send" {
					t.Errorf("%s: %v", ref, err)
					return
				}
			}
		}()
	}
	for i := range 8 {
		b.install(author(t, "mail", fmt.Sprintf("1.%d.0", i+1), "send"))
		b.install(author(t, fmt.Sprintf("other%d", i), "1.0.0", "x"))
		if _, err := b.Disable(context.Background(), fmt.Sprintf("mail@1.%d.0", i+1)); err != nil {
			t.Error(err)
		}
		if _, err := b.Delete(context.Background(), fmt.Sprintf("other%d", i)); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	b.expect("mail", "mail/send@1.0.0")
}

func BenchmarkResolve(b *testing.B) {
	r := open(b)
	r.install(author(b, "mail", "1.0.0", "send"))
	dev := author(b, "linked", "1.0.0", "send")
	r.register(dev, registry.RegisterOptions{Dev: true})
	ctx := context.Background()
	for _, ref := range []string{"mail/send@^1", "linked/send"} {
		b.Run(strings.ReplaceAll(ref, "/", "."), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Resolve(ctx, ref); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("not seen before", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			if _, err := r.Resolve(ctx, fmt.Sprintf("mail/send@>=0.%d.0", i)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	r := open(b)
	for i := range 100 {
		r.install(author(b, fmt.Sprintf("p%d", i), "1.0.0", "a", "b"))
	}
	r.options.Bundled = os.DirFS(b.TempDir())
	for b.Loop() {
		r.reopen()
	}
}
