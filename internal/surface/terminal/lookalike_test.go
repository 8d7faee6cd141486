package terminal

import (
	"encoding/json"
	"testing"
)

func TestWhatMayPassForAnotherCharacterIsSpelt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`"ann@example.com"`, `"ann@example.com"`},
		{"\"\u202egnp.exe\"", `"\u202egnp.exe"`},
		{"\"pay\u200bpal\"", `"pay\u200bpal"`},
		{"\"p\u0430ypal\"", `"p\u0430ypal"`},                 // a Cyrillic letter in a Latin word
		{"\"Привет, мир\"", "\"Привет, мир\""},               // a word of another alphabet
		{"\"naïve Zürich\"", "\"naïve Zürich\""},             // accents
		{"\"\uff41dmin\"", `"\uff41dmin"`},                   // fullwidth
		{"\"\U0001d41admin\"", `"\ud835\udc1admin"`},         // mathematical
		{"\"a\u00a0b\u3000c\"", `"a\u00a0b\u3000c"`},         // spaces
		{"\"a\u3164b\ufe0f\"", `"a\u3164b\ufe0f"`},           // a filler, a selector
		{"\"\u65e5\u672c\u8a9e\"", "\"\u65e5\u672c\u8a9e\""}, // another script altogether
		{"\"a\u001fb\u007f\"", `"a\u001fb\u007f"`},
	} {
		got := Revealed(c.in)
		if got != c.want {
			t.Errorf("%q: got %s, want %s", c.in, got, c.want)
		}
		var before, after any
		if err := json.Unmarshal([]byte(c.in), &before); err != nil {
			continue // a control character as it stands is no JSON
		}
		if err := json.Unmarshal([]byte(got), &after); err != nil || before != after {
			t.Errorf("%s is other JSON than %q: %v", got, c.in, err)
		}
	}
}
