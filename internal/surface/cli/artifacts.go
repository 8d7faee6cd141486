package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) artifacts() *cobra.Command {
	cmd := &cobra.Command{Use: "artifacts", Short: "Register files in a session, and get them back"}
	cmd.AddCommand(c.artifactsAdd(), c.artifactsList(), c.artifactsShow(), c.artifactsGet(), c.artifactsTypes())
	return cmd
}

func (c *command) artifactsAdd() *cobra.Command {
	var in string
	var a session.Add
	cmd := &cobra.Command{
		Use:   "add FILE...",
		Short: "Register files in a session",
		Long: `Register files in a session.

Each is copied and never changes again. The same file under the same name is the
artifact that is there already. Its type is found out by its name and how it begins;
--type says otherwise. - is standard input, and needs --name.`,
		Example: `  mortise artifacts add auth.log.1 capture.pcap --session sess_4f2a
  journalctl -o json | mortise artifacts add - --name journal.jsonl`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := whichSession(in)
			if err != nil {
				return err
			}
			for _, label := range a.Labels {
				if label != plugin.Untrusted && label != plugin.Private {
					return usage{fmt.Errorf("--label %s: there are %s and %s", label, plugin.Untrusted, plugin.Private)}
				}
			}
			if a.Name != "" && len(args) > 1 {
				return usage{errors.New("--name is for one file")}
			}
			return c.withHost(cmd.Context(), func(host *app.App) error { return c.addArtifacts(cmd.Context(), host, id, args, a) })
		},
	}
	c.sessionFlag(cmd, &in)
	flags := cmd.Flags()
	flags.StringVar(&a.Type, "type", "", "what it is; 'mortise artifacts types' shows the types")
	flags.StringVar(&a.Name, "name", "", "a name other than the file's own")
	flags.StringArrayVar(&a.Labels, "label", nil, "what it is tainted with: untrusted or private (repeatable)")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(typeNames(), cobra.ShellCompDirectiveNoFileComp))
	return c.withJSON(cmd)
}

// addFile registers a person's file, and says how far it is where that takes long.
func (c *command) addFile(path string, a session.Add, add func(session.Add) (session.Artifact, error)) (session.Artifact, error) {
	if err := c.refuseOwn(path); err != nil {
		return session.Artifact{}, err
	}
	what := "registering " + filepath.Base(path)
	p := c.errs.Begin(what)
	defer p.End()
	a.Progress = func(done int64) { p.Set(what, terminal.Bytes(done)) }
	return add(a)
}

func (c *command) addArtifacts(ctx context.Context, host *app.App, in string, paths []string, a session.Add) error {
	added := []session.Artifact{}
	t := terminal.Details(c.out)
	var failed error
	for _, path := range paths {
		got, err := c.addArtifact(ctx, host, in, path, a)
		if err != nil {
			failed = err
			break
		}
		if got.Size == 0 {
			c.say("%s is empty", got.Name)
		}
		added = append(added, got)
		t.Row(got.ID, got.Type, strconv.FormatInt(got.Size, 10), got.Name)
	}
	if c.json && failed == nil {
		return c.print(map[string]any{"artifacts": added})
	}
	if !c.json { // those before the one that failed too
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return failed
}

func (c *command) addArtifact(ctx context.Context, host *app.App, in, path string, a session.Add) (session.Artifact, error) {
	if path != "-" && isDirectory(path) {
		return c.addDirectory(ctx, host, in, path, a)
	}
	if path != "-" {
		return c.addFile(path, a, func(a session.Add) (session.Artifact, error) {
			return host.As(host.Principal).Sessions().AddFile(ctx, in, path, a)
		})
	}
	if a.Name == "" {
		return session.Artifact{}, usage{errors.New("standard input has no name; --name gives it one")}
	}
	return host.As(host.Principal).Sessions().AddArtifact(ctx, in, c.in, a)
}

func (c *command) artifactsList() *cobra.Command {
	var in string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the artifacts of a session, the oldest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.readingArtifacts(cmd.Context(), in, func(all []session.Artifact, _ host.API, _ string) error {
				if c.json {
					return c.print(map[string]any{"artifacts": all})
				}
				return c.listArtifacts(all)
			})
		},
	}
	c.sessionFlag(cmd, &in)
	return c.withJSON(cmd)
}

// listArtifacts shows names whole, however narrow the terminal is: other commands
// take them in place of an id.
func (c *command) listArtifacts(all []session.Artifact) error {
	t := terminal.NewTable(c.out, "ARTIFACT", "TYPE", "SIZE", "CREATED", "SOURCE", "NAME")
	for _, a := range all {
		t.Row(a.ID, a.Type, strconv.FormatInt(a.Size, 10), terminal.Clock(a.CreatedAt), terminal.Dash(a.SourceTool), a.Name)
	}
	return t.Flush()
}

func (c *command) artifactsShow() *cobra.Command {
	var in string
	cmd := &cobra.Command{
		Use:               "show ARTIFACT",
		Short:             "Show an artifact, what it was made from and what was made from it",
		Long:              "Show an artifact, what it was made from and what was made from it.\n\nARTIFACT is an id, or a name that no other artifact of the session has.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeArtifacts(&in),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.readingArtifacts(cmd.Context(), in, func(all []session.Artifact, k host.API, id string) error {
				a, err := k.Sessions().Artifact(cmd.Context(), id, args[0])
				if err != nil {
					return err
				}
				from, made := session.Lineage(all, a.ID)
				if c.json {
					return c.print(map[string]any{"artifact": a, "made_from": append([]session.Artifact{}, from...), "became": append([]session.Artifact{}, made...)})
				}
				return c.showArtifact(a, from, made)
			})
		},
	}
	c.sessionFlag(cmd, &in)
	return c.withJSON(cmd)
}

func (c *command) showArtifact(a session.Artifact, from, made []session.Artifact) error {
	t := terminal.Details(c.out)
	t.Row("artifact", a.ID)
	t.Row("session", a.Session)
	t.Row("name", a.Name)
	t.Row("type", a.Type)
	t.Row("size", strconv.FormatInt(a.Size, 10))
	t.Row("sha256", a.SHA256)
	t.Row("source", terminal.Dash(a.SourceTool))
	if a.SourceCall != "" {
		t.Row("call", a.SourceCall)
	}
	if len(a.Labels) > 0 {
		t.Row("labels", strings.Join(a.Labels, ", "))
	}
	if string(a.Metadata) != "{}" {
		t.Row("metadata", string(a.Metadata))
	}
	if a.StorageURI != "" {
		t.Row("stored", a.StorageURI)
	}
	t.Row("created", terminal.Clock(a.CreatedAt))
	if err := t.Flush(); err != nil {
		return err
	}
	for _, part := range []struct {
		title string
		list  []session.Artifact
	}{{"made from", from}, {"became", made}} {
		if len(part.list) > 0 {
			fmt.Fprintf(c.out, "\n%s\n", part.title)
			if err := c.listArtifacts(part.list); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *command) artifactsGet() *cobra.Command {
	var in, to string
	cmd := &cobra.Command{
		Use:   "get ARTIFACT",
		Short: "Write the bytes of an artifact, held against its hash",
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
			return c.withHost(cmd.Context(), func(a *app.App) error {
				r, err := a.As(a.Principal).Sessions().OpenArtifact(cmd.Context(), id, args[0])
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

// writeWhole writes a file that has its name only once all of it is there. A new
// file has the mode that the person's umask leaves, another one keeps its own; a
// link still leads to it.
func writeWhole(path string, r io.Reader) (err error) {
	if leads, err := filepath.EvalSymlinks(path); err == nil {
		path = leads
	}
	was, statErr := os.Stat(path)
	if statErr == nil && !was.Mode().IsRegular() {
		return usage{fmt.Errorf("%s is no regular file; -o names the file to write", path)}
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), ".mortise-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return usage{err}
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if statErr == nil {
		if stat, is := was.Sys().(*syscall.Stat_t); is {
			_ = f.Chown(int(stat.Uid), int(stat.Gid)) // which the administrator may do
		}
		err = f.Chmod(was.Mode().Perm())
	}
	if err == nil {
		_, err = io.Copy(f, r)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func (c *command) artifactsTypes() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "types",
		Short: "List the types of artifacts",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if c.json {
				return c.print(map[string]any{"types": session.Types()})
			}
			t := terminal.NewTable(c.out, "TYPE", "IS", "RECOGNISED BY")
			for _, typ := range session.Types() {
				t.Row(typ.Name, typ.What, terminal.Dash(strings.Join(typ.Suffixes, " ")))
			}
			return t.Flush()
		},
	})
}

func typeNames() (names []string) {
	for _, typ := range session.Types() {
		names = append(names, typ.Name)
	}
	return names
}

// readingArtifacts looks at the artifacts of a session without touching
// anything.
func (c *command) readingArtifacts(ctx context.Context, in string, do func(all []session.Artifact, k host.API, id string) error) error {
	id, err := whichSession(in)
	if err != nil {
		return err
	}
	return c.keeping(ctx, func(k host.API) error {
		all, err := k.Sessions().Artifacts(ctx, id)
		if err != nil {
			return err
		}
		return do(all, k, id)
	})
}

// completeArtifacts offers the artifacts of a session.
func (c *command) completeArtifacts(in *string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
		if id, err := whichSession(*in); err == nil && len(args) == 0 {
			c.completing(cmd, func(k host.API) {
				all, _ := k.Sessions().Artifacts(cmd.Context(), id)
				for _, a := range all[max(0, len(all)-offered):] {
					ids = append(ids, a.ID+"\t"+terminal.OneLine(a.Type+" "+a.Name, 60))
				}
			})
		}
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
