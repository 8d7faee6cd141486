//go:build unix

package bundle

import "syscall"

// nonblock keeps opening a named pipe from waiting for its writer.
const nonblock = syscall.O_NONBLOCK
