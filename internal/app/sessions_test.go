package app_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/plugin"
)

// Where nodes share a database, artifacts in a data directory are of the node
// that came first; others can see what there is, and add nothing.
func TestLocalArtifactsAreOfOneNode(t *testing.T) {
	t.Parallel()
	url := pgtest.Open(t)
	first := node(t, url, "")
	ctx := t.Context()
	s, err := first.Sessions.Create(ctx, first.Config.Tenant, session.Open{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Sessions.Add(ctx, first.Config.Tenant, s.ID, strings.NewReader("x"), session.Add{Name: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := nodeIn(t, url, first.Home).Sessions.Create(ctx, first.Config.Tenant, session.Open{}); err != nil {
		t.Errorf("another host on the same machine: %v", err)
	}
	second := node(t, url, first.Home)
	if all, err := second.Sessions.Artifacts(ctx, first.Config.Tenant, s.ID); len(all) != 1 || err != nil {
		t.Errorf("it sees %v, %v", all, err)
	}
	_, err = second.Sessions.Add(ctx, first.Config.Tenant, s.ID, strings.NewReader("y"), session.Add{Name: "y"})
	if plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(fmt.Sprint(err), "'blobs' in mortise.yaml") {
		t.Errorf("it adds one: %v", err)
	}
}

func TestAPlaceOfArtifactsThatIsNone(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "mortise.yaml", "blobs: data/blobs\n")
	if _, err := app.Open(t.Context(), app.Options{Home: home, Log: quiet}); !strings.Contains(fmt.Sprint(err), "blobs: it is the absolute path") {
		t.Errorf("opening it: %v", err)
	}
}
