package editor

import (
	"fmt"
	"maps"
	"slices"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// projectServers returns the servers that Claude Code starts for the configuration of a project,
// sorted by name. What it returns decides whose tools a name means, so it reads no more than that
// program does: plain JSON, in which names are exact and stand once, and no member that the program
// does not read. A server that is not started so has a Problem. Errors: invalid_input for another
// file.
func projectServers(file string) ([]Server, error) {
	text, err := read(file)
	if err != nil {
		return nil, err
	}
	all, err := parseProject(text)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", file, err)
	}
	return all, nil
}

func parseProject(text []byte) ([]Server, error) {
	var top struct {
		Servers map[string]jsontext.Value `json:"mcpServers"`
	}
	if err := json2.Unmarshal(text, &top, json2.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if len(top.Servers) > maxServers {
		return nil, fmt.Errorf("mcpServers has %d servers; at most %d are read", len(top.Servers), maxServers)
	}
	var all []Server
	for _, name := range slices.Sorted(maps.Keys(top.Servers)) {
		s, err := commandServer(top.Servers[name])
		s.Name, s.Problem = name, err
		all = append(all, s)
	}
	return all, nil
}

// commandServer reads an entry that starts a command: the one kind that connect writes.
func commandServer(entry jsontext.Value) (s Server, err error) {
	var e struct {
		Type    jsontext.Value `json:"type"`
		Command jsontext.Value `json:"command"`
		Args    jsontext.Value `json:"args"`
		Env     jsontext.Value `json:"env"`
	}
	if entry.Kind() != '{' {
		return s, fmt.Errorf("it is no object")
	}
	if err := json2.Unmarshal(entry, &e, json2.RejectUnknownMembers(true)); err != nil {
		return s, err
	}
	if kind, is := textOf(e.Type); e.Type != nil && (!is || kind != "stdio") {
		return s, fmt.Errorf("its type is not stdio")
	}
	command, is := textOf(e.Command)
	if !is || command == "" {
		return s, fmt.Errorf("its command is no text")
	}
	s.Command, s.Env = []string{command}, map[string]string{}
	var args []jsontext.Value
	if e.Args != nil && (e.Args.Kind() != '[' || json2.Unmarshal(e.Args, &args) != nil) {
		return s, fmt.Errorf("its args are no list")
	}
	for _, arg := range args {
		text, is := textOf(arg)
		if !is {
			return s, fmt.Errorf("its args are not all texts")
		}
		s.Command = append(s.Command, text)
	}
	var env map[string]jsontext.Value
	if e.Env != nil && (e.Env.Kind() != '{' || json2.Unmarshal(e.Env, &env) != nil) {
		return s, fmt.Errorf("its env is no object")
	}
	for name, value := range env {
		text, is := textOf(value)
		if !is {
			return s, fmt.Errorf("its env has values that are no texts")
		}
		s.Env[name] = text
	}
	return s, nil
}

// textOf returns the text that a value is, and whether it is one.
func textOf(v jsontext.Value) (text string, is bool) {
	if v.Kind() != '"' || json2.Unmarshal(v, &text) != nil {
		return "", false
	}
	return text, true
}
