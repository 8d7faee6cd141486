package cli

import (
	"context"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
)

// policyNames holds the names in policies against those there are: in files, or in
// what is configured and stored. Where there is no host yet, groups and roles alone.
func (c *command) policyNames(ctx context.Context, files []string) (problems, warnings host.PolicyProblems, err error) {
	conf, path, err := setup.ReadConfig(c.home, c.config)
	if err != nil {
		return nil, nil, err
	}
	known := setup.ConfiguredNames(conf)
	var documents []host.PolicyDocument
	if c.reading(ctx, func(host.Store) error { return nil }) == nil {
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
	return setup.PolicyNames(conf, path, files, known, documents)
}
