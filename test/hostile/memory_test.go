package hostile

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// However much plugins answer, report and ask for, one at a time and eight at
// once, the host stays within its baseline and 64 MiB.
func TestFloodsStayWithinTheMemoryOfTheHost(t *testing.T) {
	h := start(t, newHome(t))
	var alone []*trial
	for _, c := range trials() {
		switch {
		case c.program != "go":
		case slices.Contains([]string{"members", "rows", "nests", "texts", "reports much"}, c.name), strings.HasPrefix(c.name, "floods with"):
			alone = append(alone, c)
		}
	}
	if only := os.Getenv("MORTISE_HOSTILE_ONLY"); only != "" {
		alone = slices.DeleteFunc(alone, func(c *trial) bool { return !strings.Contains(c.String(), only) })
	} else if os.Getenv("MORTISE_HOSTILE_CASES") == "" { // a few of them
		alone = slices.DeleteFunc(alone, func(c *trial) bool {
			few := c.name == "members" || c.param == "400000" || c.param == "cache.set|20|200000"
			for _, method := range []string{"cache.set|512000", "operations.call|512000"} {
				few = few || c.name == "floods with members" && strings.HasPrefix(c.param, method)
			}
			return !few
		})
	}
	// The baseline is a host that has been at work.
	h.tryAll(t, []*trial{honest(alone[0]), honest(alone[0])}, 2)
	base := h.memory(t)
	for _, atOnce := range []int{1, 8} {
		cases := alone
		if atOnce == 8 { // each eight times, side by side
			cases = nil
			for _, c := range alone {
				if c.param == "300000" || c.param == "60000" || c.name == "floods with members" && (strings.Contains(c.param, "cache.set") || strings.Contains(c.param, "operations.call")) {
					cases = append(cases, slices.Repeat([]*trial{c}, 8)...)
				}
			}
		}
		peak := h.watchMemory()
		begun := time.Now()
		for _, v := range h.tryAll(t, cases, atOnce) {
			if v.fault != "" && (atOnce == 1 || !strings.Contains(v.fault, "overloaded") && !strings.Contains(v.fault, "timeout")) {
				t.Errorf("%d at once: %s: %s", atOnce, v.trial, v.fault)
			}
		}
		highest, suspects := peak()
		t.Logf("%d at once, %d cases in %s: %d MiB before, %d MiB at most, during %q", atOnce, len(cases), time.Since(begun).Round(time.Second/10), base>>10, highest>>10, suspects)
		if highest > base+growth {
			t.Errorf("%d at once: the host grew by %d MiB; %d MiB is the bound; most of it during %q", atOnce, (highest-base)>>10, growth>>10, suspects)
		}
	}
	h.close(t)
}
