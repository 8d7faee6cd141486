//go:build fault

package fault

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Enabled reports whether this is a build for such tests.
const Enabled = true

// What the test wants, from the environment:
//
//	MORTISE_FAULT_AT=point:3       end at the third time the point is come by
//	MORTISE_FAULT_HOW=close        by asking the process to end, in place of killing it
//	MORTISE_FAULT_HOW=stop         or by stopping it, until the test lets it go on
//	MORTISE_FAULT_ERR=point:3      fail from the third time on that the point is come by
//	MORTISE_FAULT_OUTAGE=spec      have trouble that ends, see [Arm]
//	MORTISE_FAULT_POOL=1           with so many connections
//	MORTISE_FAULT_LOG=file         and write the point's name there before
//	MORTISE_FAULT_LIFT=name,name   without these guards
var (
	at, after = wanted("MORTISE_FAULT_AT")

	errAt, errAfter = wanted("MORTISE_FAULT_ERR")
	log             = os.Getenv("MORTISE_FAULT_LOG")
	lifted          = strings.Split(os.Getenv("MORTISE_FAULT_LIFT"), ",")

	mu              sync.Mutex
	times, errTimes int
)

func wanted(variable string) (point string, after int) {
	point, count, _ := strings.Cut(os.Getenv(variable), ":")
	after, err := strconv.Atoi(count)
	if err != nil {
		after = 1
	}
	return point, after
}

// At ends the process, as if the power had gone, if a test wants it to end here.
func At(point string) {
	if at != point {
		return
	}
	mu.Lock()
	if times++; times != after {
		mu.Unlock()
		return
	}
	defer mu.Unlock()
	if f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err == nil {
		_, _ = f.WriteString(point + "\n")
		f.Close()
	}
	switch os.Getenv("MORTISE_FAULT_HOW") {
	case "close":
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		return
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}

// Err returns what a test wants to fail here with: an input/output error, as from a
// disk that is gone, from a time on, or trouble that ends.
func Err(point string) error {
	if err := trouble(point); err != nil {
		return err
	}
	if errAt != point {
		return nil
	}
	mu.Lock()
	defer mu.Unlock()
	if errTimes++; errTimes < errAfter {
		return nil
	}
	return &os.SyscallError{Syscall: "fdatasync", Err: syscall.EIO}
}

// Lifted reports whether a test wants to see what happens without this guard.
func Lifted(guard string) bool {
	for _, name := range lifted {
		if name == guard && name != "" {
			return true
		}
	}
	return false
}
