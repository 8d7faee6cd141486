package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/near"
	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Known are the names that policies may speak of. Groups and roles are a closed
// list, which the configuration has. The others may be installed or made later.
type Known struct {
	Groups, Roles                        []string
	Plugins, Operations, Effects, Agents []string // nil where it is not known what there is
}

// Names checks the names in documents against those that exist. A group or role without
// members is a problem: a permit to it permits nothing, and a forbid has no effect
// unless it forbids every principal. A plugin, operation, effect or agent that does not
// exist yet is a warning. Documents that cannot be parsed report neither.
func Names(documents []Document, known Known) (problems, warnings Problems) {
	for _, d := range documents {
		if _, wrong := parse(d); wrong != nil {
			continue
		}
		text := string(d.Text)
		tokens := scan(text)
		for i := 0; i+2 < len(tokens); i++ {
			kind, id := tokens[i].text, ""
			switch {
			case tokens[i+1].text == "::":
				id = tokens[i+2].text
			case kind == "effects" && i+4 < len(tokens) && tokens[i+1].text == "." && tokens[i+2].text == "contains":
				kind, id = "Effects", tokens[i+4].text
			}
			name, err := strconv.Unquote(id)
			if err != nil {
				continue
			}
			for _, m := range known.unknown(kind, name) {
				p := at(d.Name, text, tokens[i].offset, m.message)
				if m.closed {
					problems = append(problems, p)
				} else {
					warnings = append(warnings, p)
				}
			}
		}
	}
	return problems, warnings
}

// A miss is a name that there is not.
type miss struct {
	message string
	closed  bool // and that there will not be unless the configuration says so
}

// unknown returns what is not there of what an entity names.
func (k Known) unknown(kind, name string) []miss {
	closed := func(what, member string, names []string) []miss {
		if slices.Contains(names, name) {
			return nil
		}
		return []miss{{fmt.Sprintf("there is no %s %q%s; %s in mortise.yaml names those there are", what, name, near.Hint(name, names), member), true}}
	}
	open := func(what, name string, names []string) []miss {
		if names == nil || slices.Contains(names, name) {
			return nil
		}
		return []miss{{fmt.Sprintf("there is no %s %q%s; it counts once there is one", what, name, near.Hint(name, names)), false}}
	}
	switch kind {
	case "Group":
		return closed("group", "policy.groups", k.Groups)
	case "Role":
		return closed("role", "policy.roles", k.Roles)
	case "Plugin":
		return open("plugin", name, k.Plugins)
	case "Operation":
		return open("operation", name, k.Operations)
	case "Agent":
		return open("agent", name, k.Agents)
	case "Effects":
		var all []miss
		for _, glob := range strings.Split(name, ",") {
			glob = strings.TrimSpace(glob)
			fits := func(effect string) bool { return pattern.Glob(glob, effect) }
			if k.Effects != nil && !slices.ContainsFunc(k.Effects, fits) && glob != "*" {
				all = append(all, open("effect", glob, k.Effects)...)
			}
		}
		return all
	}
	return nil
}
