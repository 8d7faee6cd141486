package editor

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"
)

// HostName is what programs call the host, and what its plugin for Claude Code is called.
const HostName = "mortise"

// ownTools begin the names by which Claude Code calls the tools of the host: those of an entry in
// its configuration, and those of the plugin, whose servers have its name before their own.
var ownTools = []string{"mcp__" + HostName + "__", "mcp__plugin_" + HostName + "_" + HostName + "__"}

// OwnTool reports whether Claude Code, at work in these directories, calls a tool of the host by
// that name. A project may come from strangers, and its configuration may give any server a name
// that makes its tools look like those of the host. So a name counts only where each server that
// may be meant by it, in the directories and those above them, is ours.
func OwnTool(name string, dirs []string, ours func(Server) bool) bool {
	own := slices.ContainsFunc(ownTools, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	return own && !slices.ContainsFunc(dirs, func(dir string) bool { return othersTool(name, dir, ours) })
}

// othersTool reports whether a directory, or one above it, configures a server that is not ours
// and has a tool of that name, or whether that cannot be told.
func othersTool(name, dir string, ours func(Server) bool) bool {
	client, _ := Find("claude-code")
	servers, err := projectServers(filepath.Join(dir, client.project))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	for _, s := range servers {
		if strings.HasPrefix(name, "mcp__"+toolPart(s.Name)+"__") && (s.Problem != nil || !ours(s)) {
			return true
		}
	}
	above := filepath.Dir(dir)
	return above != dir && othersTool(name, above, ours)
}

// toolPart is what Claude Code makes of the name of a server in the names of its tools. It is
// JavaScript: a character beyond U+FFFF is two units to it, and becomes two underscores.
func toolPart(server string) string {
	var part strings.Builder
	for _, unit := range utf16.Encode([]rune(server)) {
		if unit == '_' || unit == '-' || '0' <= unit && unit <= '9' || 'a' <= unit && unit <= 'z' || 'A' <= unit && unit <= 'Z' {
			part.WriteByte(byte(unit))
		} else {
			part.WriteByte('_')
		}
	}
	return part.String()
}

// Text returns a configuration that has the entry and nothing else, for files that are shipped.
func (p Program) Text(e Entry) ([]byte, error) { return p.format.put(nil, e) }
