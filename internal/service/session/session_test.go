package session_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/service/blob"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bundle is a test's own sessions.
type bundle struct {
	*session.Sessions
	st   store.Store
	home string
}

func newBundle(t *testing.T, change ...func(*session.Options)) *bundle {
	t.Helper()
	home := t.TempDir()
	st, err := sqlite.Open(t.Context(), home, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	o := session.Options{
		Store: st, Blobs: blob.OpenDir(filepath.Join(home, "blobs")), Dir: filepath.Join(home, "sessions"), MaxArtifact: 1 << 20, By: "user:ada",
	}
	for _, c := range change {
		c(&o)
	}
	return &bundle{session.New(o), st, home}
}

func (b *bundle) create(t *testing.T, tenant string) session.Session {
	t.Helper()
	s, err := b.Create(t.Context(), tenant, session.Open{Name: "case 1", Pillar: "log_analysis"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (b *bundle) add(t *testing.T, in session.Session, data string, a session.Add) session.Artifact {
	t.Helper()
	got, err := b.Add(t.Context(), "t", in.ID, strings.NewReader(data), a)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The two places that bytes are in.
var kinds = map[string]func(*session.Options){"inline": inline, "among blobs": amongBlobs}

func inline(*session.Options) {} // the default, unchanged

func amongBlobs(o *session.Options) { o.MaxInline = -1 }

// blobs counts the blobs that are kept, whole or in part.
func (b *bundle) blobs(t *testing.T) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(filepath.Join(b.home, "blobs"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "id" {
			n++
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return n
}

// entries returns kind and subject of all entries.
func (b *bundle) entries(t *testing.T) (got []string) {
	t.Helper()
	for e, err := range b.st.Entries(t.Context(), store.EntryFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s", e.Tenant, e.Kind, e.Subject, e.Principal))
	}
	return got
}

func wantCode(t *testing.T, what string, err error, code plugin.Code, text string) {
	t.Helper()
	if plugin.CodeOf(err) != code || !strings.Contains(fmt.Sprint(err), text) {
		t.Errorf("%s: %v, want %s with %q", what, err, code, text)
	}
}

func TestASessionsLifeIsInTheLedger(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 3, 4, 5, 6, 789, time.UTC)
	b := newBundle(t, func(o *session.Options) { o.Now = func() time.Time { at = at.Add(time.Second); return at } })
	ctx := t.Context()
	s := b.create(t, "t")
	if len(s.ID) != len("sess_")+12 || s.Name != "case 1" || s.Kind != "investigation" || s.Pillar != "log_analysis" || s.State != "open" || s.CreatedAt.Nanosecond() != 0 {
		t.Fatalf("it is %+v", s)
	}
	a := b.add(t, s, "one", session.Add{Name: "one.txt", SourceTool: "parse", SourceCall: "c1"})
	eve := b.As("user:eve")
	for _, step := range []error{
		b.Choose(ctx, "t", s.ID, "threat_modeling"), b.Choose(ctx, "t", s.ID, "threat_modeling"),
		eve.Close(ctx, "t", s.ID), b.Close(ctx, "t", s.ID), b.Resume(ctx, "t", s.ID), b.Resume(ctx, "t", s.ID),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	got, err := b.Get(ctx, "t", s.ID)
	if err != nil || got.Pillar != "threat_modeling" || got.State != "open" || got.Artifacts != 1 || !got.UpdatedAt.After(s.UpdatedAt) {
		t.Errorf("then it is %+v, %v", got, err)
	}
	if err := b.Delete(ctx, "t", s.ID); err != nil {
		t.Fatal(err)
	}
	_, err = b.Get(ctx, "t", s.ID)
	wantCode(t, "afterwards", err, plugin.CodeNotFound, s.ID)
	wantCode(t, "deleting it again", b.Delete(ctx, "t", s.ID), plugin.CodeNotFound, "sessions list")
	want := []string{
		"t session.created " + s.ID + " user:ada",
		"t artifact.registered " + s.ID + "/" + a.ID + " user:ada",
		"t session.pillar " + s.ID + " user:ada",
		"t session.closed " + s.ID + " user:eve",
		"t session.resumed " + s.ID + " user:ada",
		"t session.deleted " + s.ID + " user:ada",
	}
	if got := b.entries(t); !slices.Equal(got, want) {
		t.Errorf("the ledger has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for e, err := range b.st.Entries(ctx, store.EntryFilter{Kind: "artifact."}) {
		var body struct {
			Session, Artifact, SHA256 string
			SourceTool                string `json:"source_tool"`
			SourceCall                string `json:"source_call"`
		}
		if err := errors.Join(err, json.Unmarshal(e.Body, &body)); err != nil {
			t.Fatal(err)
		}
		if body.Session != s.ID || body.Artifact != a.ID || body.SHA256 != a.SHA256 || body.SourceTool != "parse" || body.SourceCall != "c1" {
			t.Errorf("the entry says %s", e.Body)
		}
	}
}

func TestIDsMayBeCutShort(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := b.create(t, "t")
	for _, given := range []string{s.ID, s.ID[:9], strings.TrimPrefix(s.ID, "sess_"), s.ID[5:9]} {
		if got, err := b.Get(t.Context(), "t", given); err != nil || got.ID != s.ID {
			t.Errorf("%s is %+v, %v", given, got, err)
		}
	}
	for _, given := range []string{"", "sess_", s.ID[:8], s.ID + "0", "sess_zzzz", "%%%%"} {
		_, err := b.Get(t.Context(), "t", given)
		wantCode(t, given, err, plugin.CodeNotFound, "no session")
	}
	if err := b.st.Write(t.Context(), func(tx store.Tx) error {
		for _, id := range []string{"sess_aaaa00000000", "sess_aaaa00000001"} {
			if err := tx.InsertSession(store.SessionRow{Tenant: "t", ID: id, State: store.SessionOpen}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	_, err := b.Get(t.Context(), "t", "aaaa")
	wantCode(t, "two that begin so", err, plugin.CodeInvalidInput, "sess_aaaa00000001")
	wantCode(t, "deleting one of two", b.Delete(t.Context(), "t", "aaaa"), plugin.CodeInvalidInput, "write more")
}

func TestTenantsDoNotMeet(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := b.create(t, "t")
	a := b.add(t, s, "one", session.Add{Name: "one.txt"})
	ctx := t.Context()
	_, err := b.Artifact(ctx, "u", s.ID, a.ID)
	wantCode(t, "its artifact", err, plugin.CodeNotFound, "no session")
	_, err = b.Open(ctx, "u", s.ID, a.ID)
	wantCode(t, "its bytes", err, plugin.CodeNotFound, "no session")
	_, err = b.View(ctx, "u", s.ID)
	wantCode(t, "its view", err, plugin.CodeNotFound, "no session")
	_, err = b.Add(ctx, "u", s.ID, strings.NewReader("x"), session.Add{Name: "x"})
	wantCode(t, "adding to it", err, plugin.CodeNotFound, "no session")
	for _, err := range []error{b.Delete(ctx, "u", s.ID), b.Close(ctx, "u", s.ID), b.Resume(ctx, "u", s.ID), b.Choose(ctx, "u", s.ID, "x")} {
		wantCode(t, "changing it", err, plugin.CodeNotFound, "no session")
	}
	if all, err := b.List(ctx, "u"); len(all) != 0 || err != nil {
		t.Errorf("they see %v, %v", all, err)
	}
}

func TestWhatASessionCannotBe(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	for _, o := range []session.Open{{Name: strings.Repeat("x", 201)}, {Name: "a\nb"}, {Pillar: "No Pillar"}} {
		_, err := b.Create(t.Context(), "t", o)
		wantCode(t, fmt.Sprint(o), err, plugin.CodeInvalidInput, "")
	}
	s := b.create(t, "t")
	wantCode(t, "no pillar", b.Choose(t.Context(), "t", s.ID, ""), plugin.CodeInvalidInput, "log_analysis")
}

// Where nodes cannot reach each other's blobs only the first adds any.
func TestASecondNodeWithItsOwnBlobsIsRefused(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	at := func(name string) *session.Sessions {
		o := b.Options
		o.Place = blob.OpenDir(filepath.Join(b.home, name)).ID
		return session.New(o)
	}
	first, second := at("one"), at("two")
	s, err := first.Create(t.Context(), "t", session.Open{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = second.Add(t.Context(), "t", s.ID, strings.NewReader("x"), session.Add{Name: "x"})
	wantCode(t, "a second place", err, plugin.CodeUnavailable, "s3://")
	_, err = second.Create(t.Context(), "t", session.Open{})
	wantCode(t, "a session there", err, plugin.CodeUnavailable, "another node")
	if n := b.blobs(t); n != 0 {
		t.Errorf("%d blobs are left", n)
	}
	if _, err := at("one").Add(t.Context(), "t", s.ID, strings.NewReader("x"), session.Add{Name: "x"}); err != nil {
		t.Errorf("the first place, opened again: %v", err)
	}
}
