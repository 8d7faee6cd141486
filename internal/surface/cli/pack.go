package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

func (c *command) pluginsPack() *cobra.Command {
	var output string
	var secrets, force bool
	return c.command(spec{
		use:   "pack DIR",
		short: "Pack a plugin into a reproducible package file",
		long: `Make a package file of the plugin in a directory. The same files make the same bytes, on
any machine: what is printed as its digest is what it has where it is registered.

What .mortiseignore names, with the rules of a .gitignore, stays out. A link is refused.
So is what looks like a secret, by its name or by how it begins, unless --with-secrets
says that it is meant.`,
		example: `  mortise plugins pack ./letters
  mortise plugins pack ./letters --output letters.tar.gz`,
		door: nowhere,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVarP(&output, "output", "o", "", "the file, .tar.gz, .tgz or .tar; NAME-VERSION.tar.gz if empty")
			cmd.Flags().BoolVar(&secrets, "with-secrets", false, "pack files that look like secrets too")
			cmd.Flags().BoolVar(&force, "force", false, "replace the file, if it is there")
		},
	}, func(ctx context.Context, q *ask) error {
		made, file, err := host.PackPlugin(ctx, q.args[0], output, secrets, force)
		if err != nil {
			return err
		}
		for _, name := range made.Secrets {
			c.say("mortise: warning: %s looks like a secret, and is in the package", terminal.Safe(name))
		}
		if c.json {
			return c.print(struct {
				host.PackedPlugin
				File string `json:"file"`
			}{made, file})
		}
		fmt.Fprintf(c.out, "%s\n%s %s\n%d files, %s\n%s\n", file, terminal.Safe(made.Name), made.Version, len(made.Files), terminal.Bytes(made.Size), made.Digest)
		return nil
	})
}

func (c *command) pluginsKeygen() *cobra.Command {
	return c.command(spec{
		use:   "keygen FILE",
		short: "Create a key pair for signing packages",
		long: `Create a key pair for signing packages, in the format of minisign and without a password: FILE,
which you keep to yourself, and FILE.pub, which is for those who are to trust you.`,
		example: "  mortise plugins keygen acme.key",
		door:    nowhere,
	}, func(ctx context.Context, q *ask) error {
		public, err := host.NewSigningKey(q.args[0])
		if err != nil {
			return err
		}
		if c.json {
			return c.print(map[string]any{"file": q.args[0], "public_key": public})
		}
		fmt.Fprintln(c.out, public)
		c.say("keep %s to yourself; hosts that are to trust you have the line above in plugins.trust", quoted(q.args[0]))
		return nil
	})
}

func (c *command) pluginsSign() *cobra.Command {
	var key string
	return c.command(spec{
		use:   "sign FILE",
		short: "Sign a package file",
		long: `Write the signature of a package file beside it, as FILE.minisig. minisign verifies it too,
and what minisign -S has signed is a signature here.`,
		example: "  mortise plugins sign letters-1.0.0.tar.gz --key acme.key",
		door:    nowhere,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&key, "key", "", "the file of the secret key")
			_ = cmd.MarkFlagRequired("key")
		},
	}, func(ctx context.Context, q *ask) error {
		signature, id, err := host.SignPackage(q.args[0], key)
		if err != nil {
			return err
		}
		if c.json {
			return c.print(map[string]any{"file": q.args[0], "signature": signature, "key": id})
		}
		fmt.Fprintf(c.out, "%s\nsigned with key %s\n", signature, id)
		return nil
	})
}

func (c *command) pluginsVerify() *cobra.Command {
	var key string
	return c.command(spec{
		use:   "verify FILE",
		short: "Verify the signature of a package file",
		long: `Say which of the publishers in plugins.trust signed a package file, or whether the holder of
one key did. Registering it does the same.`,
		example: `  mortise plugins verify letters-1.0.0.tar.gz
  mortise plugins verify letters-1.0.0.tar.gz --key RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3`,
		door: nowhere,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&key, "key", "", "a public key, one line, instead of those in plugins.trust")
		},
	}, func(ctx context.Context, q *ask) error {
		cfg, _, err := setup.ReadConfig(c.home, c.config)
		if err != nil {
			return err
		}
		by, err := host.VerifyPackage(q.args[0], key, cfg.Plugins.Trust)
		if err != nil {
			return err
		}
		if c.json {
			return c.print(map[string]any{"file": q.args[0], "signer": by})
		}
		fmt.Fprintf(c.out, "signed by %s\n", by)
		return nil
	})
}
