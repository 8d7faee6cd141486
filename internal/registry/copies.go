package registry

import (
	"context"
	"fmt"
)

// copies are the packages that one registration has copied, by the directory
// they came from: the tools of a tree share one.
type copies struct {
	registry *Registry
	made     map[string]*copied
}

// A copied package is staged, and on the shelf once the first of its plugins is.
type copied struct {
	staged
	registry *Registry
	kept     bool
	archive  string // where the other nodes have it from
	isLent   bool
}

// of returns the copy of the package in dir.
func (c *copies) of(ctx context.Context, dir string) (*copied, error) {
	if done, there := c.made[dir]; there {
		return done, nil
	}
	made, err := c.registry.shelf.stageDir(ctx, dir)
	if err != nil {
		return nil, unreadable(fmt.Errorf("copying %s: %w", dir, err))
	}
	if c.made == nil {
		c.made = map[string]*copied{}
	}
	c.made[dir] = &copied{staged: made, registry: c.registry}
	return c.made[dir], nil
}

// remove drops the copies that were not kept.
func (c *copies) remove() {
	for _, copied := range c.made {
		_ = remove(copied.dir) // gone already where it was kept
	}
}

// place returns where the copy is at the moment.
func (c *copied) place() string {
	if c.kept {
		return c.registry.shelf.path(c.digest)
	}
	return c.dir
}

// lent keeps the copy for the other nodes, once.
func (c *copied) lent(ctx context.Context) (archive string, err error) {
	if !c.isLent {
		if c.archive, err = c.registry.lend(ctx, c.staged); err != nil {
			return "", err
		}
		c.isLent = true
	}
	return c.archive, nil
}

// keep puts the copy on the shelf, once.
func (c *copied) keep(ctx context.Context) error {
	if c.kept && c.registry.shelf.has(c.digest) {
		return nil
	}
	if err := c.registry.shelf.keep(ctx, c.staged); err != nil {
		return err
	}
	c.kept = true
	return nil
}
