package difference

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/plugin"
)

// form returns a manifest as the tree that is compared: operations stand under
// their names, and times as people write them.
func form(m *plugin.Manifest) (map[string]any, error) {
	if m == nil {
		return nil, nil
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("comparing the manifest of %s: %w", m.Name, err)
	}
	tree, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("comparing the manifest of %s: %w", m.Name, err)
	}
	operations := map[string]any{}
	list, _ := tree["operations"].([]any)
	for i, op := range m.Operations {
		one, ok := list[i].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("comparing the manifest of %s: operation %d is none", m.Name, i)
		}
		delete(one, "name")
		one["timeout"] = op.Timeout.String()
		operations[op.Name] = one
	}
	tree["operations"] = operations
	return tree, nil
}

// parse reads an object and keeps its numbers as they are spelled.
func parse(raw []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var tree map[string]any
	err := decoder.Decode(&tree)
	return tree, err
}
