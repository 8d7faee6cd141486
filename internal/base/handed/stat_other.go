//go:build !linux

package handed

import (
	"io/fs"

	"github.com/mortise-dev/mortise/plugin"
)

const nonblock = 0

// identity knows size and time of modification only.
func identity(info fs.FileInfo) plugin.FileID {
	return plugin.FileID{Size: info.Size(), Modified: info.ModTime().UnixNano()}
}
