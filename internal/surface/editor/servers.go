package editor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"

	"github.com/mortise-dev/mortise/plugin"
)

// A Server is a server of the Model Context Protocol that a configuration names.
type Server struct {
	Name    string
	Command []string          // the program that it starts, with its arguments; nil for a server at a URL
	Env     map[string]string // variables of that program
	Hosts   []string          // that the program may reach, as a manifest declares them
	URL     string
	Headers map[string]string // of the requests to that URL
	OAuth   bool              // someone signs in to that URL
	Off     bool              // it is switched off there
	Problem error             // why the entry is no server that can be mounted, nil for one that can
}

// maxServers is how many servers one configuration may name.
const maxServers = 200

// Servers returns the servers that a configuration names, sorted by name. It reads JSON, with
// comments or without, whose servers are under mcpServers (Claude, Cursor, Windsurf), servers
// (VS Code) or mcp (OpenCode), and TOML with mcp_servers (Codex). Errors: invalid_input for
// another file.
func Servers(file string) ([]Server, error) {
	text, err := read(file)
	if err != nil {
		return nil, err
	}
	wrong := func(err error) error { return plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", file, err) }
	top := map[string]any{}
	if filepath.Ext(file) == ".toml" {
		err = toml.Unmarshal(text, &top)
	} else if text, err = hujson.Standardize(text); err == nil {
		err = json.Unmarshal(text, &top)
	}
	if err != nil {
		return nil, wrong(err)
	}
	for _, key := range []string{"mcpServers", "servers", "mcp", "mcp_servers"} {
		entries, is := top[key].(map[string]any)
		if !is {
			continue
		}
		if len(entries) > maxServers {
			return nil, wrong(fmt.Errorf("%s has %d servers; at most %d are read", key, len(entries), maxServers))
		}
		var all []Server
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			s, err := serverOf(name, entries[name])
			if err != nil {
				s.Problem = plugin.Errorf(plugin.CodeInvalidInput, "%s.%s: %w", key, name, err)
			}
			s.Name = name
			all = append(all, s)
		}
		return all, nil
	}
	return nil, wrong(fmt.Errorf("there are no servers: none of mcpServers, servers, mcp and mcp_servers is an object in it"))
}

// serverOf reads one entry, in any of the shapes that programs have for it.
func serverOf(name string, entry any) (Server, error) {
	raw, err := json.Marshal(entry)
	if err != nil {
		return Server{}, err
	}
	var e struct {
		Type        string
		Command     json.RawMessage // a text, or a list that holds the arguments too
		Args        []string
		Env         map[string]string
		Environment map[string]string
		URL         string
		ServerURL   string
		Headers     map[string]string
		HTTPHeaders map[string]string `json:"http_headers"`
		HTTPEnv     map[string]string `json:"env_http_headers"`     // variables, by header
		BearerEnv   string            `json:"bearer_token_env_var"` // a variable
		Disabled    bool
		Enabled     *bool
	}
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&e); err != nil {
		return Server{}, err
	}
	s := Server{Name: name, URL: e.URL + e.ServerURL, Off: e.Disabled || e.Enabled != nil && !*e.Enabled}
	s.Env = merged(e.Env, e.Environment)
	s.Headers = merged(e.Headers, e.HTTPHeaders)
	for header, variable := range e.HTTPEnv {
		s.Headers[header] = "${" + variable + "}"
	}
	if e.BearerEnv != "" {
		s.Headers["Authorization"] = "Bearer ${" + e.BearerEnv + "}"
	}
	if len(e.Command) > 0 {
		var program string
		if json.Unmarshal(e.Command, &program) == nil {
			s.Command = append([]string{program}, e.Args...)
		} else if err := json.Unmarshal(e.Command, &s.Command); err != nil {
			return s, fmt.Errorf("command is neither a text nor a list of texts")
		}
	}
	switch {
	case strings.EqualFold(e.Type, "sse"):
		return s, fmt.Errorf("it speaks the transport of 2024-11-05 (sse), which is not mounted; its maker says whether it has streamable HTTP")
	case (len(s.Command) == 0) == (s.URL == ""):
		return s, fmt.Errorf("it has neither a command nor a url, or both")
	}
	return s, nil
}

func merged(all ...map[string]string) map[string]string {
	one := map[string]string{}
	for _, m := range all {
		maps.Copy(one, m)
	}
	return one
}
