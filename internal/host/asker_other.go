//go:build !linux

package host

// assigned says why the user id of this process may have been chosen by who runs it; ""
// if it was not. Only Linux has user namespaces.
func assigned() string { return "" }
