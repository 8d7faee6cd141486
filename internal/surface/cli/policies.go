package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

// maxPolicy is the longest file of policies that is put into the store.
const maxPolicy = 1 << 20

func (c *command) policyList() *cobra.Command {
	return show(c, spec{anywhere: true, use: "list", short: "List the policies in force: files, stored texts and rules of the configuration", example: "  mortise policy list"},
		func(ctx context.Context, q *ask) (view.Policies, error) {
			all, version, err := q.Policies().Set(ctx)
			return view.Policies{Documents: all, Version: version}, err
		}, func(w io.Writer, s view.Policies) error { return view.PolicyTexts.Table(w, s.Documents) })
}

func (c *command) policyPut() *cobra.Command {
	var text []byte
	return c.change(spec{
		anywhere: true,
		use:      "put NAME FILE",
		short:    "Store policies under a name and put them into force",
		long: `Store policies under a name and put them into force, in place of the text
that had the name. It is refused, by line and column, where the policies that would
come of it cannot be used together, or would keep you from changing them again; the
old ones stay in force then. Hosts that are running follow within seconds. It needs the
right to configure.`,
		example: `  mortise policy put mail mail.cedar`,
		check:   func(args []string) (err error) { text, err = readPolicy(args[1]); return err },
	}, func(ctx context.Context, q *ask) (done, error) {
		put, err := q.Policies().Put(ctx, q.args[0], text, "")
		value := map[string]any{"name": q.args[0], "policies": put.Policies, "version": put.Version}
		return done{value: value, said: fmt.Sprintf("%s is in force, with %d policies", q.args[0], put.Policies)}, err
	})
}

func readPolicy(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%w", err)
	case !info.Mode().IsRegular() || info.Size() > maxPolicy:
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s is no regular file of at most %d bytes", path, maxPolicy)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%w", err)
	}
	return text, nil
}

func (c *command) policyDelete() *cobra.Command {
	return c.change(spec{anywhere: true, use: "delete NAME", short: "Delete stored policies", example: "  mortise policy delete mail"},
		func(ctx context.Context, q *ask) (done, error) {
			gone, err := q.Policies().Delete(ctx, q.args[0], "")
			return done{value: map[string]any{"name": q.args[0], "version": gone.Version}, said: q.args[0] + " is not in force any more"}, err
		})
}
