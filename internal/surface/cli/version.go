package cli

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/protocol"
)

func (c *command) version() *cobra.Command {
	return c.command(spec{
		use:     "version",
		short:   "Print the version",
		example: "  mortise version",
		long: `Print the version. With --json also how a command would reach its host, and of which
version that is: embedded, in the process of the command; socket, the host that serves
the data directory; url, a host elsewhere.`,
		door: nowhere,
	}, func(ctx context.Context, _ *ask) error {
		if c.json {
			who := client.Who{Manner: client.InProcess, Version: host.Version}
			err := c.reach(ctx, nowhere, func(q *ask) error {
				if q.Host != nil {
					who = q.Who()
				}
				return nil
			})
			if err != nil {
				return err
			}
			return c.print(map[string]any{
				"manner": who.Manner, "host_version": who.Version, "principal": who.Principal, "server": who.Server,
				"version": host.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				"protocols": []string{protocol.Version1, protocol.Version2},
			})
		}
		_, err := fmt.Fprintf(c.out, "mortise %s (%s, %s/%s; plugin protocols 1 and 2)\n", host.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	})
}
