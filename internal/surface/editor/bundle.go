package editor

import "strings"

// HostName is what programs call the host, and what its plugin for Claude Code is called.
const HostName = "mortise"

// ownTools begin the names by which Claude Code calls the tools of the host: those of an entry in
// its configuration, and those of the plugin, whose servers have its name before their own.
var ownTools = []string{"mcp__" + HostName + "__", "mcp__plugin_" + HostName + "_" + HostName + "__"}

// OwnTool reports whether Claude Code calls a tool of the host by that name.
func OwnTool(name string) bool {
	for _, prefix := range ownTools {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Text returns a configuration that has the entry and nothing else, for files that are shipped.
func (p Program) Text(e Entry) ([]byte, error) { return p.format.put(nil, e) }
