package registry

import (
	"io/fs"
	"syscall"
)

// nonblock keeps opening a pipe, put where a file was, from waiting for ever.
const nonblock = syscall.O_NONBLOCK

// identity returns a file's inode and when that last changed, which a program
// cannot set as it can the time of modification.
func identity(info fs.FileInfo) (inode uint64, changed int64) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino, stat.Ctim.Nano()
	}
	return 0, 0
}
