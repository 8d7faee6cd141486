package sandbox

import (
	"time"

	"golang.org/x/sys/unix"
)

// timerSlack is by how much the kernel may delay a timer of a plugin, so that it fires together with others. Linux allows
// 50 us by default. A Go plugin that waits for its next call arms a timer of 20 us once a call or two, for its runtime's
// monitor, and each that fires costs 10 to 25 us of the core that the call runs on (ADR 0113).
const timerSlack = 500 * time.Microsecond

// coarsenTimers sets the slack of the calling thread, and of all programs that it starts. A kernel that refuses leaves its
// default in place.
func coarsenTimers() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0) }
