package cli

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

// Outside of a terminal a watched list without rows prints nothing, and its end is no failure.
func TestAWatchedListWithoutRowsPrintsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var out bytes.Buffer
		looks := 0
		err := watchRows(ctx, &command{out: &out}, view.Approvals, func() ([]*host.Question, error) {
			if looks++; looks == 3 {
				stop()
			}
			return nil, nil
		})
		if err != nil || out.Len() > 0 || looks != 3 {
			t.Errorf("after %d looks the output is %q and the error %v, want no output and no error after 3", looks, out.String(), err)
		}
	})
}
