//go:build !linux

package bundle

func limitAddresses() {}
