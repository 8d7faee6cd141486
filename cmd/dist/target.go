package main

import (
	"fmt"
	"slices"
	"strings"
)

// A target is a system that the host is built for, in the words of Go.
type target struct{ os, arch string }

// targets are all that a release is built for.
var targets = []target{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}}

// String is the target as file names have it.
func (t target) String() string { return t.os + "-" + t.arch }

// parseTargets reads a list such as linux/amd64,darwin/arm64. An empty one means all.
func parseTargets(list string) ([]target, error) {
	if list == "" {
		return targets, nil
	}
	var chosen []target
	for one := range strings.SplitSeq(list, ",") {
		os, arch, _ := strings.Cut(one, "/")
		t := target{os, arch}
		if !slices.Contains(targets, t) {
			return nil, fmt.Errorf("%q is no target: those are %s", one, strings.ReplaceAll(fmt.Sprint(targets), "-", "/"))
		}
		if !slices.Contains(chosen, t) {
			chosen = append(chosen, t)
		}
	}
	return chosen, nil
}
