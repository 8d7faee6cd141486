package terminal

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

func TestATableKeepsItsColumnsAndItsWidth(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	table := NewTable(&b, "NAME", "WHAT")
	table.Fit = 20
	table.Row("漢字", "a\tb\x1b")
	table.Row("n", strings.Repeat("word ", 10))
	table.Some("none")
	table.Some("some", "a", "b")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "NAME  WHAT\n漢字  a b\\x1b\nn     word word wor…\nsome  a, b\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestUnitsForPeople(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0s": Short(-time.Second), "59s": Short(59 * time.Second), "2m": Short(2 * time.Minute), "47h": Short(47 * time.Hour), "2d": Short(48 * time.Hour),
		"-": Milliseconds("no number"), "0.50 ms": Milliseconds(0.5), "12 ms": Milliseconds(12.0), "1.5 s": Milliseconds(1500.0),
		"1 KiB": Bytes(1), "3 MiB": Bytes(3 << 20), "7 rows": amount(jsontext.Value("7"), "rows"), "2 MiB": amount(jsontext.Value("2097152"), "bytes"),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestConfirmAsksAgainUntilThereIsAnAnswer(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]bool{"maybe\ny\n": true, "n\n": false, "\n": false, "y": false, "": false} {
		var out bytes.Buffer
		yes, err := Confirm(t.Context(), bufio.NewReader(strings.NewReader(typed)), &out, "Go\x1b on?")
		if err != nil || yes != want {
			t.Errorf("%q: %v, %v", typed, yes, err)
		}
		if asked := strings.Count(out.String(), `Go\x1b on? [y/N] `); asked != 1+strings.Count(typed, "maybe") {
			t.Errorf("%q: asked %d times: %q", typed, asked, out.String())
		}
	}
}
