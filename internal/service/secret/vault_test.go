package secret

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// A scene is a vault in a data directory of its own.
type scene struct {
	*Vault
	t   *testing.T
	dir string
	st  store.Store
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir()}
	st, err := sqlite.Open(t.Context(), s.dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	s.st = st
	s.Vault = s.another(Place{Dir: s.dir})
	return s
}

// another is the vault of another process.
func (s *scene) another(p Place) *Vault { return New(s.st, p, NewScrubber()) }

func name(owner, scope, subject, name string) store.SecretName {
	return store.SecretName{Tenant: "t", Owner: owner, Scope: scope, Subject: subject, Name: name}
}

func (s *scene) put(n store.SecretName, value string) {
	s.t.Helper()
	if err := s.Put(s.t.Context(), n, value, By{Principal: "ada"}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) want(v *Vault, n Need, want string) {
	s.t.Helper()
	got, found, err := v.Find(s.t.Context(), n)
	if err != nil || got != want || found != (want != "") {
		s.t.Errorf("%+v: %q, %t, %v; want %q", n, got, found, err, want)
	}
}

func TestScopesOfSecrets(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const user, system, both = plugin.SecretOfUser, plugin.SecretOfSystem, plugin.SecretOfSystemOrUser
	need := func(who, name, scope string) Need { return Need{"t", "mail", who, name, scope} }
	steps := []struct {
		put               store.SecretName // with the step's number as its value
		user, system, any string           // what ada finds then
	}{
		{name("other", System, "", "k"), "", "", ""},
		{name("mail", User, "user::bob", "k"), "", "", ""},
		{store.SecretName{Tenant: "u", Owner: "mail", Scope: System, Name: "k"}, "", "", ""},
		{name(Anyone, System, "", "k"), "", "value 3", "value 3"},
		{name("mail", System, "", "k"), "", "value 4", "value 4"},
		{name(Anyone, User, "user::ada", "k"), "value 5", "value 4", "value 5"},
		{name("mail", User, "user::ada", "k"), "value 6", "value 4", "value 6"},
	}
	for i, step := range steps {
		s.put(step.put, fmt.Sprintf("value %d", i))
		s.want(s.Vault, need("user::ada", "k", user), step.user)
		s.want(s.Vault, need("user::ada", "k", system), step.system)
		s.want(s.Vault, need("user::ada", "k", both), step.any)
	}
	s.want(s.Vault, need("user::bob", "k", user), "value 1")
	s.want(s.Vault, need("", "k", user), "")
	s.want(s.Vault, need("user::ada", "K", both), "")
	if found, err := s.Delete(t.Context(), steps[6].put, By{Principal: "ada"}); !found || err != nil {
		t.Errorf("deleting it: %t, %v", found, err)
	}
	if found, err := s.Delete(t.Context(), steps[6].put, By{}); found || err != nil {
		t.Errorf("deleting it again: %t, %v", found, err)
	}
	s.want(s.Vault, need("user::ada", "k", both), "value 5")
}

func TestASecretIsNowhereInPlain(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.put(name("mail", User, "user::ada", "k"), canary)
	s.want(s.another(Place{Dir: s.dir}), Need{"t", "mail", "user::ada", "k", plugin.SecretOfUser}, canary)
	files, err := filepath.Glob(filepath.Join(s.dir, "*"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := leaks(string(data), canary); found != nil {
			t.Errorf("%s has it as %v", file, found)
		}
	}
	if info, err := os.Stat(filepath.Join(s.dir, KeyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file is %v, %v", info, err)
	}
	for e, err := range s.st.Entries(t.Context(), store.EntryFilter{Kind: "secret."}) {
		if err != nil || e.Kind != plugin.EntrySecretSet || e.Subject != "k" || e.Principal != "ada" {
			t.Errorf("the entry is %+v, %v", e, err)
		}
	}
}

// TestACiphertextIsBoundToItsPlace moves ciphertexts about, as an attacker with write
// access to the database could.
func TestACiphertextIsBoundToItsPlace(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	own := name("mail", User, "user::ada", "k")
	s.put(own, "a secret of ada's")
	row, err := s.st.Secret(t.Context(), own)
	if err != nil || row == nil {
		t.Fatal(row, err)
	}
	moves := []store.SecretName{own, own, own, own}
	moves[0].Tenant, moves[1].Owner, moves[2].Subject, moves[3].Name = "u", "evil", "user::eve", "other"
	moves = append(moves, name("mail", System, "", "k"), name("mail|user", User, "user::ada", "k"))
	for _, to := range moves {
		moved := *row
		moved.SecretName = to
		if err := s.st.Write(t.Context(), func(tx store.Tx) error { _, err := tx.PutSecret(moved); return err }); err != nil {
			t.Fatal(err)
		}
		scope := plugin.SecretOfUser
		if to.Scope == System {
			scope = plugin.SecretOfSystem
		}
		got, _, err := s.Find(t.Context(), Need{to.Tenant, to.Owner, to.Subject, to.Name, scope})
		if got != "" || plugin.CodeOf(err) != plugin.CodeUnavailable {
			t.Errorf("at %+v: %q, %v", to, got, err)
		}
	}
	for i := range row.Ciphertext {
		flipped := *row
		flipped.Ciphertext = bytes.Clone(row.Ciphertext)
		flipped.Ciphertext[i] ^= 1
		if _, err := s.decrypt(t.Context(), must(s.st.SecretKeys(t.Context())), &flipped); err == nil {
			t.Errorf("byte %d can be changed", i)
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestPlacesOfTheMasterKey(t *testing.T) {
	dir := t.TempDir()
	k, other := newKey(), newKey()
	text := base64.StdEncoding.EncodeToString(k[:])
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("MORTISE_TEST_KEY", fmt.Sprintf("%x,%s", k[:], base64.RawURLEncoding.EncodeToString(other[:])))
	t.Setenv("MORTISE_TEST_WRONG", "hunter2")
	good := write("good", text+"\n"+base64.StdEncoding.EncodeToString(other[:])+"\n", 0o600)
	for what, test := range map[string]struct {
		place Place
		wrong string
	}{
		"env":              {Place{Env: "MORTISE_TEST_KEY"}, ""},
		"no env":           {Place{Env: "MORTISE_TEST_ABSENT"}, "it is not set"},
		"wrong env":        {Place{Env: "MORTISE_TEST_WRONG"}, "is no master key"},
		"file":             {Place{File: good}, ""},
		"no file":          {Place{File: filepath.Join(dir, "absent")}, "cannot be read"},
		"open file":        {Place{File: write("open", text, 0o644)}, "chmod 600"},
		"empty file":       {Place{File: write("empty", "\n", 0o600)}, "nothing is there"},
		"directory":        {Place{File: dir}, "no regular file"},
		"long file":        {Place{File: write("long", strings.Repeat(text, 200), 0o600)}, "more than 4096 bytes"},
		"many keys":        {Place{File: write("many", strings.Repeat(text+"\n", 17), 0o600)}, "at most 16 lines"},
		"command":          {Place{Command: []string{"cat", good}}, ""},
		"no command":       {Place{Command: []string{filepath.Join(dir, "absent")}}, "did not print"},
		"failing command":  {Place{Command: []string{"sh", "-c", "echo why >&2; exit 3"}}, "why"},
		"talking command":  {Place{Command: []string{"sh", "-c", "head -c 100000 /dev/zero"}}, "is no master key"},
		"own file, absent": {Place{Dir: filepath.Join(dir, "absent")}, ""},
	} {
		masters, err := test.place.read(t.Context())
		switch {
		case test.wrong != "":
			if plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), test.wrong) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", what, err)
			}
		case what == "own file, absent":
			if err != nil || masters != nil {
				t.Errorf("%s: %v, %v", what, masters, err)
			}
		case err != nil || len(masters) != 2 || masters[0].key != k || masters[1].key != other:
			t.Errorf("%s: %v, %v", what, masters, err)
		}
	}
}

func TestAMissingMasterKeyIsNamed(t *testing.T) {
	s := newScene(t)
	s.put(name(Anyone, System, "", "k"), "a secret")
	print := must(s.st.SecretKeys(t.Context()))[0].Master
	need := Need{"t", "mail", "user::ada", "k", plugin.SecretOfSystem}
	path := filepath.Join(s.dir, KeyFile)
	kept := must(os.ReadFile(path))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	another := newKey()
	t.Setenv("MORTISE_TEST_OTHER", base64.StdEncoding.EncodeToString(another[:]))
	for _, place := range []Place{{Dir: s.dir}, {Env: "MORTISE_TEST_OTHER"}} {
		v := s.another(place)
		_, _, findErr := v.Find(t.Context(), need)
		putErr := v.Put(t.Context(), name(Anyone, System, "", "other"), "another secret", By{})
		_, rotateErr := v.Rotate(t.Context(), "t", By{})
		for _, err := range []error{findErr, putErr, rotateErr} {
			if plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(fmt.Sprint(err), print) || !strings.Contains(fmt.Sprint(err), place.String()) {
				t.Errorf("%s: %v", place, err)
			}
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("another key was made in the place of the one that is missing")
	}
	if n, err := s.another(Place{Dir: s.dir}).DeleteAll(t.Context(), "t", By{}); n != 1 || err != nil {
		t.Errorf("deleting all: %d, %v", n, err)
	}
	v := s.another(Place{Dir: s.dir})
	if err := v.Put(t.Context(), name(Anyone, System, "", "k"), "a new secret", By{}); err != nil {
		t.Error(err)
	}
	s.want(v, need, "a new secret")
	if string(must(os.ReadFile(path))) == string(kept) {
		t.Error("the old key is back")
	}
}

// A faulty store fails after so many writes.
type faulty struct {
	store.Store
	left int
}

var errFault = errors.New("the process ended here")

func (f *faulty) Write(ctx context.Context, fn func(store.Tx) error) error {
	if f.left == 0 {
		return errFault
	}
	f.left--
	return f.Store.Write(ctx, fn)
}

// TestARotationSurvivesACrash stops a rotation after each of its writes: at every
// moment all secrets can be read and set by another process, and rotating again
// brings it to its end.
func TestARotationSurvivesACrash(t *testing.T) {
	t.Parallel()
	for crash := 0; ; crash++ {
		s := newScene(t)
		const n = rotateBatch + 20
		for i := range n {
			s.put(name("mail", User, "user::ada", fmt.Sprintf("k%d", i)), fmt.Sprintf("value %d", i))
		}
		before := must(s.place.read(t.Context()))[0].print
		readable := func(what string) {
			t.Helper()
			v := s.another(Place{Dir: s.dir})
			for i := range n {
				s.want(v, Need{"t", "mail", "user::ada", fmt.Sprintf("k%d", i), plugin.SecretOfUser}, fmt.Sprintf("value %d", i))
			}
			if t.Failed() {
				t.Fatalf("%s, after %d writes", what, crash)
			}
		}
		v := New(&faulty{s.st, crash}, Place{Dir: s.dir}, NewScrubber())
		r, err := v.Rotate(t.Context(), "t", By{Principal: "ada"})
		readable("stopped")
		if err == nil {
			if crash < 4 || r.Secrets != n || r.Resumed {
				t.Errorf("after %d writes it is done: %+v", crash, r)
			}
		} else if !errors.Is(err, errFault) {
			t.Fatal(err)
		}
		s.put(name("mail", User, "user::ada", "k0"), "value 0") // by one that was there before
		if err != nil {
			if r, err = s.another(Place{Dir: s.dir}).Rotate(t.Context(), "t", By{Principal: "ada"}); err != nil || !r.Resumed {
				t.Fatalf("resuming: %+v, %v", r, err)
			}
			readable("resumed")
		}
		masters := must(s.place.read(t.Context()))
		keys := must(s.st.SecretKeys(t.Context()))
		if len(masters) != 1 || masters[0].print == before || len(keys) != 1 || keys[0].Master != masters[0].print || r.Master != masters[0].print {
			t.Errorf("in the end there are the masters %v and the keys %+v", masters, keys)
		}
		if err == nil && crash >= 4 {
			break
		}
	}
}

func TestAKeyFromOutsideIsRotatedByItsFirstLine(t *testing.T) {
	s := newScene(t)
	old, next := newKey(), newKey()
	first, second := base64.StdEncoding.EncodeToString(old[:]), base64.StdEncoding.EncodeToString(next[:])
	place := Place{Env: "MORTISE_TEST_ROTATED"}
	need := Need{"t", "mail", "user::ada", "k", plugin.SecretOfSystem}
	t.Setenv(place.Env, first)
	s.Vault = s.another(place)
	s.put(name("mail", System, "", "k"), "a secret")
	t.Setenv(place.Env, second+"\n"+first)
	s.want(s.another(place), need, "a secret")
	r, err := s.another(place).Rotate(t.Context(), "t", By{})
	if err != nil || r.Secrets != 1 || r.Master != masterOf(next).print {
		t.Fatalf("%+v, %v", r, err)
	}
	t.Setenv(place.Env, second)
	s.want(s.another(place), need, "a secret")
	t.Setenv(place.Env, first)
	if _, _, err := s.another(place).Find(t.Context(), need); err == nil {
		t.Error("the old key opens it still")
	}
}

func TestWhatIsNoSecretIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for what, test := range map[string]struct {
		name, value string
		code        plugin.Code
	}{
		"no name":    {"", "value", plugin.CodeInvalidInput},
		"two words":  {"a b", "value", plugin.CodeInvalidInput},
		"a long one": {strings.Repeat("n", MaxName+1), "value", plugin.CodeInvalidInput},
		"no value":   {"k", "", plugin.CodeInvalidInput},
		"too long":   {"k", strings.Repeat("v", MaxValue+1), plugin.CodeInputTooLarge},
		"no text":    {"k", "\xff", plugin.CodeInvalidInput},
	} {
		err := s.Put(t.Context(), name(Anyone, System, "", test.name), test.value, By{})
		if plugin.CodeOf(err) != test.code {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.put(name(Anyone, System, "", "k"), strings.Repeat("v", MaxValue))
}
