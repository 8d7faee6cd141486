//go:build !linux

package sqlite

// watchFile reports that this system tells of no file that is written.
func watchFile(string, func()) (stop func(), watched bool) { return func() {}, false }
