//go:build !noconsole

package console

import (
	"embed"
	"io/fs"
)

//go:embed dist
var dist embed.FS

var files fs.FS = dist
