//go:build !race

package script

const slow = 1
