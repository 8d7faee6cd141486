package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/core/placeholder"
)

// hintFaults says what is wrong with the hints that a property has for forms
// (Schema UI Hints).
func hintFaults(property map[string]any) []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, key := range []string{"x-binding", "x_binding"} {
		if hint, given := property[key]; given {
			text, _ := hint.(string)
			if _, _, ok := placeholder.ParseHint(text); !ok {
				fault("%s is identity:KEY, secret:NAME or env:NAME", key)
			}
		}
	}
	if property["x-binding"] != nil && property["x_binding"] != nil {
		fault("x-binding and x_binding: only one of them")
	}
	if _, both := property["x-ui"]; both && property["x_ui"] != nil {
		fault("x-ui and x_ui: only one of them")
	}
	for _, key := range []string{"x-ui", "x_ui"} {
		given, there := property[key]
		if !there {
			continue
		}
		hints, isObject := given.(map[string]any)
		if !isObject {
			fault("%s is an object of hints", key)
			continue
		}
		for _, name := range sortedKeys(hints) {
			if says := hintFault(name, hints[name], property); says != "" {
				fault("%s.%s %s", key, name, says)
			}
		}
	}
	return faults
}

// hintFault says what is wrong with one hint, "" if nothing is.
func hintFault(name string, value any, property map[string]any) string {
	switch name {
	case "hidden":
		if _, isTruth := value.(bool); !isTruth {
			return "is true or false"
		}
	case "help", "placeholder":
		if text, isText := value.(string); !isText || strings.TrimSpace(text) == "" {
			return "is a text"
		}
	case "enum_labels", "enum_help":
		labels, isObject := value.(map[string]any)
		if !isObject {
			return "has a text for each value of the enum"
		}
		enum, _ := property["enum"].([]any)
		for _, key := range sortedKeys(labels) {
			if _, isText := labels[key].(string); !isText {
				return "has a text for each value of the enum"
			}
			if !slices.ContainsFunc(enum, func(one any) bool { return fmt.Sprint(one) == key }) {
				return fmt.Sprintf("has %q, which is no value of the enum", key)
			}
		}
	case "show_when":
		return showWhenFault(value)
	default:
		return "is no hint that there is: hidden, help, show_when, enum_labels, enum_help, placeholder"
	}
	return ""
}

// showWhenFault says what is wrong with a condition. There are three forms:
// {field, equals}, {field, in: [...]}, and a map whose entries must all match.
func showWhenFault(value any) string {
	const forms = `is {"field": name, "equals": value}, {"field": name, "in": [values]} or {name: value, ...}`
	condition, isObject := value.(map[string]any)
	if !isObject || len(condition) == 0 {
		return forms
	}
	field, hasField := condition["field"]
	_, equals := condition["equals"]
	in, among := condition["in"]
	if !hasField || !equals && !among {
		return "" // the map form, in which any name may stand
	}
	_, isText := field.(string)
	_, isList := in.([]any)
	if !isText || equals == among || among && !isList || len(condition) != 2 {
		return forms
	}
	return ""
}

func sortedKeys(members map[string]any) []string {
	keys := make([]string, 0, len(members))
	for key := range members {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
