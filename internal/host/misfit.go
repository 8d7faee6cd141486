package host

import (
	"errors"

	"github.com/mortise-dev/mortise/internal/core/schema"
)

// Misfits returns the places at which the input of a call does not fit its schema, where
// err says so; each is a JSON pointer into the input.
func Misfits(err error) []schema.Place {
	var misfit *schema.Misfit
	if errors.As(err, &misfit) {
		return misfit.Places
	}
	return nil
}
