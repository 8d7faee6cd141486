package policy_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// A follower is an engine that follows its sources, and what it said.
type follower struct {
	*policy.Engine
	mu   sync.Mutex
	said []string
}

// follow opens an engine and follows until the test ends.
func follow(t *testing.T, sources ...policy.Source) *follower {
	t.Helper()
	f := &follower{Engine: open(t, policy.Options{Sources: sources})}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Follow(ctx, time.Millisecond, func(err error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if err == nil {
				f.said = append(f.said, "fine again")
				return
			}
			f.said = append(f.said, err.Error())
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done // nothing is left running
	})
	return f
}

func (f *follower) heard() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.said...)
}

func (f *follower) verdict() plugin.Verdict {
	return f.Decide(target("mail", "read", plugin.Tool), &plugin.Call{Principal: plugin.Principal{ID: "ann"}}).Verdict
}

const (
	none     = "forbid (principal, action, resource);\n"
	mistyped = "permit (principal, action, resource)\nwhen {\n  context.scops.contains(\"a\") };\n"
	unknown  = "permit (principal in Rol::\"a\", action, resource);\n"
)

// replace writes files as a careful editor does: whole, or not at all.
func replace(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	beside := t.TempDir()
	write(t, beside, files)
	for name := range files {
		if err := os.Rename(filepath.Join(beside, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestARunningEngineFollowsItsFiles: a change counts soon, at the latest when
// the next call is judged after that; a slip leaves the old set in force and is
// said once, by line and column; a file that is gone likewise.
func TestARunningEngineFollowsItsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.cedar")
	replace(t, dir, map[string]string{"a.cedar": permitAll})
	var asked atomic.Int64
	files := policy.Files(dir, "*.cedar")
	f := follow(t, func() ([]policy.Document, error) {
		asked.Add(1)
		return files()
	})
	before := f.Version()
	replace(t, dir, map[string]string{"b.cedar": none})
	testwait.Until(t, "a new file counts", func() bool { return f.verdict() == plugin.Deny })
	if f.Version() == before {
		t.Error("other policies have the same version")
	}
	if err := os.Remove(filepath.Join(dir, "b.cedar")); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "a file that is gone does not", func() bool { return f.verdict() == plugin.Allow })
	if f.Version() != before {
		t.Error("the same policies have another version")
	}

	for text, place := range map[string]string{mistyped: "a.cedar:3:11: attribute `scops` in context not found", unknown: "a.cedar:1:22: unrecognized entity type `Rol`", none + "forbd": "a.cedar:2:1: "} {
		n := len(f.heard())
		replace(t, dir, map[string]string{"a.cedar": text})
		testwait.Until(t, "it is said", func() bool { return len(f.heard()) > n })
		seen := asked.Load()
		testwait.Until(t, "the files are read some times more", func() bool { return asked.Load() > seen+3 })
		if got := f.heard()[n:]; len(got) != 1 || !strings.Contains(got[0], place) {
			t.Errorf("%q, want once %q", got, place)
		}
		if f.verdict() != plugin.Allow || f.Version() != before {
			t.Errorf("the old set is not in force after %q", text)
		}
	}
	n := len(f.heard())
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "a set that is gone is said", func() bool { return len(f.heard()) > n })
	if f.verdict() != plugin.Allow {
		t.Error("a set that is gone allows nothing any more, and forbids nothing")
	}
	replace(t, dir, map[string]string{"a.cedar": none})
	testwait.Until(t, "a repaired file counts", func() bool { return f.verdict() == plugin.Deny })
	if got := f.heard(); got[len(got)-1] != "fine again" {
		t.Errorf("%q", got)
	}
}

// TestWhatIsCaughtHalfWrittenIsNotUsed: an empty file is a set too, and forbids
// nothing.
func TestWhatIsCaughtHalfWrittenIsNotUsed(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var still atomic.Bool
	f := follow(t, policy.Stored(func(context.Context) ([]policy.Document, error) {
		text := none
		if n := asked.Add(1); n > 1 && n%2 == 0 && !still.Load() {
			text = permitAll
		} else if still.Load() {
			text = trustAll
		}
		return []policy.Document{{Name: "a", Text: []byte(text)}}, nil
	}))
	first := f.Version()
	testwait.Until(t, "it was asked often", func() bool { return asked.Load() > 50 })
	if f.Version() != first {
		t.Error("what was found once is in force")
	}
	still.Store(true)
	testwait.Until(t, "what stays counts", func() bool { return f.verdict() == plugin.Allow })
}

// TestAFileOfTheSameTimeAndSizeIsReadAgain as long as it is fresh, when two
// changes may have one time.
func TestAFileOfTheSameTimeAndSizeIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.cedar")
	permit, forbid := permitAll, strings.Replace(permitAll, "permit", "forbid", 1)
	put := func(text string, at time.Time) {
		t.Helper()
		write(t, dir, map[string]string{"a.cedar": text})
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	source, now := policy.Files(dir, "a.cedar"), time.Now()
	read := func() string {
		t.Helper()
		documents, err := source()
		if err != nil {
			t.Fatal(err)
		}
		return string(documents[0].Text)
	}
	put(permit, now)
	if read() != permit {
		t.Fatal("it was not read")
	}
	put(forbid, now)
	if read() != forbid {
		t.Error("a second change of one moment was not seen")
	}
	old := now.Add(-time.Hour)
	put(forbid, old)
	if read() != forbid {
		t.Error("it was not read")
	}
	put(permit, old.Add(time.Microsecond))
	if read() != permit {
		t.Error("an old file with another time was not read")
	}
}

// TestARunningEngineFollowsWhatIsStored asks a source that is no file.
func TestARunningEngineFollowsWhatIsStored(t *testing.T) {
	t.Parallel()
	var text atomic.Value
	text.Store(permitAll)
	away := errors.New("the store is away")
	f := follow(t, policy.Stored(func(ctx context.Context) ([]policy.Document, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("it may take for ever")
		}
		if text.Load() == "" {
			return nil, away
		}
		return []policy.Document{{Name: "stored/a", Text: []byte(text.Load().(string))}}, nil
	}))
	text.Store(mistyped)
	testwait.Until(t, "a slip is said", func() bool { return len(f.heard()) == 1 })
	text.Store("")
	testwait.Until(t, "that it is away is said", func() bool { return len(f.heard()) == 2 })
	if f.verdict() != plugin.Deny || !strings.Contains(f.heard()[0], "stored/a:3:11: attribute `scops`") || !strings.Contains(f.heard()[1], away.Error()) {
		t.Errorf("with stored policies that cannot be used: %s, %q", f.verdict(), f.heard())
	}
	text.Store(permitAll)
	testwait.Until(t, "those that can be used count again", func() bool { return f.verdict() == plugin.Allow })
	text.Store("")
	testwait.Until(t, "that it is away is said again", func() bool { return len(f.heard()) == 4 })
	if f.verdict() != plugin.Allow {
		t.Errorf("while the store is away: %s, %q", f.verdict(), f.heard())
	}
	text.Store(none)
	testwait.Until(t, "a change counts", func() bool { return f.verdict() == plugin.Deny })
}

// TestTheVersionIsThatOfAllThatDecides: what is known of principals, and the
// wall, are part of it.
func TestTheVersionIsThatOfAllThatDecides(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, o := range map[string]policy.Options{
		"plain":      {},
		"known":      {Known: []byte(`{"staff":["ann"]}`)},
		"other":      {Known: []byte(`{"staff":["bob"]}`)},
		"wall":       {Isolation: "full"},
		"approvers":  {Sources: []policy.Source{policy.Approvers("t", []plugin.Principal{{ID: "ann"}})}},
		"approvers2": {Sources: []policy.Source{policy.Approvers("t", []plugin.Principal{{ID: "bob"}})}},
	} {
		o.Sources = append(o.Sources, texts(permitAll)...)
		v := open(t, o).Version()
		if other, found := seen[v]; found {
			t.Errorf("%s has the version of %s", name, other)
		}
		seen[v] = name
	}
}
