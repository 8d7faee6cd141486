package budget

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Bounds of the collector's pace, in bytes.
const (
	roomy = 60 << 20 // what the runtime may have before it collects earlier than usual
	spare = 8 << 20  // what it may have beside what is alive, at least
)

// Pace has a process that stays collect its garbage by what is alive, so that a
// burst of work leaves no more behind than a share of that.
//
// The runtime's own pace lets garbage grow in proportion to what was alive at the
// last collection, temporary values of a burst included. A fixed limit would let a
// process with more alive than that do little but collect. So each collection sets
// the limit: a quarter above what is alive, and [roomy] at least. The limit alone
// counts; the percentage only keeps a small heap from growing fivefold. Who sets GOGC
// or GOMEMLIMIT for a host sets its pace alone.
func Pace() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(400)
	type beacon struct{ _ [16]*byte } // of a size class without pointers to others
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var again func(int)
	again = func(int) {
		metrics.Read(live)
		alive := live[0].Value.Uint64()
		debug.SetMemoryLimit(max(roomy, int64(alive+alive/4+spare)))
		runtime.AddCleanup(new(beacon), again, 0)
	}
	again(0)
}
