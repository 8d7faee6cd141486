package registry_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/catalog/signed"
	"github.com/mortise-dev/mortise/plugin"
)

// A maker packs plugins and signs them.
type maker struct {
	t   *testing.T
	key signed.SecretKey
}

func newMaker(t *testing.T) maker {
	t.Helper()
	key, err := signed.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return maker{t, key}
}

// publisher is what a host trusts a maker with.
func (m maker) publisher(name string, plugins ...string) signed.Publisher {
	return signed.Publisher{Name: name, Plugins: plugins, Keys: []string{m.key.PublicKey.String()}}
}

// pack packs a version of a plugin, signed by the maker unless it has no key.
func (m maker) pack(name, version string) (file string, made registry.Packed) {
	m.t.Helper()
	made, file, err := registry.PackFile(m.t.Context(), author(m.t, name, version, "go"), filepath.Join(m.t.TempDir(), name+".tar.gz"), false, false)
	if err != nil {
		m.t.Fatal(err)
	}
	m.sign(file)
	return file, made
}

func (m maker) sign(file string) {
	m.t.Helper()
	if m.key.ID == (signed.KeyID{}) {
		return
	}
	content, err := os.ReadFile(file)
	if err != nil {
		m.t.Fatal(err)
	}
	signature, err := m.key.Sign(bytes.NewReader(content), "test")
	if err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file+signed.Suffix, signature, 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func trusting(strict bool, publishers ...signed.Publisher) func(*registry.Options) {
	return func(o *registry.Options) {
		o.Trust = signed.Trust{RequireSigned: strict, Publishers: publishers}
	}
}

// TestASignedPackageHasItsPublisher: in its record, once it is registered and enabled, and it
// has the digest that packing printed.
func TestASignedPackageHasItsPublisher(t *testing.T) {
	t.Parallel()
	acme := newMaker(t)
	b := open(t, trusting(true, acme.publisher("acme", "acme.*")))
	file, made := acme.pack("acme.letters", "1.0.0")
	got := b.register(file, registry.RegisterOptions{Enable: true})
	if got.Digest != made.Digest || got.Signer.Publisher() != "acme" || got.State != registry.Active {
		t.Errorf("%+v; it was packed as %s", got.Info, made.Digest)
	}
	b.reopen()
	shown, err := b.Show(t.Context(), "acme.letters")
	if err != nil || shown.Signer.Publisher() != "acme" {
		t.Errorf("after a restart: %v, %v", shown.Signer, err)
	}
}

// TestOnlyThePublisherBringsItsNames: neither without a signature, nor with another's, nor
// as a linked directory, nor with one that does not fit. Nothing of it stays.
func TestOnlyThePublisherBringsItsNames(t *testing.T) {
	t.Parallel()
	acme, other, unknown := newMaker(t), newMaker(t), newMaker(t)
	b := open(t, trusting(false, acme.publisher("acme", "acme.*"), other.publisher("other", "other.*")))
	unsigned, _ := maker{t: t}.pack("acme.letters", "1.0.0")
	others, _ := other.pack("acme.letters", "1.0.0")
	strangers, _ := unknown.pack("acme.letters", "1.0.0")
	for path, o := range map[string]registry.RegisterOptions{unsigned: {}, others: {}, strangers: {}, author(t, "acme.letters", "1.0.0", "go"): {Dev: true}, author(t, "ACME.letters", "1.0.0", "go"): {Force: true}} {
		if _, err := b.Register(t.Context(), path, o); plugin.CodeOf(err) != plugin.CodePolicyDenied || !strings.Contains(err.Error(), "for acme to publish") {
			t.Errorf("%s: %v", path, err)
		}
	}
	changed, _ := acme.pack("acme.letters", "1.0.0")
	content, err := os.ReadFile(changed)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(changed, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Register(t.Context(), changed, registry.RegisterOptions{}); plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), "does not fit") {
		t.Errorf("a changed package: %v", err)
	}
	if list, err := b.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	free, _ := unknown.pack("notes", "1.0.0")
	if got := b.register(free, registry.RegisterOptions{}); got.Signer != "" {
		t.Errorf("a key that no one knows makes %s the signer", got.Signer)
	}
}

// TestAnotherPublisherIsHeldAndShown: and so is one that has stopped to sign.
func TestAnotherPublisherIsHeldAndShown(t *testing.T) {
	t.Parallel()
	acme, other := newMaker(t), newMaker(t)
	b := open(t, trusting(false, acme.publisher("acme", "letters"), other.publisher("other", "letters")))
	first, _ := acme.pack("letters", "1.0.0")
	b.register(first, registry.RegisterOptions{Enable: true})
	next, _ := other.pack("letters", "1.0.1")
	if got := b.register(next, registry.RegisterOptions{}); got.State != registry.Quarantined || !got.Held {
		t.Errorf("%+v", got)
	}
	review := b.review("letters@1.0.1")
	if change := review.Difference.May[0]; change.At != "/signer" || !strings.HasPrefix(string(change.Before), `"acme/`) || !strings.HasPrefix(string(change.After), `"other/`) {
		t.Errorf("%+v", review.Difference.May)
	}
	b.expect("letters/go", "letters/go@1.0.0")
	if got := b.approve("letters@1.0.1"); got.Signer.Publisher() != "other" {
		t.Errorf("%+v", got)
	}
	if _, err := b.Register(t.Context(), first, registry.RegisterOptions{}); err != nil {
		t.Errorf("what is registered comes again: %v", err)
	}
	other.sign(first)
	if _, err := b.Register(t.Context(), first, registry.RegisterOptions{}); plugin.CodeOf(err) != plugin.CodeConflict {
		t.Errorf("the same files with another's signature: %v", err)
	}
}

// TestAKeyThatIsTrustedNoMore lets what it signed be neither enabled nor approved.
func TestAKeyThatIsTrustedNoMore(t *testing.T) {
	t.Parallel()
	acme, next := newMaker(t), newMaker(t)
	publisher := acme.publisher("acme", "acme.*")
	b := open(t, func(o *registry.Options) { o.Trust = signed.Trust{Publishers: []signed.Publisher{publisher}} })
	file, _ := acme.pack("acme.letters", "1.0.0")
	b.register(file, registry.RegisterOptions{})
	b.options.Trust = signed.Trust{Publishers: []signed.Publisher{next.publisher("acme", "acme.*")}}
	b.reopen()
	if _, err := b.Enable(t.Context(), "acme.letters"); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Errorf("%v", err)
	}
	next.sign(file)
	if got := b.register(file, registry.RegisterOptions{Enable: true}); got.State != registry.Active || got.Signer != signed.Signer("acme/"+next.key.ID.String()) {
		t.Errorf("signed again with the new key: %+v", got)
	}
}

// TestAnOlderVersionIsForced: what was approved is not followed by what came before it.
func TestAnOlderVersionIsForced(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.register(author(t, "letters", "2.0.0", "go"), registry.RegisterOptions{Enable: true})
	older := author(t, "letters", "1.9.0", "go")
	if _, err := b.Register(t.Context(), older, registry.RegisterOptions{}); plugin.CodeOf(err) != plugin.CodeConflict || !strings.Contains(err.Error(), "--force") {
		t.Errorf("%v", err)
	}
	if got := b.register(older, registry.RegisterOptions{Force: true}); got.State != registry.Quarantined {
		t.Errorf("%+v", got.Info)
	}
	b.register(older, registry.RegisterOptions{}) // it is there now
}

// TestPackingIsReproducible: the same files make the same bytes, whenever and wherever they
// were written, and nothing else does.
func TestPackingIsReproducible(t *testing.T) {
	t.Parallel()
	pack := func(dir string, secrets bool) ([]byte, registry.Packed, error) {
		var out bytes.Buffer
		made, err := registry.Pack(t.Context(), dir, "p.tar.gz", &out, secrets)
		return out.Bytes(), made, err
	}
	base := t.TempDir()
	lay := func(where string) string {
		dir := filepath.Join(base, where, "letters")
		write(t, filepath.Join(dir, "manifest.yaml"), manifest("letters", "1.0.0", "go"))
		write(t, filepath.Join(dir, "plugin.py"), "")
		write(t, filepath.Join(dir, "build", "junk.o"), "junk")
		write(t, filepath.Join(dir, ".mortiseignore"), "build/\n*.key\n")
		write(t, filepath.Join(dir, "my.key"), "k")
		return dir
	}
	a, b := lay("a"), lay("b")
	if err := os.Chtimes(filepath.Join(b, "manifest.yaml"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	one, made, err := pack(a, false)
	two, _, err2 := pack(b, false)
	if err != nil || err2 != nil || !bytes.Equal(one, two) || len(one) == 0 {
		t.Fatalf("%v, %v: %d and %d bytes", err, err2, len(one), len(two))
	}
	if got := strings.Join(made.Files, " "); got != "letters/manifest.yaml letters/plugin.py" {
		t.Errorf("it has %q", made.Files)
	}
	write(t, filepath.Join(a, ".env"), "TOKEN=x")
	write(t, filepath.Join(a, "notes.txt"), "-----BEGIN PRIVATE KEY-----\n")
	if _, made, err := pack(a, false); plugin.CodeOf(err) != plugin.CodeInvalidInput || strings.Join(made.Secrets, " ") != ".env notes.txt" {
		t.Errorf("secrets: %v, %v", made.Secrets, err)
	}
	if _, made, err := pack(a, true); err != nil || len(made.Files) != 4 || len(made.Secrets) != 2 {
		t.Errorf("secrets that are meant: %+v, %v", made, err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(b, "link")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := pack(b, false); plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a link: %v", err)
	}
}
