// Package alive tells whether a process of this machine runs.
package alive

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
)

// Process reports whether a process runs, also one of another user. One that has ended and
// that its parent has not waited for yet (a zombie) does not. In a container whose first
// process waits for none, it would be there for good.
func Process(pid int) bool {
	if pid <= 0 {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	_ = p.Release()
	return (err == nil || errors.Is(err, os.ErrPermission)) && !ended(pid)
}

// ended reports whether the system says of a process that it has ended. Only Linux does.
func ended(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := bytes.Cut(raw[max(0, bytes.LastIndexByte(raw, ')')):], []byte(" ")) // a name may have brackets
	return len(after) > 0 && (after[0] == 'Z' || after[0] == 'X')
}
