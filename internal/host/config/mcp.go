package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// MCP says how operations are shown to clients of the Model Context Protocol, and how servers
// of it are watched that are mounted. What clients may call is not said here: policy and tokens
// say that.
type MCP struct {
	List     string                `yaml:"list" json:"list,omitempty"`         // all, routed or search; where it is not written, all up to 40, and else search
	For      string                `yaml:"for" json:"for,omitempty"`           // with routed: the request that the router chooses for
	Recheck  Duration              `yaml:"recheck" json:"recheck"`             // how old the list of a mounted server's tools may be when one is called; 30 s where it is 0
	Profiles map[string]MCPProfile `yaml:"profiles" json:"profiles,omitempty"` // what a client is shown that names one, by its name
}

// An MCPProfile is what clients are shown that name it.
type MCPProfile struct {
	List       string   `yaml:"list" json:"list,omitempty"`
	For        string   `yaml:"for" json:"for,omitempty"`
	Operations []string `yaml:"operations" json:"operations,omitempty"` // plugin/operation or plugin/*; all where there are none
	Names      string   `yaml:"names" json:"names,omitempty"`           // operation: without the name of the plugin, which is one
}

// Bounds of profiles.
const (
	maxFor        = 4096 // bytes of a request
	maxProfiles   = 64
	maxOperations = 256 // of one
)

var (
	profileName      = pattern.New(`^[A-Za-z0-9_.-]{1,64}$`)
	profileOperation = pattern.New(`^[A-Za-z0-9_.-]+/([A-Za-z0-9_.-]+|\*)$`)
)

// check refuses what cannot be meant.
func (m MCP) check() (errs []error) {
	errs = checkList("mcp", m.List, m.For)
	if m.Recheck < 0 {
		errs = append(errs, fmt.Errorf("mcp.recheck is %s; it cannot be negative", time.Duration(m.Recheck)))
	}
	if len(m.Profiles) > maxProfiles {
		errs = append(errs, fmt.Errorf("mcp.profiles has %d; there may be %d", len(m.Profiles), maxProfiles))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Profiles)) {
		at := "mcp.profiles." + name
		if !profileName.MatchString(name) {
			errs = append(errs, fmt.Errorf("%.80q is no name of a profile: it is 1 to 64 of A-Z a-z 0-9 _ . -", name))
			continue
		}
		errs = append(errs, m.Profiles[name].check(at)...)
	}
	return errs
}

func (p MCPProfile) check(at string) (errs []error) {
	errs = checkList(at, p.List, p.For)
	if len(p.Operations) > maxOperations {
		errs = append(errs, fmt.Errorf("%s.operations has %d; there may be %d", at, len(p.Operations), maxOperations))
	}
	plugins := map[string]bool{}
	for _, op := range p.Operations {
		if !profileOperation.MatchString(op) {
			errs = append(errs, fmt.Errorf("%s.operations has %.200q; write plugin/operation or plugin/*", at, op))
		}
		of, _, _ := strings.Cut(op, "/")
		plugins[of] = true
	}
	switch {
	case p.Names != "" && p.Names != "operation":
		errs = append(errs, fmt.Errorf("%s.names is %.64q; it is operation, or not written", at, p.Names))
	case p.Names != "" && len(plugins) != 1:
		errs = append(errs, fmt.Errorf("%s.names leaves out the name of the plugin, so that operations have to be of one", at))
	}
	return errs
}

// checkList refuses a way to list tools that is none.
func checkList(at, list, request string) (errs []error) {
	if !slices.Contains([]string{"", "all", "routed", "search"}, list) {
		errs = append(errs, fmt.Errorf("%s.list is %q; it is all, routed or search", at, list))
	}
	if (list == "routed") != (request != "") || len(request) > maxFor {
		errs = append(errs, fmt.Errorf("%s.for is the request that %s.list: routed chooses for, in at most %d bytes: the two go together", at, at, maxFor))
	}
	return errs
}
