//go:build !linux

package store

import (
	"os"
	"syscall"
)

// allocate is not available: the file is written instead.
func allocate(*os.File, int64) error { return syscall.EOPNOTSUPP }
