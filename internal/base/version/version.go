// Package version says which release of the host this is.
package version

// Host is the release, a semantic version.
const Host = "0.1.0"
