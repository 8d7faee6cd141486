package process

import (
	"testing"
	"testing/synctest"
	"time"
)

// A burst is taken in at once, and a flood at its pace.
func TestAFloodIsTakenInAtAPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p pacer
		spent := func(times, bytes int) time.Duration {
			begun := time.Now()
			for range times {
				p.take(bytes)
			}
			return time.Since(begun)
		}
		if took := spent(100, 5000); took != 0 {
			t.Errorf("a burst of 500 kB waited %s", took)
		}
		if took := spent(50*(5<<20)/4096, 4096); took < 49*time.Second || took > 51*time.Second {
			t.Errorf("50 times as much as is taken in a second took %s", took)
		}
		if took := spent(100, 16<<20); took > 2*time.Second {
			t.Errorf("100 large pieces waited %s: each counts for 64 KiB", took)
		}
		<-time.After(time.Minute)
		if took := spent(100, 5000); took != 0 {
			t.Errorf("a burst after a pause waited %s", took)
		}
	})
}
