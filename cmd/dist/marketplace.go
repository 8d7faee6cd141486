package main

import (
	_ "embed"
	"fmt"

	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/internal/surface/editor"
)

// approvals is the skill that tells an agent how to work with approvals.
//
//go:embed plugin/skills/approvals/SKILL.md
var approvals []byte

// A market is the list of plugins in a directory that Claude Code installs from.
type market struct {
	Name        string   `json:"name"`
	Owner       named    `json:"owner"`
	Description string   `json:"description"`
	Plugins     []onSale `json:"plugins"`
}

type onSale struct {
	Name        string `json:"name"`
	Source      string `json:"source"`
	Description string `json:"description"`
	Version     string `json:"version"`
}

// A pluginManifest is the plugin.json of a plugin for Claude Code. Its other parts are found by
// where they are.
type pluginManifest struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Description string   `json:"description"`
	Author      named    `json:"author"`
	Homepage    string   `json:"homepage"`
	Repository  string   `json:"repository"`
	License     string   `json:"license"`
	Keywords    []string `json:"keywords"`
}

// marketplace returns the files of a directory with one plugin for Claude Code. Both the server and
// the hook start the mortise on the PATH.
func marketplace() ([]file, error) {
	const within = "plugins/" + editor.HostName
	said := description + " Asks the host before each use of a tool."
	list, err := encoded(market{editor.HostName, named{publisher}, "The plugin of Mortise.", []onSale{{editor.HostName, "./" + within, said, version.Host}}})
	if err != nil {
		return nil, err
	}
	manifest, err := encoded(pluginManifest{editor.HostName, version.Host, said, named{publisher}, homepage, homepage, license, []string{"mcp", "policy", "approvals", "audit"}})
	if err != nil {
		return nil, err
	}
	client, known := editor.Find("claude-code")
	asking, can := client.Hooks()
	if !known || !can {
		return nil, fmt.Errorf("claude-code is not known with its hooks")
	}
	servers, err := client.Text(editor.Entry{Name: editor.HostName, Command: "mortise", Args: []string{"mcp"}})
	if err != nil {
		return nil, err
	}
	hooks, err := asking.Text(editor.Entry{Name: editor.HostName, Command: "mortise", Args: []string{"hook", client.Name}})
	if err != nil {
		return nil, err
	}
	return []file{
		{".claude-plugin/marketplace.json", 0o644, list},
		{within + "/.claude-plugin/plugin.json", 0o644, manifest},
		{within + "/.mcp.json", 0o644, servers},
		{within + "/hooks/hooks.json", 0o644, hooks},
		{within + "/skills/approvals/SKILL.md", 0o644, approvals},
	}, nil
}
