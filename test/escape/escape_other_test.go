//go:build !(linux && amd64)

package escape

import "testing"

func TestEscape(t *testing.T) {
	t.Skip("the probes make system calls of Linux on amd64; nothing was shown about cages here")
}
