package eventmill

import (
	"errors"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// Strict returns all that departs from the contract of Event Mill in the
// manifest of the tool in dir, a part of named, with the row of the requirements that it departs
// from: refused keeps the tool from being loaded, and the rest is tolerated. The
// error is one of reading, or says that the manifest is of another contract.
func Strict(dir, named string) (refused, tolerated contract.Problems, err error) {
	reading, err := contract.InspectIn(contract.TreeIn(dir, named))
	var problems contract.Problems
	switch {
	case errors.As(err, &problems) && reading != nil:
		return problems, reading.Notes, nil
	case errors.As(err, &problems):
		return problems, nil, nil
	case err != nil:
		return nil, nil, err
	case reading.Manifest.Dialect != Name:
		return nil, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s in %s is no manifest of Event Mill", reading.File, dir)
	}
	return nil, reading.Notes, nil
}
