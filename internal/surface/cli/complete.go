package cli

import (
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// completeOperations offers the operations that the principal may see.
func (c *command) completeOperations(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	c.eachPlugin(cmd, func(name, description string, operations []string) {
		if len(operations) == 1 {
			names = append(names, name+"\t"+terminal.OneLine(description, 60))
			return
		}
		for _, op := range operations {
			names = append(names, name+"/"+op+"\t"+terminal.OneLine(description, 60))
		}
	})
	return names, cobra.ShellCompDirectiveDefault
}

// completePlugins offers the plugins likewise.
func (c *command) completePlugins(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	c.eachPlugin(cmd, func(name, description string, _ []string) {
		names = append(names, name+"\t"+terminal.OneLine(description, 60))
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

// eachPlugin visits the plugins there are; where they cannot be read there is
// nothing to offer.
func (c *command) eachPlugin(cmd *cobra.Command, visit func(name, description string, operations []string)) {
	a, err := c.open(cmd.Context())
	if err != nil {
		return
	}
	defer a.Close()
	infos, err := a.As(a.Principal).Plugins().List(cmd.Context())
	if err != nil {
		return
	}
	for _, i := range infos {
		visit(i.Name, i.Description, i.Operations)
	}
}
