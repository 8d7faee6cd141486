package main

import (
	"bytes"
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/internal/surface/editor"
)

// What the manifests say of the project.
const (
	homepage    = "https://github.com/mortise-dev/mortise"
	license     = "Apache-2.0"
	publisher   = "Mortise"
	description = "Operations of plugins as tools, under policy, approvals and a ledger."
)

// A desktopManifest is the manifest.json of an MCPB, version 0.3.
type desktopManifest struct {
	Version       string               `json:"manifest_version"`
	Name          string               `json:"name"`
	DisplayName   string               `json:"display_name"`
	Release       string               `json:"version"`
	Description   string               `json:"description"`
	Long          string               `json:"long_description"`
	Author        named                `json:"author"`
	Repository    repository           `json:"repository"`
	Homepage      string               `json:"homepage"`
	Documentation string               `json:"documentation"`
	License       string               `json:"license"`
	Keywords      []string             `json:"keywords"`
	Server        server               `json:"server"`
	Generated     bool                 `json:"tools_generated"`
	Compatibility compatibility        `json:"compatibility"`
	Config        map[string]userValue `json:"user_config"`
}

type named struct {
	Name string `json:"name"`
}

type repository struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type server struct {
	Type   string  `json:"type"`
	Entry  string  `json:"entry_point"`
	Config command `json:"mcp_config"`
}

type command struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

type compatibility struct {
	Platforms []string `json:"platforms"`
}

// A userValue is what Claude Desktop asks its user for. Each has a default, if an empty one: what has
// none and is not given would be passed on as its placeholder.
type userValue struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Default     string `json:"default"`
	Sensitive   bool   `json:"sensitive,omitempty"`
}

// desktopBundle returns an unsigned MCPB that starts mortise mcp.
func desktopBundle(t target, program []byte, shared []file) ([]byte, error) {
	const entry = "server/mortise"
	manifest, err := encoded(desktopManifest{
		Version: "0.3", Name: editor.HostName, DisplayName: "Mortise", Release: version.Host, Description: description,
		Long: "Starts `mortise mcp`. What it lists is what you may run. Each call is checked against its schema, decided by policy and recorded; " +
			"where policy requires an approval, it waits for a person.",
		Author: named{publisher}, Repository: repository{"git", homepage}, Homepage: homepage,
		Documentation: homepage + "/blob/main/docs/mcp.md", License: license, Keywords: []string{"policy", "approvals", "audit", "plugins"},
		Server: server{"binary", entry, command{"${__dirname}/" + entry, []string{"mcp"}, map[string]string{
			"MORTISE_HOME": "${user_config.data_directory}", "MORTISE_SERVER": "${user_config.server}", "MORTISE_TOKEN": "${user_config.token}",
		}}},
		Generated: true, Compatibility: compatibility{[]string{t.os}},
		Config: map[string]userValue{
			"data_directory": {Type: "directory", Title: "Data directory", Description: "Where the host keeps its data. Empty: the usual place, as for the command mortise."},
			"server":         {Type: "string", Title: "Server", Description: "URL of a host elsewhere, such as https://mortise.example.com. Empty: the host of the data directory."},
			"token":          {Type: "string", Title: "Token", Description: "Token for that server, with the scope run.", Sensitive: true},
		},
	})
	if err != nil {
		return nil, err
	}
	return zipped(append([]file{{"manifest.json", 0o644, manifest}, {entry, 0o755, program}}, shared...))
}

// encoded returns a value as JSON that people can read.
func encoded(value any) ([]byte, error) {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	to.SetIndent("", "  ")
	err := to.Encode(value)
	return b.Bytes(), err
}
