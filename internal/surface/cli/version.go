package cli

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/protocol"
)

func (c *command) version() *cobra.Command {
	return c.command(spec{
		use:     "version",
		short:   "Print the version",
		example: "  mortise version",
		door:    nowhere,
	}, func(context.Context, *ask) error {
		if c.json {
			return c.print(map[string]any{
				"version": host.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				"protocols": []string{protocol.Version1, protocol.Version2},
			})
		}
		_, err := fmt.Fprintf(c.out, "mortise %s (%s, %s/%s; plugin protocols 1 and 2)\n", host.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	})
}
