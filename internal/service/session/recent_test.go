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

// What an artifact was made from gives it its labels, remembered or read, and only
// while its session is there.
func TestParentsGiveTheirLabels(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	another := session.New(b.Options)
	in := b.create(t, "t")
	parent, err := another.Add(t.Context(), "t", in.ID, strings.NewReader("a"), session.Add{Name: "a.log", Labels: []string{"private"}})
	if err != nil {
		t.Fatal(err)
	}
	for n, known := range []bool{false, true} {
		if known {
			if _, err := b.Artifacts(t.Context(), "t", in.ID); err != nil {
				t.Fatal(err)
			}
		}
		child := session.Add{Name: fmt.Sprint(n), Parents: []string{parent.ID}}
		if made, err := b.Add(t.Context(), "t", in.ID, strings.NewReader(child.Name), child); err != nil || fmt.Sprint(made.Labels) != "[private]" {
			t.Errorf("remembered %v: labels %v, %v", known, made.Labels, err)
		}
		child.Parents = append(child.Parents, "art_00000000")
		if _, err := b.Add(t.Context(), "t", in.ID, strings.NewReader(child.Name), child); err == nil {
			t.Errorf("remembered %v: it was made from an artifact that is not there", known)
		}
	}
	if err := another.Delete(t.Context(), "t", in.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Add(t.Context(), "t", in.ID, strings.NewReader("b"), session.Add{Name: "b.log", Parents: []string{parent.ID}}); err == nil {
		t.Error("a session that another process deleted took an artifact")
	}
}
