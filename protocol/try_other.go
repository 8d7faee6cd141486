//go:build !unix

package protocol

import "syscall"

func nonblocking(syscall.RawConn) bool { return false }
