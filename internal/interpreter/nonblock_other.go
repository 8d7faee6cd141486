//go:build !unix

package interpreter

const nonblock = 0
