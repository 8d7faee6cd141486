package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/editor"
	"github.com/mortise-dev/mortise/plugin"
)

// A Server is a server of the Model Context Protocol that may be mounted.
type Server = editor.Server

// ReadServers returns the servers of a client's configuration; see [editor.Servers].
func ReadServers(file string) ([]Server, error) { return editor.Servers(file) }

// PluginName returns the name of the plugin that a server becomes.
func PluginName(server string) string { return editor.PluginName(server) }

// A Mounting is how servers are mounted.
type Mounting struct {
	Home     string                      // the data directory: manifests are in mounts below it
	Lookup   func(string) (string, bool) // finds variables that a configuration names only
	Dry      bool                        // nothing is written
	Force    bool                        // manifests that were edited are written over
	Plain    bool                        // what looks like a credential may stand in a manifest
	Hosts    []string                    // that servers which are started by a command may reach
	Disabled bool                        // plugins are registered and not enabled
}

// Mounted is what became of one server.
type Mounted struct {
	Server  string         `json:"server"`
	Plugin  string         `json:"plugin,omitempty"`
	State   string         `json:"state"` // of the plugin; or planned, waiting for a secret, off, skipped, failed
	Tools   int            `json:"tools,omitempty"`
	Dir     string         `json:"dir,omitempty"`     // where its manifest is
	Secrets []string       `json:"secrets,omitempty"` // that were set, or would be
	Wants   []string       `json:"wants,omitempty"`   // secrets that are not set yet
	Plain   []string       `json:"plain,omitempty"`   // variables whose values are in the manifest
	Hosts   []string       `json:"hosts,omitempty"`   // that it declares, as a command
	Warning string         `json:"warning,omitempty"` // what you should know of it
	Why     string         `json:"why,omitempty"`     // it is skipped, held or failed
	Error   map[string]any `json:"error,omitempty"`
}

// All mounts servers, each by itself, until ctx ends.
func (m Mounting) All(ctx context.Context, h Host, servers []Server) iter.Seq2[Mounted, error] {
	return func(yield func(Mounted, error) bool) {
		taken := map[string]bool{}
		for _, s := range servers {
			one := Mounted{Server: s.Name, Plugin: editor.PluginName(s.Name)}
			var err error
			switch {
			case s.Problem != nil:
				err = s.Problem
			case s.Off:
				one.Plugin, one.State, one.Why = "", "off", "it is switched off there"
			case ours(s):
				one.Plugin, one.State, one.Why = "", "skipped", "it is this host"
			case taken[one.Plugin]:
				err = plugin.Errorf(plugin.CodeConflict, "another server became the plugin %s: mount it by 'mortise mcp mount' under another name", one.Plugin)
			default:
				taken[one.Plugin] = true
				err = m.mount(ctx, h, s, &one)
			}
			if !yield(one, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// ours reports whether a server is this program, which clients have from 'mortise connect'.
func ours(s Server) bool {
	return len(s.Command) > 1 && strings.TrimSuffix(filepath.Base(s.Command[0]), ".exe") == "mortise" && s.Command[1] == "mcp"
}

// mount mounts one server.
func (m Mounting) mount(ctx context.Context, h Host, s Server, one *Mounted) error {
	if s.URL == "" {
		s.Hosts = m.Hosts
	}
	p, err := s.Mount(one.Plugin, m.Lookup, m.Plain)
	if err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", s.Name, err)
	}
	one.Secrets, one.Plain, one.Hosts, one.Warning = slices.Sorted(maps.Keys(p.Secrets)), p.Plain, s.Hosts, p.Warning
	if one.Wants, err = unset(ctx, h, p); err != nil {
		return err
	}
	if m.Dry {
		one.State = "planned"
		return nil
	}
	home, err := filepath.Abs(m.Home)
	if err != nil {
		return err
	}
	one.Dir = filepath.Join(home, "mounts", p.Name)
	undo, err := writeManifest(one.Dir, p, m.Force)
	if err != nil {
		return err
	}
	for _, name := range one.Secrets {
		if _, err := h.Secrets().Set(ctx, host.SecretPlace{Name: name, Plugin: p.Name, System: true}, p.Secrets[name]); err != nil {
			return err
		}
	}
	if len(one.Wants) > 0 { // its server cannot be asked for its tools
		one.State = "waiting"
		return nil
	}
	registered, err := one.register(ctx, h, !m.Disabled)
	switch {
	case s.OAuth && plugin.CodeOf(err) == plugin.CodeUnavailable && strings.Contains(err.Error(), signInCommand):
		one.State, one.Why = "waiting", signInCommand+p.Name
		return nil
	case err != nil && !registered:
		undo()
		one.Dir = ""
	}
	return err
}

// register registers the manifest of a server, and reports whether that was done.
func (one *Mounted) register(ctx context.Context, h Host, enable bool) (done bool, err error) {
	report, err := h.Plugins().Register(ctx, one.Dir, host.RegisterOptions{Enable: enable})
	if len(report.Failed) > 0 && err == nil {
		err = report.Failed[0].Err
	}
	for _, r := range report.Registered {
		one.State, one.Tools = string(r.Info.State), len(r.Info.Operations)
		if r.NotEnabled != nil {
			err = errors.Join(err, r.NotEnabled)
		}
		if r.Held {
			one.Why = fmt.Sprintf("'mortise plugins approve %s' accepts it", one.Plugin)
		}
	}
	return len(report.Registered) > 0, err
}

// unset returns the secrets that a plugin wants and that are not set for it.
func unset(ctx context.Context, h Host, p editor.Mounted) ([]string, error) {
	if len(p.Wants) == 0 {
		return nil, nil
	}
	infos, err := h.Secrets().List(ctx)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, name := range p.Wants {
		if !slices.ContainsFunc(infos, func(i host.SecretInfo) bool {
			return i.Name == name && i.Scope == host.SecretOfSystem && (i.Plugin == p.Name || i.Plugin == host.EveryPlugin)
		}) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// writeManifest writes the manifest of a mounted server, but not over one that a person has
// edited, with the files beside it. undo removes one that was not there before.
func writeManifest(dir string, p editor.Mounted, force bool) (undo func(), err error) {
	file := filepath.Join(dir, "manifest.yaml")
	was, err := os.ReadFile(file)
	switch {
	case err == nil && (force || bytes.Equal(was, p.Manifest)):
	case err == nil:
		return nil, plugin.Errorf(plugin.CodeConflict, "%s was edited and stays as it is: 'mortise plugins register %s' registers it, --force writes over it", file, dir)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	undo = func() {}
	if err != nil {
		undo = func() {
			_ = os.Remove(file)
			for name := range p.Files {
				_ = os.Remove(filepath.Join(dir, name))
			}
			_ = os.Remove(dir) // unless there is more in it
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for name, text := range p.Files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	return undo, os.WriteFile(file, p.Manifest, 0o600)
}
