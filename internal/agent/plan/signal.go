package plan

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/protocol"
)

// Grounded reports whether a signal that an agent gives as a reason is a fact of
// what it was given. The grammar:
//
//	intent_type:X      the intent's type is X
//	has_a_b            the context or the intent's payload has a.b, or a_b; any letter case
//	context:a.b        the context has a.b
//	fact:a.b=value     the intent's payload has that text, number or boolean at a.b
//
// Nothing else is grounded. null is not there.
func Grounded(signal string, in Request) bool {
	payload, _ := member(in.Intent, "payload")
	if rest, found := strings.CutPrefix(signal, "intent_type:"); found {
		kind, _ := member(in.Intent, "type")
		name, ok := text(kind)
		return ok && name == rest
	}
	if rest, found := strings.CutPrefix(signal, "context:"); found {
		_, _, there := lookup(in.Context, rest)
		return there
	}
	if rest, found := strings.CutPrefix(signal, "fact:"); found {
		path, want, _ := strings.Cut(rest, "=")
		value, _, there := lookup(payload, path)
		got, scalar := text(value)
		return there && scalar && got == want && strings.Contains(rest, "=")
	}
	if rest, found := strings.CutPrefix(signal, "has_"); found {
		rest = strings.ToLower(rest)
		return has(in.Context, rest) || has(payload, rest)
	}
	return false
}

// has reports whether an object has a path whose names, joined by _, read so.
func has(object jsontext.Value, joined string) bool {
	for m := protocol.ScanMembers(object); m.Next(); {
		name := strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToLower(string(m.Name)))
		if m.Value.Kind() == 'n' || name == "" {
			continue
		}
		if name == joined {
			return true
		}
		if rest, found := strings.CutPrefix(joined, name+"_"); found && has(m.Value, rest) {
			return true
		}
	}
	return false
}
