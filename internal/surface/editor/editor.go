// Package editor writes the host into the configuration of programs that speak the Model
// Context Protocol, takes it out again, and reads the servers that they have.
//
// The rest of a configuration stays byte for byte as it was, comments too. A change is planned
// first, so that a person sees it, and then written in one step; what was there before is kept
// beside the file.
package editor

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/mortise-dev/mortise/plugin"
)

// An Entry is how a program starts the host.
type Entry struct {
	Name    string            // what the program calls it
	Command string            // an absolute path
	Args    []string          // of it
	Env     map[string]string // variables that it needs beside those of the program
}

// Variables are those that an entry of the host may have. Others are the user's own, and stay.
var Variables = []string{"MORTISE_AS", "MORTISE_CONFIG", "MORTISE_DATABASE", "MORTISE_HOME", "MORTISE_TENANT"}

// A Program is an editor or a coding agent.
type Program struct {
	Name  string // as it is named at the command line
	Title string // as people call it

	own     func(Places) string // the configuration of one person
	project string              // that of a project, below its directory; "" where there is none
	format  format
}

// A format writes and removes an entry in the text of a configuration, which may be empty.
type format interface {
	put(text []byte, e Entry) ([]byte, error)
	remove(text []byte, name string) ([]byte, error)
}

// Places are where a person's files are.
type Places struct {
	Home   string // the home directory
	Config string // the directory of configurations, such as ~/.config
	System string // GOOS
}

// FindPlaces returns those of who runs this process.
func FindPlaces() (Places, error) {
	home, err := os.UserHomeDir()
	config, also := os.UserConfigDir()
	if err := errors.Join(err, also); err != nil {
		return Places{}, plugin.Errorf(plugin.CodeUnavailable, "your configuration is not found: %w", err)
	}
	return Places{Home: home, Config: config, System: runtime.GOOS}, nil
}

func inHome(path ...string) func(Places) string {
	return func(p Places) string { return filepath.Join(append([]string{p.Home}, path...)...) }
}

func inConfig(path ...string) func(Places) string {
	return func(p Places) string { return filepath.Join(append([]string{p.Config}, path...)...) }
}

// Programs are those that are known, by name. The shapes are those of their documentation.
func Programs() []Program {
	return []Program{
		{Name: "claude-code", Title: "Claude Code", own: inHome(".claude.json"), project: ".mcp.json", format: object{at: []string{"mcpServers"}, entry: typed}},
		{Name: "claude-desktop", Title: "Claude Desktop", own: inConfig("Claude", "claude_desktop_config.json"), format: object{at: []string{"mcpServers"}, entry: plain}},
		{Name: "codex", Title: "Codex", own: inHome(".codex", "config.toml"), project: filepath.Join(".codex", "config.toml"), format: table{of: "mcp_servers"}},
		{Name: "cursor", Title: "Cursor", own: inHome(".cursor", "mcp.json"), project: filepath.Join(".cursor", "mcp.json"), format: object{at: []string{"mcpServers"}, entry: plain}},
		{Name: "opencode", Title: "OpenCode", own: inHome(".config", "opencode", "opencode.json"), project: "opencode.json", format: object{at: []string{"mcp"}, entry: local}},
		{Name: "vscode", Title: "VS Code", own: inConfig("Code", "User", "mcp.json"), project: filepath.Join(".vscode", "mcp.json"), format: object{at: []string{"servers"}, entry: typed}},
		{Name: "windsurf", Title: "Windsurf", own: inHome(".codeium", "windsurf", "mcp_config.json"), format: object{at: []string{"mcpServers"}, entry: plain}},
	}
}

// Find returns the program of a name.
func Find(name string) (Program, bool) {
	all := Programs()
	i := slices.IndexFunc(all, func(p Program) bool { return p.Name == name })
	if i < 0 {
		return Program{}, false
	}
	return all[i], true
}

// File returns the configuration that is meant: that of the project in a directory, or the
// person's own where project is empty. Errors: invalid_input for a program that has none of
// a project.
func (p Program) File(at Places, project string) (string, error) {
	if project == "" {
		return p.own(at), nil
	}
	if p.project == "" {
		return "", plugin.Errorf(plugin.CodeInvalidInput, "%s has no configuration of a project: leave out --project", p.Title)
	}
	return filepath.Join(project, p.project), nil
}
