package input

import (
	"errors"
	"testing"
)

func TestArgumentsAfterTheDashes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args   []string
		object string
		want   string
	}{
		{nil, "", ""},
		{[]string{"--a", "1", "--b"}, "", "a=1 b!"},
		{[]string{"--b", "--a", "x y"}, "", "b! a=x y"},
		{[]string{"--a=1=2", "--n", "-5", "--empty", ""}, "", "a=1=2 n=-5 empty="},
		{[]string{`{"a":1}`}, `{"a":1}`, ""},
		{[]string{`{"a":1}`, "--b", "2"}, `{"a":1}`, "b=2"},
		{[]string{"--a", "1", "--a", "2"}, "", "a=1 a=2"}, // of which an investigation plugin gets the last
		{[]string{"--json", `{"a":1}`}, "", `json={"a":1}`},
	} {
		read, err := Read(test.args, nil)
		got := ""
		for i, a := range read.List {
			if i > 0 {
				got += " "
			}
			if got += a.Name; a.Bare {
				got += "!"
			} else {
				got += "=" + a.Text
			}
		}
		if err != nil || read.Object != test.object || got != test.want {
			t.Errorf("%q: %q %q %v", test.args, read.Object, got, err)
		}
	}
	for _, args := range [][]string{{"word"}, {"--"}, {"--=x"}, {"--a", "1", "2"}, {"-a"}, {`{}`, `{}`}, {"--a", "\xff"}, {"\xff"}, {""}} {
		if read, err := Read(args, nil); !errors.As(err, new(Misuse)) {
			t.Errorf("%q: %v %v", args, read, err)
		}
	}
}
