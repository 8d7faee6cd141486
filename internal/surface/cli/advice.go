package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/input"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

// Advice is what a person reads on standard error beside an error or a result:
// the next step. A program that reads --json gets none.

// adviseDenied says where the rule belongs that a denial names.
func (c *command) adviseDenied(err error) {
	if plugin.CodeOf(err) != plugin.CodePolicyDenied {
		return
	}
	path, exists, unread, findErr := c.place().FindConfig()
	if findErr != nil {
		return
	}
	if exists {
		c.say("the configuration is %s", path)
	} else {
		c.say("the configuration is %s, which does not exist yet: create it with 'policy: {allow: [...]}', and put the rule between the brackets", path)
	}
	if unread != "" {
		c.say("%s is not read: 'export MORTISE_CONFIG=%s' or --config %s uses it", unread, unread, filepath.Base(unread))
	}
}

// adviseRun says what to do next after a run: about members that the input does
// not have, paths that were given as text, and a newer version that is held.
func (c *command) adviseRun(ctx context.Context, q *ask, t *plugin.Target, ref string, given input.Arguments, err error) {
	if text := view.Members(t, err); text != "" {
		c.say("%s", text)
	}
	if t != nil && t.Manifest.Contract.Investigates {
		// What was typed is registered, or written to.
	} else {
		c.advisePaths(given.List, given.Set)
	}
	c.adviseHeld(ctx, q, t, ref)
}

// advisePaths says that a text of the input is the path of a file on this
// machine: the plugin gets the text, and never the file.
func (c *command) advisePaths(arguments []input.Argument, set []string) {
	for _, pair := range set {
		name, text, _ := strings.Cut(pair, "=")
		arguments = append(arguments, input.Argument{Name: name, Text: text})
	}
	for _, arg := range arguments {
		if !strings.ContainsRune(arg.Text, filepath.Separator) || len(arg.Text) > 4096 {
			continue
		}
		if info, err := os.Stat(arg.Text); err == nil && info.Mode().IsRegular() {
			c.say("%s is %s, a file of this machine: a plugin gets the text and cannot open the file; '--artifact %s' hands the file on", arg.Name, arg.Text, arg.Text)
		}
	}
}

// adviseHeld says that a newer version than the one that ran waits for a person.
func (c *command) adviseHeld(ctx context.Context, q *ask, t *plugin.Target, ref string) {
	if t == nil || strings.Contains(ref, "@") {
		return
	}
	shown, err := q.Plugins().Show(ctx, t.Manifest.Name)
	if err != nil {
		return
	}
	for _, version := range shown.Waiting {
		if host.Newer(version, t.Manifest.Version) {
			held := fmt.Sprintf("%s@%s", t.Manifest.Name, version)
			c.say("%s is registered and held, so %s was used; 'mortise plugins diff %s' shows what changed, 'mortise plugins approve %s' lets it be called", held, t.Manifest.Version, held, held)
		}
	}
}
