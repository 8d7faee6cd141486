package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) artifacts() *cobra.Command {
	return group(spec{use: "artifacts", short: "Register files in a session, and get them back"},
		c.artifactsAdd(), c.artifactsList(), c.artifactsShow(), c.artifactsGet(), c.artifactsTypes())
}

func (c *command) artifactsAdd() *cobra.Command {
	var in string
	var a host.NewArtifact
	return c.command(spec{
		anywhere: true,
		use:      "add FILE...",
		short:    "Register files in a session",
		long: `Register files in a session.

Each is copied and never changes again. The same file under the same name is the
artifact that is there already. Its type is found out by its name and how it begins;
--type says otherwise. - is standard input, and needs --name.`,
		example: `  mortise artifacts add auth.log.1 capture.pcap --session sess_4f2a
  journalctl -o json | mortise artifacts add - --name journal.jsonl`,
		flags: func(cmd *cobra.Command) {
			c.sessionFlag(cmd, &in)
			flags := cmd.Flags()
			flags.StringVar(&a.Type, "type", "", "what it is; 'mortise artifacts types' shows the types")
			flags.StringVar(&a.Name, "name", "", "a name other than the file's own")
			labelFlag(cmd, &a.Labels, "it is")
			_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(typeNames(), cobra.ShellCompDirectiveNoFileComp))
		},
		check: func(args []string) (err error) {
			if in, err = whichSession(in); err != nil {
				return err
			}
			if a.Name != "" && len(args) > 1 {
				err = usage{errors.New("--name is for one file")}
			}
			return cmp.Or(checkLabels(a.Labels), err)
		},
	}, func(ctx context.Context, q *ask) error { return c.addArtifacts(ctx, q.Host, in, q.args, a) })
}

// addFile registers a person's file, and says how far it is where that takes long.
func (c *command) addFile(ctx context.Context, k client.Host, in, path string, a host.NewArtifact) (host.Artifact, error) {
	if err := c.refuseOwn(path); err != nil {
		return host.Artifact{}, err
	}
	what := "registering " + filepath.Base(path)
	p := c.errs.Begin(what)
	defer p.End()
	a.Progress = func(done int64) { p.Set(what, terminal.Bytes(done)) }
	return inSession(ctx, k, in, func(id string) (host.Artifact, error) { return k.Sessions().AddFile(ctx, id, path, a) })
}

func (c *command) addArtifacts(ctx context.Context, k client.Host, in string, paths []string, a host.NewArtifact) error {
	added := []host.Artifact{}
	var failed error
	for _, path := range paths {
		got, err := c.addArtifact(ctx, k, in, path, a)
		if err != nil {
			failed = err
			break
		}
		if got.Size == 0 {
			c.say("%s is empty", got.Name)
		}
		added = append(added, got)
	}
	if c.json && failed == nil {
		return c.print(map[string]any{"artifacts": added})
	}
	if !c.json { // those before the one that failed too
		if err := view.AddedArtifacts(c.out, added); err != nil {
			return err
		}
	}
	return failed
}

func (c *command) addArtifact(ctx context.Context, k client.Host, in, path string, a host.NewArtifact) (host.Artifact, error) {
	if path != "-" && isDirectory(path) {
		return c.addDirectory(ctx, k, in, path, a)
	}
	if path != "-" {
		return c.addFile(ctx, k, in, path, a)
	}
	if a.Name == "" {
		return host.Artifact{}, usage{errors.New("standard input has no name; --name gives it one")}
	}
	return inSession(ctx, k, in, func(id string) (host.Artifact, error) { return k.Sessions().AddArtifact(ctx, id, c.in, a) })
}

func (c *command) artifactsList() *cobra.Command {
	var in string
	return list(c, spec{
		use: "list", short: "List the artifacts of a session, the oldest first", example: "  mortise artifacts list --session sess_4f2a",
		anywhere: true, door: inStore, flags: func(cmd *cobra.Command) { c.sessionFlag(cmd, &in) },
		check: func([]string) (err error) { in, err = whichSession(in); return err },
	}, view.Artifacts, func(ctx context.Context, q *ask) ([]host.Artifact, error) {
		return q.artifacts(ctx, in)
	})
}

// artifacts returns those of the session that is meant.
func (q *ask) artifacts(ctx context.Context, in string) ([]host.Artifact, error) {
	s, err := findSession(ctx, q.Host, in)
	if err != nil {
		return nil, err
	}
	return q.Sessions().Artifacts(ctx, s.ID)
}

func (c *command) artifactsShow() *cobra.Command {
	var in string
	return show(c, spec{
		anywhere: true,
		use:      "show ARTIFACT",
		short:    "Show an artifact, what it was made from and what was made from it",
		long:     "Show an artifact, what it was made from and what was made from it.\n\nARTIFACT is an id, or a name that no other artifact of the session has.",
		example:  "  mortise artifacts show auth.log.1 --session sess_4f2a",
		door:     inStore, complete: c.completeArtifacts(&in), flags: func(cmd *cobra.Command) { c.sessionFlag(cmd, &in) },
		check: func([]string) (err error) { in, err = whichSession(in); return err },
	}, func(ctx context.Context, q *ask) (s view.ArtifactShown, err error) {
		all, err := q.artifacts(ctx, in)
		if err != nil {
			return s, err
		}
		if s.Artifact, err = q.artifact(ctx, in, q.args[0]); err == nil {
			s.MadeFrom, s.Became = host.Lineage(all, s.Artifact.ID)
		}
		return s, err
	}, view.Artifact)
}

// artifact returns the one that is meant.
func (q *ask) artifact(ctx context.Context, in, given string) (host.Artifact, error) {
	s, err := findSession(ctx, q.Host, in)
	if err != nil {
		return host.Artifact{}, err
	}
	return findArtifact(ctx, q.Host, s.ID, given)
}

func (c *command) artifactsGet() *cobra.Command {
	var in, to string
	cmd := &cobra.Command{
		Use:   "get ARTIFACT",
		Short: "Export an artifact, verified against its hash",
		Example: `  mortise artifacts get auth.log.1 --session sess_4f2a | grep sshd
  mortise artifacts get art_5c01d2e3 -o report.pdf`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeArtifacts(&in),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := whichSession(in)
			if err != nil {
				return err
			}
			if to == "" && c.onTerminal() {
				return usage{errors.New("its bytes could steer the terminal; -o FILE, or a pipe, takes them")}
			}
			return c.reach(cmd.Context(), inHost, func(q *ask) error {
				a, err := q.artifact(cmd.Context(), id, args[0])
				if err != nil {
					return err
				}
				r, err := q.Sessions().OpenArtifact(cmd.Context(), a.Session, a.ID)
				if err != nil {
					return err
				}
				defer r.Close()
				if to == "" {
					_, err = io.Copy(c.out, r)
					return err
				}
				return writeWhole(to, r)
			})
		},
	}
	c.sessionFlag(cmd, &in)
	cmd.Flags().StringVarP(&to, "output", "o", "", "the file to write; standard output if empty")
	return cmd
}

// writeWhole is [view.WriteFile], for a path that was typed.
func writeWhole(path string, r io.Reader) error {
	err := view.WriteFile(path, r)
	if errors.As(err, new(view.Unwritable)) {
		return usage{err}
	}
	return err
}

func (c *command) artifactsTypes() *cobra.Command {
	return list(c, spec{use: "types", short: "List the types of artifacts", example: "  mortise artifacts types", door: nowhere}, view.ArtifactTypes,
		func(context.Context, *ask) ([]host.ArtifactType, error) { return host.ArtifactTypes(), nil })
}

func typeNames() (names []string) {
	for _, typ := range host.ArtifactTypes() {
		names = append(names, typ.Name)
	}
	return names
}

// completeArtifacts offers the artifacts of a session.
func (c *command) completeArtifacts(in *string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
		if id, err := whichSession(*in); err == nil && len(args) == 0 {
			c.completing(cmd, func(k client.Host) {
				all, _ := k.Sessions().Artifacts(cmd.Context(), id)
				for _, a := range all[max(0, len(all)-offered):] {
					ids = append(ids, a.ID+"\t"+terminal.OneLine(a.Type+" "+a.Name, 60))
				}
			})
		}
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
