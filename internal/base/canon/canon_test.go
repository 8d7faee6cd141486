package canon_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
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

// TestPlainValuesHashAsTheLibrarySpellsThem makes values of a few names, numbers and texts, some
// garbled, and holds the hash of the one pass against the hash of the library's spelling.
func TestPlainValuesHashAsTheLibrarySpellsThem(t *testing.T) {
	t.Parallel()
	rounds := 50_000
	if text := os.Getenv("MORTISE_CANON_VALUES"); text != "" {
		rounds, _ = strconv.Atoi(text)
	}
	random := rand.New(rand.NewPCG(8785, uint64(rounds)))
	valid := 0
	for range rounds {
		raw := someValue(random, 0)
		if random.IntN(4) == 0 {
			raw = garbled(random, raw)
		}
		sameHash(t, []byte(raw))
		if canon.Check([]byte(raw), 64) == nil {
			valid++
		}
	}
	if valid < rounds/4 {
		t.Errorf("%d of %d values were JSON", valid, rounds)
	}
}

func FuzzHash(f *testing.F) {
	for _, seed := range []string{`{"b":[1,-2,0,-0,1.5,1e3],"a":"é\n","a b":{}}`, ` [ ] `, `{"a":1,"a":2}`, "\"\x7f\xe2\x80\xa8\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(sameHash)
}

func sameHash(t *testing.T, raw []byte) {
	hash, err := canon.Hash(raw)
	if len(raw) == 0 {
		return
	}
	form, wrong := canon.Form(raw)
	if (err == nil) != (wrong == nil) || err == nil && hash != canon.Sum(form) {
		t.Fatalf("%q hashes to %s (%v), and is spelled %s (%v)", raw, hash, err, form, wrong)
	}
}

var (
	someTexts   = []string{`"a"`, `"b"`, `"ab"`, `"a b"`, `""`, `"A"`, `"é"`, `"\u00e9"`, `"\\n"`, `"\ud83d\ude00"`, `"😀"`, `"ﬀ"`, "\"\x7f\"", "\"\u2028\"", `"a\u0000"`, `"/"`, `"\/"`, `"a."`, `"z"`, `"~"`}
	someNumbers = []string{"0", "-0", "1", "-1", "12", "01", "-", "1.0", "1.5", "1e2", "123456789012345", "1234567890123456", "9007199254740993", "-999999999999999", "1e400", "+1", ".5"}
	someSpaces  = []string{"", "", "", "", " ", "\n", "\t ", "\r", "\v"}
)

func someValue(random *rand.Rand, depth int) string {
	space := func() string { return someSpaces[random.IntN(len(someSpaces))] }
	pick := func(of []string) string { return of[random.IntN(len(of))] }
	kind := random.IntN(7)
	if depth > 3 {
		kind = 2 + random.IntN(5)
	}
	var out strings.Builder
	out.WriteString(space())
	switch kind {
	case 0, 1:
		open, shut := "{", "}"
		if kind == 1 {
			open, shut = "[", "]"
		}
		out.WriteString(open)
		for i := range random.IntN(6) {
			if i > 0 {
				out.WriteString(",")
			}
			if kind == 0 {
				out.WriteString(space() + pick(someTexts) + space() + ":")
			}
			out.WriteString(someValue(random, depth+1))
		}
		out.WriteString(space() + shut)
	case 2:
		out.WriteString(pick([]string{"true", "false", "null", "nul"}))
	case 3, 4:
		out.WriteString(pick(someNumbers[:9+random.IntN(len(someNumbers)-8)]))
	default:
		out.WriteString(pick(someTexts))
	}
	out.WriteString(space())
	return out.String()
}

// garbled changes one byte of a value, leaves it out or doubles it.
func garbled(random *rand.Rand, raw string) string {
	at := random.IntN(len(raw))
	switch random.IntN(3) {
	case 0:
		return raw[:at] + string([]byte{byte(random.IntN(256))}) + raw[at+1:]
	case 1:
		return raw[:at] + raw[at+1:]
	default:
		return raw[:at] + raw[at:at+1] + raw[at:]
	}
}

// BenchmarkHash hashes 1 KB whose members are in order, and in the opposite one.
func BenchmarkHash(b *testing.B) {
	ordered := make([]string, 20)
	for i := range ordered {
		ordered[i] = strconv.Quote("property_"+string(rune('a'+i))) + ":" + strconv.Quote(strings.Repeat("v", 36))
	}
	reversed := slices.Clone(ordered)
	slices.Reverse(reversed)
	for name, members := range map[string][]string{"ordered": ordered, "reversed": reversed} {
		raw := []byte("{" + strings.Join(members, ",") + "}")
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := canon.Hash(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
