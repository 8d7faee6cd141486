package cli

import (
	"context"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store"
)

// policyNames holds the names in policies against those there are: in files, or in
// what is configured and stored. Where there is no host yet, groups and roles alone.
func (c *command) policyNames(ctx context.Context, files []string) (problems, warnings policy.Problems, err error) {
	conf, path, err := setup.ReadConfig(c.home, c.config)
	if err != nil {
		return nil, nil, err
	}
	known := setup.ConfiguredNames(conf)
	var documents []policy.Document
	if c.reading(ctx, func(store.Store) error { return nil }) == nil {
		if a, err := c.open(ctx); err == nil {
			known, err = a.PolicyNames(ctx)
			if err == nil && len(files) == 0 {
				documents, err = a.StoredPolicies(ctx)
			}
			closing(a, &err)
			if err != nil {
				return nil, nil, err
			}
		}
	}
	if len(files) > 0 {
		documents, err = policy.Files(".", files...)()
	} else {
		var more []policy.Document
		more, err = setup.ConfiguredDocuments(conf, path)
		documents = append(documents, more...)
	}
	if err != nil {
		return nil, nil, err
	}
	problems, warnings = policy.Names(documents, known)
	return problems, warnings, nil
}
