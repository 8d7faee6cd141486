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
		if c.program == "go" && c.floods() && !strings.HasPrefix(c.name, "asks for much") { // which has a test of its own
			alone = append(alone, c)
		}
	}
	whole := os.Getenv("MORTISE_HOSTILE_FLOODS") == "all"
	if only := os.Getenv("MORTISE_HOSTILE_ONLY"); only != "" {
		whole = true
		alone = slices.DeleteFunc(alone, func(c *trial) bool { return !strings.Contains(c.String(), only) })
	} else if !whole { // those that took the most when all were tried
		alone = slices.DeleteFunc(alone, func(c *trial) bool {
			return !(c.name == "members" && c.param == "300000" || slices.Contains([]string{"400000", "cache.set|20|200000", "content|1000000|40", "storage.put|60000|200"}, c.param) ||
				c.name != "floods with text" && slices.ContainsFunc([]string{"operations.call|512000", "kb.upsert_knowledge_object|512000", "scheduler.enqueue|512000"}, func(p string) bool { return strings.HasPrefix(c.param, p) }))
		})
	}
	// Side by side, each is there once in the whole test, and the worst eight times.
	var beside []*trial
	for _, c := range alone {
		switch {
		case c.param == "300000", c.param == "content|1000000|40", c.name == "floods with members" && strings.HasPrefix(c.param, "operations.call"):
			beside = append(beside, slices.Repeat([]*trial{c}, 8)...)
		case whole && (c.param == "60000" || c.param == "400000" || c.param == "content|1000000|40" || strings.HasPrefix(c.param, "cache.set|512000") || strings.HasPrefix(c.param, "storage.put|60000")):
			beside = append(beside, slices.Repeat([]*trial{c}, 8)...)
		case whole:
			beside = append(beside, c)
		}
	}
	// The baseline is a host that has been at work.
	h.tryAll(t, []*trial{honest(alone[0]), honest(alone[0])}, 2)
	base := h.memory(t)
	for _, atOnce := range []int{1, 8} {
		cases := alone
		if atOnce == 8 {
			cases = beside
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
