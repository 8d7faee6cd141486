//go:build !unix

package mortise

import "os"

// claimStdio takes standard input and output for the protocol, and sends what
// the plugin prints to standard error.
func claimStdio() (in, out *os.File, err error) {
	in, out = os.Stdin, os.Stdout
	os.Stdout = os.Stderr
	return in, out, nil
}
