package canon_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/canon"
)

func TestFormSpellsEqualValuesAlike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, a, b string }{
		{"order of members", `{"b":1,"a":2}`, `{"a":2,"b":1}`},
		{"white space", "{ \"a\" :\n1}", `{"a":1}`},
		{"spelling of a number", `[1.0, 1e2, -0]`, `[1,100,0]`},
		{"escapes", `"\u0041\/"`, `"A/"`},
	} {
		a, errA := canon.Hash([]byte(c.a))
		b, errB := canon.Hash([]byte(c.b))
		if errA != nil || errB != nil || a != b {
			t.Errorf("%s: %s %v, %s %v", c.name, a, errA, b, errB)
		}
	}
}

func TestFormKeepsLargeIntegersApart(t *testing.T) {
	t.Parallel()
	a, _ := canon.Hash([]byte(`9007199254740993`))
	b, _ := canon.Hash([]byte(`9007199254740992`))
	if a == b {
		t.Error("two integers share a hash")
	}
}

func TestFormRefusesWhatIsNotIJSON(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{`1e400`, `{"a":-1e999}`, `{"a":1,"a":2}`, "\"\xff\"", `"\ud800"`, `{`, `1 2`, ``} {
		if form, err := canon.Form([]byte(bad)); err == nil {
			t.Errorf("%q became %s", bad, form)
		}
	}
}

func TestBigNumberNamesThePlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`{"a":[1,{"b":9007199254740993}]}`, "/a/1/b"},
		{`-9007199254740993`, ""},
		{`90071992547409930`, ""},
		{`{"a":9007199254740993.0}`, "/a"},
		{`1e300`, ""},
	} {
		if got, found := canon.BigNumber([]byte(c.in)); !found || got != c.want {
			t.Errorf("%s: %q %v, want %q", c.in, got, found, c.want)
		}
	}
	for _, fine := range []string{`9007199254740992`, `-9007199254740992`, `{"a":"9007199254740993"}`} {
		if at, found := canon.BigNumber([]byte(fine)); found {
			t.Errorf("%s refused at %q", fine, at)
		}
	}
}

func TestCheckBoundsDepth(t *testing.T) {
	t.Parallel()
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if err := canon.Check(deep(64), 64); err != nil {
		t.Error(err)
	}
	if err := canon.Check(deep(65), 64); err == nil {
		t.Error("65 levels passed")
	}
	for _, bad := range []string{``, `1 2`, `{"a":1}x`, `{"a":1,"a":1}`} {
		if err := canon.Check([]byte(bad), 64); err == nil {
			t.Errorf("%q passed", bad)
		}
	}
}
