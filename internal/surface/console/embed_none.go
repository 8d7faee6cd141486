//go:build noconsole

package console

import "io/fs"

var files fs.FS
