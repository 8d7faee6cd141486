package signed_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/signed"
	"github.com/mortise-dev/mortise/plugin"
)

func key(t *testing.T) signed.SecretKey {
	t.Helper()
	k, err := signed.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sign(t *testing.T, k signed.SecretKey, content string) []byte {
	t.Helper()
	signature, err := k.Sign(strings.NewReader(content), "acme.letters 1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

func acme(keys ...signed.SecretKey) signed.Trust {
	p := signed.Publisher{Name: "acme", Plugins: []string{"acme.*", "letters"}}
	for _, k := range keys {
		p.Keys = append(p.Keys, k.PublicKey.String())
	}
	return signed.Trust{Publishers: []signed.Publisher{p}}
}

// TestEveryChangedBitIsNoticed: of the file, and of each line of the signature that is
// signed or signs.
func TestEveryChangedBitIsNoticed(t *testing.T) {
	t.Parallel()
	k := key(t)
	trust, content, signature := acme(k), "the package", sign(t, k, "the package")
	if by, err := trust.Verify(signature, strings.NewReader(content)); err != nil || by.Publisher() != "acme" || string(by) != "acme/"+k.ID.String() {
		t.Fatalf("%s, %v", by, err)
	}
	for at := range content {
		changed := []byte(content)
		changed[at] ^= 1
		if by, err := trust.Verify(signature, bytes.NewReader(changed)); plugin.CodeOf(err) != plugin.CodeInvalidInput || by != "" {
			t.Errorf("byte %d of the file: %s, %v", at, by, err)
		}
	}
	first := bytes.IndexByte(signature, '\n') + 1
	for at := first; at < len(signature); at++ {
		for _, bit := range []byte{1, 4, 32} {
			changed := bytes.Clone(signature)
			changed[at] ^= bit
			by, err := trust.Verify(changed, strings.NewReader(content))
			if by != "" {
				t.Errorf("byte %d of the signature, %q for %q: %s, %v", at, changed[at], signature[at], by, err)
			}
		}
	}
}

func TestKeysAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	k := key(t)
	again, err := signed.ParseSecretKey(k.File())
	if err != nil || again.PublicKey.String() != k.PublicKey.String() {
		t.Fatal(err)
	}
	for _, text := range []string{k.PublicKey.String(), string(k.PublicKey.File())} {
		if public, err := signed.ParsePublicKey(text); err != nil || public.String() != k.PublicKey.String() {
			t.Errorf("%q: %v", text, err)
		}
	}
	damaged := bytes.Clone(k.File())
	damaged[len(damaged)-120] ^= 1 // in the key, behind which the sum stands
	for _, text := range []string{"", "RW", string(damaged), k.PublicKey.String(), strings.Repeat("A", 9000)} {
		if _, err := signed.ParseSecretKey([]byte(text)); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%.20q is read as a secret key: %v", text, err)
		}
	}
}

// TestWhoMayBringAName: a publisher's names are its own, and where signatures are
// required no other name gets in.
func TestWhoMayBringAName(t *testing.T) {
	t.Parallel()
	k, other := key(t), key(t)
	trust := acme(k)
	strict := trust
	strict.RequireSigned = true
	by := signed.Signer("acme/" + k.ID.String())
	for _, c := range []struct {
		trust   signed.Trust
		name    string
		by      signed.Signer
		refused bool
	}{
		{trust, "acme.letters", by, false},
		{trust, "letters", by, false},
		{trust, "ACME.letters", by, false},
		{trust, "acme.letters", "", true},
		{trust, "Acme.Letters", "", true},
		{trust, "acme.letters", signed.Signer("acme/" + other.ID.String()), true}, // a key that is trusted no more
		{trust, "acme.letters", signed.Signer("evil/" + k.ID.String()), true},
		{trust, "letters2", "", false},
		{trust, "notes", "", false},
		{strict, "notes", "", true},
		{strict, "notes", by, true}, // acme's signature is for acme's names
		{strict, "letters", by, false},
		{signed.Trust{RequireSigned: true}, "notes", by, true},
		{signed.Trust{}, "notes", "", false},
	} {
		err := c.trust.Admit(c.name, c.by)
		if c.refused != (err != nil) || err != nil && (plugin.CodeOf(err) != plugin.CodePolicyDenied || !errors.Is(err, signed.ErrNotTrusted)) {
			t.Errorf("%s by %s: %v; refused is to be %t", c.name, c.by, err, c.refused)
		}
	}
	if by, err := trust.Verify(sign(t, other, "x"), strings.NewReader("x")); by != "" || err != nil {
		t.Errorf("a key that no one knows: %s, %v", by, err)
	}
}

func TestTrustIsChecked(t *testing.T) {
	t.Parallel()
	k := key(t)
	if errs := acme(k).Check(); errs != nil {
		t.Fatal(errs)
	}
	for name, trust := range map[string]signed.Trust{
		"no key":         acme(),
		"no name":        {Publishers: []signed.Publisher{{Plugins: []string{"*"}, Keys: []string{k.PublicKey.String()}}}},
		"a slash":        {Publishers: []signed.Publisher{{Name: "a/b", Plugins: []string{"*"}, Keys: []string{k.PublicKey.String()}}}},
		"a bad key":      {Publishers: []signed.Publisher{{Name: "a", Plugins: []string{"*"}, Keys: []string{"RWQ"}}}},
		"a bad pattern":  {Publishers: []signed.Publisher{{Name: "a", Plugins: []string{"a*b"}, Keys: []string{k.PublicKey.String()}}}},
		"one name twice": {Publishers: append(acme(k).Publishers, acme(k).Publishers...)},
		"a shared key":   {Publishers: append(acme(k).Publishers, signed.Publisher{Name: "b", Plugins: []string{"b*"}, Keys: []string{k.PublicKey.String()}})},
	} {
		if trust.Check() == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestMinisignAgrees: the tool verifies what is signed here, and what it signs is
// verified here.
func TestMinisignAgrees(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("minisign")
	if err != nil {
		t.Skip("minisign is not installed: apt-get install minisign")
	}
	dir := t.TempDir()
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("minisign %q: %v\n%s", args, err, out)
		}
	}
	k, content := key(t), "the package"
	write("file", []byte(content))
	write("file.minisig", sign(t, k, content))
	write("ours.pub", k.PublicKey.File())
	write("ours.key", k.File())
	run("-V", "-m", "file", "-p", "ours.pub")
	run("-S", "-s", "ours.key", "-m", "file") // it reads our secret key
	theirs, err := os.ReadFile(filepath.Join(dir, "file.minisig"))
	if err != nil {
		t.Fatal(err)
	}
	if by, err := acme(k).Verify(theirs, strings.NewReader(content)); by == "" || err != nil {
		t.Errorf("what minisign signed: %s, %v\n%s", by, err, theirs)
	}
	run("-G", "-W", "-p", "theirs.pub", "-s", "theirs.key")
	text, err := os.ReadFile(filepath.Join(dir, "theirs.key"))
	if err != nil {
		t.Fatal(err)
	}
	read, err := signed.ParseSecretKey(text)
	if err != nil {
		t.Fatalf("a secret key of minisign: %v", err)
	}
	write("file.minisig", sign(t, read, content))
	run("-V", "-m", "file", "-p", "theirs.pub")
}
