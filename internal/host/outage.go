package host

import (
	"errors"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// retryOutage is when a request may be sent again that met a database which cannot be used.
const retryOutage = 2 * time.Second

// AsError returns err as a surface answers it: as [plugin.AsError] does, but a database that cannot
// be used is an outage, unavailable, and not a fault of the host. Inside the host such an error is
// internal, like every other cause that a caller can do nothing about, or a timeout if the time
// of the caller ended while the host waited for its server.
func AsError(err error) *plugin.Error {
	e := plugin.AsError(err)
	switch {
	case e == nil || e.Code != plugin.CodeInternal && e.Code != plugin.CodeTimeout || !isOutage(err):
		return e
	case errors.Is(err, errUncertain): // no invitation to send it again
		return &plugin.Error{Code: plugin.CodeUnavailable, Err: err,
			Message: "the host's database failed while this was recorded, and whether it was done cannot be told: look before you send it again"}
	}
	return &plugin.Error{Code: plugin.CodeUnavailable, Err: err, Retryable: true, RetryAfter: retryOutage,
		Message: "the host's database cannot be used now; try again, and the host's log says why"}
}
