package secret

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

func (s *scene) putLabelled(n store.SecretName, value string, labels ...string) {
	s.t.Helper()
	if err := s.Ready(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	err := s.st.Write(s.t.Context(), func(tx store.Tx) error {
		return s.PutIn(s.t.Context(), tx, n, Value{Text: value, Labels: labels}, By{Principal: "ada", Plugin: "mail@1.0.0", Call: "c"})
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) wantLabels(when string, n store.SecretName, value string, labels ...string) {
	s.t.Helper()
	got, found, err := s.Get(s.t.Context(), Need{n.Tenant, n.Owner, n.Subject, n.Name, n.Scope})
	if err != nil || !found || got.Text != value || !slices.Equal(got.Labels, labels) {
		s.t.Errorf("%s: %+v, %t, %v; want the labels %q", when, got, found, err, labels)
	}
}

// TestLabelsAreSealedWithTheValue: they come with it, also once keys were changed;
// one who writes the database without the key cannot remove, add or move them; and
// a value that was sealed before there were labels is read as it was.
func TestLabelsAreSealedWithTheValue(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	both, plain, like, old := name("mail", User, "user::ada", "both"), name("mail", User, "user::ada", "plain"), name("mail", User, "user::ada", "like"), name("mail", User, "user::ada", "old")
	const alike = `{"value":"x","labels":["private"]}`
	s.putLabelled(both, "a value", plugin.Untrusted, "private", plugin.Untrusted)
	s.put(plain, "another value")
	s.put(like, alike)
	err := s.st.Write(t.Context(), func(tx store.Tx) error { // as hosts before kept it
		k, n, err := s.current(t.Context(), tx)
		if err == nil {
			_, err = tx.PutSecret(store.SecretRow{SecretName: old, Ciphertext: k.seal([]byte("an old value"), purpose(old)), Key: n, UpdatedAt: now()})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	look := func(when string) {
		t.Helper()
		s.wantLabels(when, both, "a value", "private", plugin.Untrusted)
		s.wantLabels(when, plain, "another value")
		s.wantLabels(when, like, alike)
		s.wantLabels(when, old, "an old value")
	}
	look("as they were set")
	if _, err := s.Rotate(t.Context(), "t", By{}); err != nil {
		t.Fatal(err)
	}
	look("once keys were changed")

	labels := func(v *Vault) (listed [][]string) {
		t.Helper()
		all, err := v.List(t.Context(), "t")
		if err != nil || len(all) != 4 {
			t.Fatal(all, err)
		}
		for _, i := range all {
			listed = append(listed, i.Labels)
		}
		return listed
	}
	if got := labels(s.Vault); !slices.Equal(got[0], []string{"private", plugin.Untrusted}) || got[1] != nil || got[2] != nil || got[3] != nil {
		t.Errorf("listed are %q", got)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	if got := labels(s.another(Place{Command: []string{"touch", ran}})); got[0] != nil {
		t.Errorf("listed without the key are %q", got)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a command was run to show labels")
	}

	row := must(s.st.Secret(t.Context(), both))
	keys := must(s.st.SecretKeys(t.Context()))
	for i := range row.Ciphertext {
		flipped := *row
		flipped.Ciphertext = bytes.Clone(row.Ciphertext)
		flipped.Ciphertext[i] ^= 1
		if got, err := s.decrypt(t.Context(), keys, &flipped); err == nil {
			t.Errorf("byte %d can be changed: %+v", i, got)
		}
	}
	for _, to := range []store.SecretName{plain, name("other", User, "user::ada", "both"), name("mail", User, "user::eve", "both"), name("mail", System, "", "both")} {
		moved := *row
		moved.SecretName = to
		if got, err := s.decrypt(t.Context(), keys, &moved); err == nil {
			t.Errorf("it can be moved to %+v: %+v", to, got)
		}
	}
	clean := *must(s.st.Secret(t.Context(), plain))
	clean.SecretName = both
	if got, err := s.decrypt(t.Context(), keys, &clean); err == nil {
		t.Errorf("one without labels can be put in its place: %+v", got)
	}
}

// TestADeletedSecretTellsItsLabels: what is deleted has the labels that it had, and
// counts as untrusted where the key is lost.
func TestADeletedSecretTellsItsLabels(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	n := name("mail", User, "user::ada", "k")
	for _, c := range []struct {
		labels, want []string
		lost         bool
	}{{nil, nil, false}, {[]string{"private"}, []string{"private"}, false}, {[]string{"private"}, []string{plugin.Untrusted}, true}} {
		s.putLabelled(n, "a value", c.labels...)
		v := s.Vault
		if c.lost {
			v = s.another(Place{Dir: t.TempDir()})
		}
		var found bool
		var labels []string
		err := s.st.Write(t.Context(), func(tx store.Tx) (err error) {
			found, labels, err = v.DeleteIn(t.Context(), tx, n, By{})
			return err
		})
		if err != nil || !found || !slices.Equal(labels, c.want) {
			t.Errorf("with the labels %q, key lost %t: %t, %q, %v", c.labels, c.lost, found, labels, err)
		}
	}
}
