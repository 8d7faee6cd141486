//go:build !linux

// Package launcher is empty here: sandboxes are built on Linux only.
package launcher
