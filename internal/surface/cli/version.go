package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/protocol"
)

func (c *command) version() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  mortise version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if c.json {
				return c.print(map[string]any{
					"version": host.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
					"protocols": []string{protocol.Version1, protocol.Version2},
				})
			}
			_, err := fmt.Fprintf(c.out, "mortise %s (%s, %s/%s; plugin protocols 1 and 2)\n", host.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	})
}
