package consent_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/consent"
	"github.com/mortise-dev/mortise/internal/base/consent/consenttest"
)

var update = flag.Bool("update", false, "write testdata/lines.json")

func TestEveryLeafCanBeReadBackFromTheLines(t *testing.T) {
	t.Parallel()
	for _, width := range []int{40, 80, 200} {
		consenttest.Inputs(1000, func(raw []byte) {
			var b strings.Builder
			if err := consent.Write(&b, raw, width); err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
			if err := consenttest.Check(b.String(), raw); err != nil {
				t.Errorf("%.300s\nis shown as\n%.600s\n%v", raw, b.String(), err)
			}
		})
	}
}

// A check that finds nothing wrong with anything would pass the test above.
func TestTheCheckFindsWhatIsMissingOrMisleading(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ raw, lines string }{
		"a leaf is missing":       {`{"a":1,"b":2}`, "  a = 1\n"},
		"a leaf is added":         {`{"a":1}`, "  a = 1\n  b = 2\n"},
		"a value is another":      {`{"a":9007199254740993}`, "  a = 9007199254740992\n"},
		"a path is another":       {`{"a":{"b":1}}`, "  a.c = 1\n"},
		"a text is cut":           {`{"a":"xy"}`, "  a = \"x\"\n"},
		"a line break is one":     {`{"a":"x\n  b = 1"}`, "  a = \"x\n  b = 1\"\n"},
		"a letter is of another":  {`{"a":"p\u0430y"}`, "  a = \"p\u0430y\"\n"},
		"a character is not seen": {`{"a":"p\u200by"}`, "  a = \"p\u200by\"\n"},
		"a text turns around":     {`{"a":"\u202ex"}`, "  a = \"\u202ex\"\n"},
		"a name is a quoted line": {`{"a = 1":2}`, "  a = 1 = 2\n"},
		"a leaf is there twice":   {`{"a":1}`, "  a = 1\n  a = 1\n"},
	} {
		if consenttest.Check(c.lines, []byte(c.raw)) == nil {
			t.Errorf("%s, and nothing is found wrong with %q for %s", name, c.lines, c.raw)
		}
	}
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	t.Parallel()
	const width = 60
	raw := []byte(`{"to":"ann@example.com","text":"` + strings.Repeat("日本語 and more ", 40) + `","lines":"one\ntwo\n\nthree"}`)
	var b strings.Builder
	if err := consent.Write(&b, raw, width); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		wide := 0
		for _, r := range line {
			if wide++; r > 0x1100 {
				wide++
			}
		}
		if wide > width {
			t.Errorf("%d cells in %q", wide, line)
		}
	}
	if want := "  lines =\n    \"one\\n\"\n    \"two\\n\"\n    \"\\n\"\n    \"three\"\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("the lines end with %q, want %q", b.String(), want)
	}
}

func TestWhatIsNoJSONIsNotShownInPart(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "{", `{"a":1`, `{"a":1} 2`, `{"a":01}`, "[1,]", "\"\xff\""} {
		var b strings.Builder
		if err := consent.Write(&b, []byte(raw), 80); err == nil || b.Len() > 0 {
			t.Errorf("%q is shown as %q (%v)", raw, b.String(), err)
		}
	}
	if leaves, err := consent.Leaves([]byte(`{"a":1,"a":2}`)); err != nil || len(leaves) != 2 {
		t.Errorf("%v (%v), want both members", leaves, err)
	}
}

func TestWhatMayPassForAnotherCharacterIsEscaped(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"ann@example.com": `"ann@example.com"`,
		"\u202egnp.exe":   `"\u202egnp.exe"`,
		"pay\u200bpal":    `"pay\u200bpal"`,
		"p\u0430ypal":     `"p\u0430ypal"`,                // a Cyrillic letter in a Latin word
		"Привет, мир":     `"Привет, мир"`,                // a word of another alphabet
		"сор":             `"\u0441\u043e\u0440"`,         // and one that could be a word of this
		"naïve Zürich":    `"naïve Zürich"`,               // accents
		"nai\u0308ve":     `"nai\u0308ve"`,                // the same accent, spelt otherwise
		"\u212aelvin":     `"\u212aelvin"`,                // a second form of one letter
		"\uff41dmin":      `"\uff41dmin"`,                 // fullwidth
		"a\u00a0b\u3000c": `"a\u00a0b\u3000c"`,            // spaces
		"日本語 text":        `"日本語 text"`,                   // another script altogether
		"exampleノcom":     `"example\u30cecom"`,           // a letter that looks like a slash
		"שלום":            `"שלום"`,                       // from right to left
		"שלום 1":          `"\u05e9\u05dc\u05d5\u05dd 1"`, // with a number that a screen would move
		"a\"\\\n\t\r\x00": `"a\"\\\n\t\r\u0000"`,
		"a       b":       `"a    \u0020\u0020\u0020b"`,
		"100\u2212":       `"100\u2212"`,
	} {
		if got := consent.Quote(in); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
		var back string
		if err := json.Unmarshal([]byte(consent.Quote(in)), &back); err != nil || back != in {
			t.Errorf("%s reads %q, want %q (%v)", consent.Quote(in), back, in, err)
		}
	}
}

// A vector is a value with its lines, which the console writes too.
type vector struct {
	JSON  string   `json:"json"`
	Lines []string `json:"lines"`
}

// The test of the console reads the same file.
func TestTheConsoleWritesTheSameLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join("testdata", "lines.json")
	var vectors []vector
	consenttest.Inputs(150, func(raw []byte) {
		if len(raw) > 600 {
			return
		}
		leaves, err := consent.Leaves(raw)
		if err != nil {
			t.Fatal(err)
		}
		v := vector{JSON: string(raw), Lines: []string{}}
		for _, l := range leaves {
			v.Lines = append(v.Lines, l.String())
		}
		vectors = append(vectors, v)
	})
	raw, err := json.MarshalIndent(vectors, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	raw = append(raw, '\n')
	if *update {
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != string(raw) {
		t.Error("testdata/lines.json has other lines: go test ./internal/base/consent -update writes it")
	}
}
