package editor

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// A Mounted is a plugin made of a server: its manifest, and the secrets that are set for it.
type Mounted struct {
	Name     string            // of the plugin
	Manifest []byte            // in YAML
	Secrets  map[string]string // values that were in the configuration, by name of the secret
	Wants    []string          // secrets that are named there, and whose values are not, sorted
	Plain    []string          // variables that the manifest has as text, sorted
	Files    map[string][]byte // beside the manifest
	Warning  string            // what the person who mounts it should know; empty for nothing
}

// Forms of what a configuration holds.
var (
	notInName   = pattern.New(`[^A-Za-z0-9._-]+`)
	placeholder = pattern.New(`\$\{(?:env:|input:)?([^}]*)\}|\{env:([^}]*)\}`)
	scheme      = pattern.New(`^[A-Za-z]+ `)
	sensitive   = pattern.New(`(?i)key|token|secret|passw|pwd|auth|credential|cookie|session|bearer|(^|_)pat($|_)`)
	dense       = pattern.New(`^[A-Za-z0-9+/=_.~-]{20,}$`)
	digit       = pattern.New(`[0-9]`)
)

// PluginName returns the name that the plugin of a server has.
func PluginName(server string) string {
	name := strings.Trim(notInName.ReplaceAllString(server, "-"), "-._")
	if name == "" || !(name[0] >= 'a' && name[0] <= 'z' || name[0] >= 'A' && name[0] <= 'Z') {
		name = "mcp-" + name
	}
	return name[:min(len(name), 100)]
}

// Mount returns the plugin that a server becomes. Values that look like credentials become
// secrets, and so does every header; lookup finds the values of variables that the
// configuration names only. Errors: what a manifest cannot say, and what would stand in it in clear
// although it looks like a credential, unless plain says that it may.
func (s Server) Mount(name string, lookup func(string) (string, bool), plain bool) (Mounted, error) {
	m := Mounted{Name: name, Secrets: map[string]string{}}
	if place := s.exposed(); place != "" && !plain {
		return m, fmt.Errorf("%s looks like a credential, and would stand in its manifest in clear: give it %s; or --plain writes it as it is", place, s.instead())
	}
	wants := map[string]bool{}
	keep := func(secret, value string, isName bool) {
		if isName {
			known, there := lookup(value)
			if secret, value = value, known; !there || known == "" {
				wants[secret] = true
				return
			}
		}
		m.Secrets[secret] = value
	}
	runner := yaml.MapSlice{{Key: "kind", Value: "mcp"}}
	var inject []yaml.MapSlice
	if s.URL != "" {
		if placeholder.MatchString(s.URL) {
			return m, fmt.Errorf("its url has a placeholder: write the url out")
		}
		u, err := url.Parse(s.URL)
		if err != nil || u.Host == "" || u.User != nil {
			return m, fmt.Errorf("its url is no address such as https://mcp.example.com/mcp")
		}
		runner = append(runner, yaml.MapItem{Key: "url", Value: s.URL})
		if s.OAuth {
			runner = append(runner, yaml.MapItem{Key: "oauth", Value: yaml.MapSlice{}})
		}
		for _, header := range slices.Sorted(maps.Keys(s.Headers)) {
			secret, format, err := credential(s.Headers[header], strings.ToUpper(strings.ReplaceAll(header, "-", "_")), keep)
			if err != nil {
				return m, fmt.Errorf("its header %s: %w", header, err)
			}
			one := yaml.MapSlice{{Key: "host", Value: u.Host}, {Key: "header", Value: header}, {Key: "secret", Value: secret}}
			if format != "{}" {
				one = append(one, yaml.MapItem{Key: "format", Value: format})
			}
			inject = append(inject, one)
		}
	} else {
		command, files, warning, err := s.fetched()
		if err != nil {
			return m, err
		}
		m.Files, m.Warning = files, warning
		for _, word := range command {
			if placeholder.MatchString(word) {
				return m, fmt.Errorf("its command has the placeholder %s: write the value out, or give it as a variable", placeholder.FindString(word))
			}
		}
		if strings.ContainsRune(command[0], '/') && !filepath.IsAbs(command[0]) && !strings.HasPrefix(command[0], "./") {
			return m, fmt.Errorf("its command %s is neither a name nor an absolute path", command[0])
		}
		runner = append(runner, yaml.MapItem{Key: "command", Value: command})
		var env yaml.MapSlice
		for _, variable := range slices.Sorted(maps.Keys(s.Env)) {
			value := s.Env[variable]
			if !placeholder.MatchString(value) && !looksSecret(variable, value) {
				m.Plain = append(m.Plain, variable)
				env = append(env, yaml.MapItem{Key: variable, Value: value})
				continue
			}
			secret, format, err := credential(value, variable, keep)
			if err == nil && format != "{}" {
				err = fmt.Errorf("it mixes text with a placeholder")
			}
			if err != nil {
				return m, fmt.Errorf("its variable %s: %w", variable, err)
			}
			env = append(env, yaml.MapItem{Key: variable, Value: yaml.MapSlice{{Key: "secret", Value: secret}}})
		}
		if len(env) > 0 {
			runner = append(runner, yaml.MapItem{Key: "env", Value: env})
		}
	}
	manifest := yaml.MapSlice{
		{Key: "name", Value: name}, {Key: "version", Value: "1.0.0"}, {Key: "owner", Value: "mounted"},
		{Key: "description", Value: "The server " + s.Name + " of the Model Context Protocol."}, {Key: "runner", Value: runner},
	}
	switch {
	case len(inject) > 0:
		manifest = append(manifest, yaml.MapItem{Key: "http", Value: yaml.MapSlice{{Key: "inject", Value: inject}}})
	case len(s.Hosts) > 0 && s.URL == "":
		manifest = append(manifest, yaml.MapItem{Key: "http", Value: yaml.MapSlice{{Key: "hosts", Value: s.Hosts}}})
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return m, err
	}
	m.Manifest, m.Wants = append(text, hint...), slices.Sorted(maps.Keys(wants))
	return m, nil
}

// instead says how a server gets a credential.
func (s Server) instead() string {
	if s.URL != "" {
		return "as a header (headers in the configuration, --bearer SECRET of 'mortise mcp mount'), if the server takes one"
	}
	return "as a variable (env in the configuration, --secret-env NAME of 'mortise mcp mount'), if the server reads one"
}

// A SignedIn is what a manifest says of how someone signs in to its server.
type SignedIn struct {
	Name   string
	Runner struct {
		URL   string
		OAuth *struct {
			ClientID     string                  `yaml:"client_id"`
			ClientSecret struct{ Secret string } `yaml:"client_secret"`
			Scopes       []string
		}
	}
}

// ReadSignedIn reads that of a manifest, which is checked when it is registered.
func ReadSignedIn(manifest []byte) (s SignedIn, err error) {
	return s, yaml.Unmarshal(manifest, &s)
}

// hint is what stands below a manifest for the person who goes on with it.
const hint = `
# A tool that is not named here is an operator with the effect mcp_call, which policy has to allow.
# Say what you know of the others, and register this directory again:
#
# operations:
#   search: {kind: tool}
#   create_issue: {effects: [issue_write], policy_tags: [tickets]}
`

// credential keeps the secret of a value, or the name of one that it holds, and returns under
// which name, and what stands around it where it is sent.
func credential(value, secret string, keep func(secret, value string, isName bool)) (name, format string, err error) {
	found := placeholder.FindAllStringSubmatchIndex(value, -1)
	switch {
	case len(found) > 1:
		return "", "", fmt.Errorf("it has more than one placeholder")
	case len(found) == 1:
		match := placeholder.FindStringSubmatch(value)
		name := notInName.ReplaceAllString(match[1]+match[2], "_")
		keep("", name, true)
		return name, value[:found[0][0]] + "{}" + value[found[0][1]:], nil
	}
	before := scheme.FindString(value)
	keep(secret, value[len(before):], false)
	return secret, before + "{}", nil
}

// looksSecret reports whether a variable is likely to hold a credential.
func looksSecret(name, value string) bool {
	if len(value) < 8 {
		return false
	}
	if sensitive.MatchString(name) || dense.MatchString(value) && digit.MatchString(value) && !strings.HasPrefix(value, "/") {
		return true
	}
	u, err := url.Parse(value)
	return err == nil && u.User != nil
}
