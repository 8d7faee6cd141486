package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/surface/view"
)

// noCommand says that a group has no such command, and which may be meant: what another
// word for it is called here, or what is spelled nearly so.
func noCommand(group *cobra.Command, name string) error {
	meant := synonymOf(group, name)
	if meant == "" {
		group.SuggestionsMinimumDistance = 2
		if near := group.SuggestionsFor(name); len(near) > 0 {
			meant = near[0]
		}
	}
	if meant != "" {
		meant = fmt.Sprintf("; did you mean %s?", meant)
	}
	return usage{fmt.Errorf("there is no command %q in '%s'%s; see '%s --help'", name, group.CommandPath(), meant, group.CommandPath())}
}

// synonymOf returns what a group has under another word, "" for nothing.
func synonymOf(group *cobra.Command, name string) string {
	for _, here := range view.Synonyms(name) {
		if found, rest, err := group.Find(strings.Fields(here)); err == nil && len(rest) == 0 && found != group {
			return here
		}
	}
	return ""
}
