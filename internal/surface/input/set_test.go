package input

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestWhatASchemaWantsAsTextIsText(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"$defs": {"word": {"type": "string"}}, "required": ["other"], "additionalProperties": false, "properties": {
		"plain": {"type": "string"}, "nullable": {"type": ["string", "null"]}, "optional": {"anyOf": [{"type": "string"}, {"type": "null"}]},
		"ref": {"$ref": "#/$defs/word"}, "enum": {"enum": ["1", "2"]}, "const": {"const": "7"}, "number": {"type": "integer"},
		"either": {"type": ["string", "number"]}, "free": {}, "list": {"type": "array", "items": {"type": "string"}},
		"in": {"properties": {"side": {"type": ["string", "null"]}}}}}`)
	for _, c := range []struct{ path, text, want string }{
		{"plain", "5", `"5"`}, {"plain", "null", `"null"`},
		{"nullable", "5", `"5"`}, {"nullable", "null", `null`}, {"nullable", "true", `"true"`},
		{"optional", "2026", `"2026"`}, {"optional", "null", `null`},
		{"ref", "5", `"5"`}, {"enum", "1", `"1"`}, {"enum", "3", `3`}, {"const", "7", `"7"`},
		{"number", "5", `5`}, {"number", "x", `"x"`}, {"either", "5", `5`}, {"free", "5", `5`}, {"free", "5x", `"5x"`},
		{"list", `["5"]`, `["5"]`}, {"in.side", "5", `"5"`}, {"in.other", "5", `5`}, {"unknown", "5", `5`},
	} {
		value := valueOf(c.text, schema, strings.Split(c.path, "."))
		got, err := json.Marshal(value)
		if raw, ok := value.(fmt.Stringer); ok {
			got = []byte(raw.String())
		}
		if err != nil || string(got) != c.want {
			t.Errorf("%s=%s is %s, not %s (%v)", c.path, c.text, got, c.want, err)
		}
	}
	if got := valueOf("5", nil, []string{"a"}); fmt.Sprint(got) != "5" {
		t.Errorf("without a schema: %v", got)
	}
}
