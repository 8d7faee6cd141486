package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/session"
)

// The cache of a session never holds less than the session itself, whichever process
// added to it, and callers cannot change it.
func TestArtifactsThatOthersAddedAreSeen(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	another := session.New(b.Options) // as in another process: it remembers for itself
	in := b.create(t, "t")
	want := ""
	for n := range 12 {
		who := b.Sessions
		if n%3 == 1 {
			who = another
		}
		name := fmt.Sprintf("%d.log", n)
		if _, err := who.Add(t.Context(), "t", in.ID, strings.NewReader(name), session.Add{Name: name}); err != nil {
			t.Fatal(err)
		}
		want += name + " "
		for _, s := range []*session.Sessions{b.Sessions, another, b.As("mallory")} {
			all, err := s.Artifacts(t.Context(), "t", in.ID)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for i := range all {
				got += all[i].Name + " "
				all[i].Name = "changed"
			}
			if got != want {
				t.Fatalf("after %d: %q, want %q", n+1, got, want)
			}
		}
	}
	if err := another.Delete(t.Context(), "t", in.ID); err != nil {
		t.Fatal(err)
	}
	if all, err := b.Artifacts(t.Context(), "t", in.ID); err == nil {
		t.Errorf("a session that another process deleted still has %d artifacts", len(all))
	}
}
