// Package usage says what one call may ask of the host, and what it used of that.
package usage

import "github.com/mortise-dev/mortise/plugin"

// A Grant is the services of one call. The broker makes it, and the kernel records what
// the call used of it.
type Grant interface {
	plugin.Services

	Used() bool                   // something outside the host was asked
	Unsettled() bool              // an external effect was begun whose outcome is unknown
	Starved() bool                // a service failed for a reason of the host's own
	Labels() []string             // what the answer is tainted with for it
	Artifacts() []plugin.Artifact // what the host registered for the call
	Metrics() plugin.Metrics      // what the host counted; nil for nothing
}
