package kb

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestPassages: whatever the text, the passages are of their size, in order,
// where they say, and leave out nothing but space.
func TestPassages(t *testing.T) {
	t.Parallel()
	sentence := "The river had risen in the night, and the town woke to water. "
	for name, text := range map[string]string{
		"empty": "", "space": " \n ", "short": "one", "exact": strings.Repeat("x", chunkSize), "no border": strings.Repeat("x", 3*chunkSize+7),
		"sentences": strings.Repeat(sentence, 100), "paragraphs": strings.Repeat(strings.Repeat(sentence, 9)+"\n\n", 20), "lines": strings.Repeat("a line of words\n", 500),
		"japanese": strings.Repeat("東京都の天気は晴れ。", 400), "emoji": strings.Repeat("🙂", 2500), "spaces": "a" + strings.Repeat(" ", 5000) + "b",
	} {
		cuts := passages(text)
		runes := []rune(text)
		covered := 0
		for i, c := range cuts {
			n := utf8.RuneCountInString(c.text)
			if n == 0 || n > chunkSize || string(runes[c.start:c.start+n]) != c.text {
				t.Errorf("%s: passage %d at %d has %d characters, or is not there", name, i, c.start, n)
			}
			if c.start > covered && strings.TrimSpace(string(runes[covered:c.start])) != "" {
				t.Errorf("%s: %q is in no passage", name, string(runes[covered:c.start]))
			}
			if i > 0 && c.start <= cuts[i-1].start {
				t.Errorf("%s: passage %d begins at %d, before the one before it", name, i, c.start)
			}
			covered = c.start + n
		}
		if strings.TrimSpace(string(runes[min(covered, len(runes)):])) != "" {
			t.Errorf("%s: the end is in no passage", name)
		}
		if again := passages(text); !reflect.DeepEqual(again, cuts) {
			t.Errorf("%s: cut in another way the second time", name)
		}
	}
	for i, c := range passages(strings.Repeat(sentence, 100)) {
		if !strings.HasSuffix(c.text, ".") {
			t.Errorf("passage %d ends within a sentence: %q", i, c.text[len(c.text)-20:])
		}
	}
	cuts := passages(strings.Repeat(sentence, 100))
	if cuts[1].start >= utf8.RuneCountInString(cuts[0].text) {
		t.Errorf("the second passage begins at %d, where the first has ended", cuts[1].start)
	}
}
