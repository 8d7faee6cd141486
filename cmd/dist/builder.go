package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/carried"
)

// A builder runs the Go toolchain over a source directory. What it makes on the way is in a
// directory of its own, which close removes.
type builder struct {
	source string
	work   string
}

func newBuilder(source string) (*builder, error) {
	work, err := os.MkdirTemp("", "mortise-dist-")
	return &builder{source, work}, err
}

func (b *builder) close() { _ = os.RemoveAll(b.work) }

// Where the host embeds programs that are built before it. An overlay puts those for the target
// there, so that what make build has put there stays and is not taken.
const (
	cagePlace    = "internal/runtime/sandbox/bin/cage"
	docreadPlace = "internal/service/extract/bin/docread.gz"
	pcapsumPlace = "plugins/bin/pcapsum.gz"
)

// host returns the host for a target, built as make build does it.
func (b *builder) host(ctx context.Context, t target) ([]byte, error) {
	overlay := map[string]string{cagePlace: ""}
	for place, name := range map[string]string{docreadPlace: "docread", pcapsumPlace: "pcapsum"} {
		var err error
		if overlay[place], err = b.packed(ctx, t, name); err != nil {
			return nil, err
		}
	}
	if t.os == "linux" { // the only system with sandboxes
		var err error
		if overlay[cagePlace], err = b.program(ctx, t, "cage", "-s -w -buildid=", nil); err != nil {
			return nil, err
		}
	}
	path, err := b.program(ctx, t, "mortise", "-s -w", overlay)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// packed builds a command that the host carries compressed.
func (b *builder) packed(ctx context.Context, t target, name string) (string, error) {
	path, err := b.program(ctx, t, name, "-s -w -buildid=", nil)
	if err != nil {
		return "", err
	}
	code, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	packed, err := carried.Pack(code)
	if err != nil {
		return "", fmt.Errorf("packing %s: %w", name, err)
	}
	return path + ".gz", os.WriteFile(path+".gz", packed, 0o600)
}

// program builds a command of the sources, and returns where it is. In an overlay a path in the
// sources stands for another file, or for none where that is empty.
func (b *builder) program(ctx context.Context, t target, name, ldflags string, overlay map[string]string) (string, error) {
	out := filepath.Join(b.work, name+"-"+t.String())
	// The commit is not recorded: sources without a repository would give other bytes.
	// The flags of the compiler are those of the Makefile, so that it compiles nothing twice.
	args := []string{
		"build", "-trimpath", "-buildvcs=false", "-tags=grpcnotrace", "-gcflags=all=-dwarf=false", "-ldflags=" + ldflags, "-o", out,
	}
	if overlay != nil {
		replace := map[string]string{}
		for place, by := range overlay {
			replace[filepath.Join(b.source, filepath.FromSlash(place))] = by
		}
		text, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			return "", err
		}
		path := filepath.Join(b.work, "overlay.json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return "", err
		}
		args = append(args, "-overlay", path)
	}
	_, err := b.run(ctx, t, append(args, "./cmd/"+name)...)
	return out, err
}

// settings of Go that change what is built, as they are where nothing is set.
var settings = []string{
	"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off", "GOAMD64=v1", "GOARM64=v8.0", "GODEBUG=",
}

// run runs go for a target in the source directory, and returns what it wrote.
func (b *builder) run(ctx context.Context, t target, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.source
	cmd.Env = append(os.Environ(), append(settings, "GOOS="+t.os, "GOARCH="+t.arch)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s for %s: %w\n%s", args[0], t, err, strings.TrimSpace(errs.String()))
	}
	return out, nil
}
