package config

import (
	"fmt"
	"slices"
)

// MCP says how operations are shown to clients of the Model Context Protocol. What they may
// call is not said here: policy and tokens say that.
type MCP struct {
	List string `yaml:"list" json:"list,omitempty"` // all, routed or search; where it is not written, all up to 40, and else search
	For  string `yaml:"for" json:"for,omitempty"`   // with routed: the request that the router chooses for
}

// maxFor is how many bytes a request may have.
const maxFor = 4096

// check refuses what cannot be meant.
func (m MCP) check() (errs []error) {
	if !slices.Contains([]string{"", "all", "routed", "search"}, m.List) {
		errs = append(errs, fmt.Errorf("mcp.list is %q; it is all, routed or search", m.List))
	}
	if (m.List == "routed") != (m.For != "") || len(m.For) > maxFor {
		errs = append(errs, fmt.Errorf("mcp.for is the request that mcp.list: routed chooses for, in at most %d bytes: the two go together", maxFor))
	}
	return errs
}
