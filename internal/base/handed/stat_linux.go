package handed

import (
	"io/fs"
	"syscall"

	"github.com/mortise-dev/mortise/plugin"
)

// nonblock keeps opening a pipe from waiting for a writer.
const nonblock = syscall.O_NONBLOCK

func identity(info fs.FileInfo) plugin.FileID {
	id := plugin.FileID{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		id.Device, id.Inode, id.Changed = uint64(stat.Dev), stat.Ino, stat.Ctim.Nano()
	}
	return id
}
