package difference

import (
	"slices"
	"strings"
)

// A group is one of the parts of a difference.
type group int

const (
	may group = iota
	says
	schemas
)

// texts are the members that say something and do nothing.
var texts = []string{"description", "title", "$comment", "display_name", "owner"}

// groupOf returns where a change is shown. What is none of the others counts
// as something the plugin may do, so that nothing new is ever played down.
func groupOf(c Change) group {
	parts := strings.Split(c.At, "/")
	name := parts[len(parts)-1]
	text := slices.Contains(texts, name) && (isText(c.Before) || isText(c.After)) && (isText(c.Before) || c.Before == nil) && (isText(c.After) || c.After == nil)
	switch {
	case inSchema(c.At) && text && !names(parts):
		return says
	case inSchema(c.At) || isSchema(c.At):
		return schemas
	case text && (len(parts) == 2 || len(parts) == 4 && parts[1] == "operations"):
		return says
	default:
		return may
	}
}

func isText(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// names reports whether the last part of a pointer into a schema is the name of a
// property, and not a keyword of JSON Schema.
func names(parts []string) bool {
	return slices.Contains([]string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}, parts[len(parts)-2])
}

// first are the members that matter most, in the order of how much.
var first = []string{"effects", "capabilities", "hosts", "permissions", "kind"}

// rank orders what a plugin may do.
func rank(at string) int {
	parts := strings.Split(at, "/")
	if isOperation(at) {
		return -1 // an operation that is new, or gone, stands above what it may
	}
	for i, name := range first {
		if slices.Contains(parts[max(1, len(parts)-2):], name) {
			return i
		}
	}
	return len(first)
}
