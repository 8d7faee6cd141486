package app_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/plugin"
)

// A host that stays sees within a second what another process did.
func TestAHostSeesWhatAnotherProcessDoesWithinASecond(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	var hosts []*app.App
	for range 2 {
		a, err := app.Open(t.Context(), app.Options{Home: home, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		hosts = append(hosts, a)
	}
	stays, other := hosts[0], hosts[1]
	const name = "pattern_extractor"
	var slowest time.Duration
	for _, want := range []plugin.Code{plugin.CodeDisabled, ""} {
		code := func() plugin.Code {
			_, err := stays.Registry.Resolve(t.Context(), name)
			if err == nil {
				return ""
			}
			return plugin.CodeOf(err)
		}
		if code() == want {
			t.Fatalf("it is %q already", want)
		}
		var err error
		if want == "" {
			_, err = other.Registry.Enable(t.Context(), name)
		} else {
			_, err = other.Registry.Disable(t.Context(), name)
		}
		if err != nil {
			t.Fatal(err)
		}
		changed := time.Now()
		testwait.Until(t, fmt.Sprintf("the other host has the code %q", want), func() bool { return code() == want })
		slowest = max(slowest, time.Since(changed))
	}
	t.Run("within a second", func(t *testing.T) {
		if testing.Short() {
			t.Skip("make test-long: the time until another host sees a change")
		}
		if slowest > time.Second {
			t.Errorf("the other host saw a change after %s, want at most 1 s", slowest)
		}
	})
}
