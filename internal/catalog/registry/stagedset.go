package registry

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
)

// A stagedSet holds the packages that one registration has staged, by the directory
// they come from: the tools of a tree share one.
type stagedSet struct {
	registry *Registry
	byDir    map[string]*stagedPackage
}

// A stagedPackage is in the staging directory until the first of its plugins is
// installed, which moves it into the package directory.
type stagedPackage struct {
	staged
	registry  *Registry
	installed bool
	archive   string // where the other nodes fetch it from
	published bool
}

// of returns the staged package of the files in dir. It stages them once.
func (s *stagedSet) of(ctx context.Context, dir string) (*stagedPackage, error) {
	if done, there := s.byDir[dir]; there {
		return done, nil
	}
	made, err := s.registry.packages.stageDir(ctx, dir)
	if err != nil {
		return nil, unreadable(fmt.Errorf("copying %s: %w", dir, err))
	}
	if s.byDir == nil {
		s.byDir = map[string]*stagedPackage{}
	}
	s.byDir[dir] = &stagedPackage{staged: made, registry: s.registry}
	return s.byDir[dir], nil
}

// remove deletes the staged packages that were not installed.
func (s *stagedSet) remove() {
	for _, p := range s.byDir {
		_ = rmtree.Remove(p.dir) // an installed package has left this directory
	}
}

// place returns the directory in which the package is now.
func (p *stagedPackage) place() string {
	if p.installed {
		return p.registry.packages.path(p.digest)
	}
	return p.dir
}

// publish stores the package for the other nodes, once, and returns its archive.
func (p *stagedPackage) publish(ctx context.Context) (archive string, err error) {
	if !p.published {
		if p.archive, err = p.registry.publish(ctx, p.staged); err != nil {
			return "", err
		}
		p.published = true
	}
	return p.archive, nil
}

// install moves the package into the package directory, once.
func (p *stagedPackage) install(ctx context.Context) error {
	if p.installed && p.registry.packages.has(p.digest) {
		return nil
	}
	if err := p.registry.packages.install(ctx, p.staged); err != nil {
		return err
	}
	p.installed = true
	return nil
}
