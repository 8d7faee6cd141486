package input

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// EachFile replaces the texts that name files to read, at some places of an input and
// beneath them, by what file returns for them. changed reports whether any is another
// now.
func EachFile(members map[string]any, places [][]string, file func(member, path string) (string, error)) (changed bool, err error) {
	w := walk{file: file}
	for _, place := range places {
		inner, last := members, len(place)-1
		for _, name := range place[:last] {
			value, there := inner[name]
			if !there || namesOutput(name) {
				inner = nil
				break
			}
			inner[name] = opened(value)
			inner, _ = inner[name].(map[string]any)
		}
		value, there := inner[place[last]]
		if !there {
			continue
		}
		if inner[place[last]], err = w.value(place[last], value); err != nil {
			return w.changed, err
		}
	}
	return w.changed, nil
}

// A walk goes through the values of an input.
type walk struct {
	file    func(member, path string) (string, error)
	changed bool
}

// value is what the input has for a member, once its files are replaced.
func (w *walk) value(name string, value any) (any, error) {
	if namesOutput(name) {
		return value, nil
	}
	switch value := opened(value).(type) {
	case string:
		if !namesInput(name) {
			return value, nil
		}
		seen, err := w.file(name, value)
		w.changed = w.changed || seen != value
		return seen, err
	case []any:
		for i := range value {
			var err error
			if value[i], err = w.value(name, value[i]); err != nil {
				return nil, err
			}
		}
		return value, nil
	case map[string]any:
		for _, inner := range slices.Sorted(maps.Keys(value)) {
			var err error
			if value[inner], err = w.value(inner, value[inner]); err != nil {
				return nil, err
			}
		}
		return value, nil
	default:
		return value, nil
	}
}

// namesInput reports whether a member names files to read: path, left_path, files,
// log_files. The shim of the contract knows the same.
func namesInput(member string) bool {
	words := strings.Split(strings.ToLower(strings.ReplaceAll(member, "-", "_")), "_")
	return slices.Contains([]string{"file", "files", "path", "paths"}, words[len(words)-1])
}

// opened returns a text, an array or an object that is spelled as JSON as what it is.
func opened(value any) any {
	raw, is := value.(jsontext.Value)
	if !is || raw.Kind() != '[' && raw.Kind() != '{' && raw.Kind() != '"' {
		return value
	}
	whole := map[string]any{}
	if decode(slices.Concat([]byte(`{"value":`), raw, []byte("}")), &whole) != nil {
		return value // the kernel says what is wrong with it
	}
	return whole["value"]
}
