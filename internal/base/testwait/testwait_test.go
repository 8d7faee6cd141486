package testwait_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
)

// recorder is a testing.TB whose failures are recorded instead of reported.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Fatalf(string, ...any) {
	r.failed = true
	panic(r)
}

// fails reports whether wait fails its test.
func fails(t *testing.T, wait func(testing.TB)) bool {
	r := &recorder{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(r) {
				panic(p)
			}
		}()
		wait(r)
	}()
	return r.failed
}

func TestUntilReturnsAsSoonAsTheConditionHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		testwait.Until(t, "a second has passed", func() bool { return time.Since(start) >= time.Second })
		if waited := time.Since(start); waited > 2*time.Second {
			t.Errorf("waited %v, want about a second", waited)
		}
	})
}

func TestUntilFailsTheTestAfterTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if !fails(t, func(tb testing.TB) { testwait.Until(tb, "never", func() bool { return false }) }) {
			t.Error("the test did not fail")
		}
		if waited := time.Since(start); waited != testwait.Limit {
			t.Errorf("waited %v, want %v", waited, testwait.Limit)
		}
	})
}

func TestReceiveReturnsTheValueOrFailsAfterTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(chan int, 1)
		c <- 7
		if got := testwait.Receive(t, "a number", c); got != 7 {
			t.Errorf("received %d, want 7", got)
		}
		if !fails(t, func(tb testing.TB) { testwait.Receive(tb, "a number", c) }) {
			t.Error("nothing was sent, and the test did not fail")
		}
	})
}

func TestAdvancePanicsOutsideOfABubble(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Advance returned outside of a bubble")
		}
	}()
	testwait.Advance(time.Hour)
}

func TestAdvanceLetsTimersFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fired := 0
		time.AfterFunc(time.Minute, func() { fired++ })
		testwait.Advance(time.Minute - 1)
		if fired != 0 {
			t.Error("a timer fired before its time")
		}
		testwait.Advance(1)
		if fired != 1 {
			t.Errorf("the timer fired %d times, want 1", fired)
		}
	})
}

// TestNoTestStaysWithAnEmptySelect: the runtime ends a process whose goroutines all
// wait, so a process that stays that way ends as soon as it has no timer left.
func TestNoTestStaysWithAnEmptySelect(t *testing.T) {
	empty := "select " + "{}"
	err := filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git") {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), empty) {
			t.Errorf("%s stays with an empty select; call testwait.Block", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
