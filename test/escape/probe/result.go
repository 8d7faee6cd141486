//go:build linux && amd64

package main

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// A result is how one attempt ended.
type result struct{ outcome, detail string }

func allowed(format string, args ...any) result {
	return result{"allowed", fmt.Sprintf(format, args...)}
}

func denied(format string, args ...any) result {
	return result{"denied", fmt.Sprintf(format, args...)}
}

func unavailable(format string, args ...any) result {
	return result{"unavailable", fmt.Sprintf(format, args...)}
}

// absent are the errors of a kernel that was built without something. A filter
// may answer with the same ones; the run with the cage off tells which it was.
var absent = []syscall.Errno{
	unix.ENOSYS, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT,
	unix.ENODEV, unix.ENXIO, unix.EOPNOTSUPP, unix.ENOPROTOOPT,
}

// judge turns the error of the attempt into a result: none, or one of past, means
// it was let through. past are errors that come after the permission check.
func judge(err error, past ...syscall.Errno) result {
	var no syscall.Errno
	switch {
	case err == nil:
		return allowed("it worked")
	case !errors.As(err, &no):
		return denied("%v", err)
	case slices.Contains(past, no):
		return allowed("past the permission check: %s", name(no))
	case slices.Contains(absent, no):
		return unavailable("%s", name(no))
	}
	return denied("%s", name(no))
}

func name(no syscall.Errno) string {
	if s := unix.ErrnoName(no); s != "" {
		return s
	}
	return no.Error()
}

// call makes a raw system call and judges it.
func call(past []syscall.Errno, number uintptr, args ...uintptr) result {
	_, err := raw(number, args...)
	return judge(err, past...)
}

// raw makes a raw system call.
func raw(number uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, no := unix.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if no != 0 {
		return r, no
	}
	return r, nil
}
