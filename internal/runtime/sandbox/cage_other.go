//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"runtime"
)

type cage struct{}

type caged struct{}

func newCage(Options, *starter) *cage { return &cage{} }

func (*cage) idle() {}

func (*cage) close() error { return nil }

func (*caged) finished(*State) bool { return false }

func (*caged) ended(*State) {}

func (*caged) release() {}

func (*caged) hangUp() bool { return false }

func (s *Sandbox) probe() Report {
	return noReport("cages are built on Linux; this is " + runtime.GOOS)
}

func (s *Sandbox) startCaged(context.Context, Spec, Files) (*Process, error) {
	return nil, errors.ErrUnsupported // never: the level is none
}
