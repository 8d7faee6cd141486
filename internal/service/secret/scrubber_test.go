package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/mortise-dev/mortise/plugin"
)

// canary has what encodings treat each in their own way.
const canary = `cänary "7/9"+<x&y>~secret\n`

// encodings are the forms in which a canary is looked for.
var encodings = map[string]func(string) string{
	"raw":             func(s string) string { return s },
	"base64":          func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64, after 1": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("x" + s + "y")) },
	"base64, after 2": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("xy" + s + "zz")) },
	"base64 for URLs": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("key=" + s)) },
	"hexadecimal":     func(s string) string { return hex.EncodeToString([]byte(s)) },
	"HEXADECIMAL":     func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"a query":         url.QueryEscape,
	"a path":          func(s string) string { return lowerHex(url.PathEscape(s)) },
	"JSON":            func(s string) string { raw, _ := json.Marshal(s); return string(raw[1 : len(raw)-1]) },
	"UTF-16, little":  func(s string) string { return inUTF16(s, 0) },
	"UTF-16, big":     func(s string) string { return inUTF16(s, 8) },
}

func inUTF16(s string, shift int) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(s)) {
		out = append(out, byte(unit>>shift), byte(unit>>(8-shift)))
	}
	return string(out)
}

// leaks returns the encodings in which most of a canary is left in text: two
// thirds of it, at any place.
func leaks(text, value string) (found []string) {
	for name, encode := range encodings {
		form := encode(value)
		n := len(form) * 2 / 3
		for i := 0; i+n <= len(form); i++ {
			if strings.Contains(text, form[i:i+n]) {
				found = append(found, name)
				break
			}
		}
	}
	return found
}

func TestAScrubberTakesOutTwelveEncodings(t *testing.T) {
	t.Parallel()
	if len(encodings) != 12 {
		t.Fatalf("%d encodings", len(encodings))
	}
	for name, encode := range encodings {
		text := "before " + encode(canary) + " after"
		if len(leaks(text, canary)) == 0 {
			t.Fatalf("%s: the test does not see it", name)
		}
		none := NewScrubber()
		if got := none.Text(text); got != text {
			t.Errorf("%s: without a secret %q became %q", name, text, got)
		}
		s := NewScrubber()
		s.Know(canary)
		got := s.Text(text)
		if found := leaks(got, canary); found != nil || !strings.Contains(got, Mark) || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
			t.Errorf("%s: %q has it as %v", name, got, found)
		}
		raw, err := json.Marshal(map[string]any{"list": []any{text, 1.5, nil}, "n" + encode(canary): true})
		if err != nil {
			t.Fatal(err)
		}
		clean := s.JSON(raw)
		var members map[string]any
		if err := json.Unmarshal(clean, &members); err != nil || len(members) != 2 {
			t.Errorf("%s: %s is no JSON any more: %v", name, clean, err)
		}
		if found := leaks(fmt.Sprint(members), canary); found != nil {
			t.Errorf("%s: %s has it as %v", name, clean, found)
		}
		var log bytes.Buffer
		logger := slog.New(s.Handler(slog.NewJSONHandler(&log, nil))).With("fixed", text).WithGroup("g")
		logger.Info(text, "text", text, "error", fmt.Errorf("it said %s", text), slog.Group("of", "inner", text))
		if strings.Count(log.String(), Mark) != 5 {
			t.Errorf("%s: the log says %s", name, log.String())
		}
	}
}

func TestAScrubberSeesSecretsOverChunks(t *testing.T) {
	t.Parallel()
	for name, encode := range encodings {
		text := "a " + encode(canary) + encode(canary) + " b " + encode(canary)[:9] + " c"
		s := NewScrubber()
		s.Know(canary)
		whole := s.Text(text)
		for size := 1; size <= len(text); size++ {
			var out bytes.Buffer
			w := s.Writer(&out)
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				if _, err := w.Write([]byte(rest[:n])); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if out.String() != whole {
				t.Fatalf("%s in parts of %d: %q, want %q", name, size, out.String(), whole)
			}
		}
		if found := leaks(whole, canary); found != nil {
			t.Errorf("%s: %q has it as %v", name, whole, found)
		}
	}
}

func TestAWriterHoldsNothingBackThatIsNoSecret(t *testing.T) {
	t.Parallel()
	s := NewScrubber()
	s.Know("swordfish-99")
	var out bytes.Buffer
	w := s.Writer(&out)
	for _, part := range []string{"Approve? [y/N] ", "a line\n", "sword"} {
		out.Reset()
		fmt.Fprint(w, part)
		if got, held := out.String(), part == "sword"; (got != part) != held {
			t.Errorf("after %q there is %q", part, got)
		}
	}
	fmt.Fprint(w, "s and shields")
	if out.String() != "swords and shields" && out.String() != "swords and shield" {
		t.Errorf("there is %q", out.String())
	}
}

func TestSecretsThatOverlapGoTogether(t *testing.T) {
	t.Parallel()
	s := NewScrubber()
	s.Know("abcdefghij")
	s.Know("ghijklmnop")
	s.Know("abcdefgh")
	if got := s.Text("x abcdefghijklmnop y abcdefghZ"); got != "x [secret] y [secret]Z" {
		t.Errorf("got %q", got)
	}
	if got := string(s.JSON([]byte(`{"a":"x", "b":12345678901}`))); got != `{"a":"x", "b":12345678901}` {
		t.Errorf("what has no secret became %s", got)
	}
	s.Know("12345678901")
	if got := string(s.JSON([]byte(`{"a":"\u0061bcdefgh", "b":12345678901}`))); got != `{"a":"[secret]","b":"[secret]"}` {
		t.Errorf("got %s", got)
	}
	s.Know("short")
	if got := s.Text("short"); got != "short" {
		t.Errorf("a short one is %q", got)
	}
}

func TestAScrubberIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it only computes: it runs in a part of its own, without the race detector")
	}
	s := NewScrubber()
	for i := range maxKnown {
		if err := s.Know(fmt.Sprintf("secret number %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		if err := s.Know(fmt.Sprintf("secret too many %d", i)); plugin.CodeOf(err) != plugin.CodeLimitExceeded {
			t.Errorf("one that is not looked for: %v", err)
		}
	}
	if got := s.Text("secret number 0, secret number 4095"); got != "[secret], [secret]" {
		t.Errorf("got %q", got)
	}
	s = NewScrubber()
	random := rand.New(rand.NewPCG(1, 2))
	kept := 0
	for range 40 {
		long := make([]byte, MaxValue)
		for i := range long {
			long[i] = byte('!' + random.IntN(90))
		}
		if s.Know(string(long)) != nil {
			continue
		}
		kept++
		if got := s.Text("a" + string(long) + "b"); got != "a[secret]b" {
			t.Errorf("a long one left %d bytes", len(got))
		}
	}
	if s.size > maxSpelled || kept < 12 || kept == 40 {
		t.Errorf("it keeps %d bytes of %d values", s.size, kept)
	}
}

// Whatever plugins and providers bring up, and in whichever order: what was
// accepted once is taken out from then on, and what is not accepted is refused.
func TestNoFloodMakesAKnownSecretShow(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it only computes: it runs in a part of its own, without the race detector")
	}
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 3))
		now := time.Unix(1_800_000_000, 0)
		s := NewScrubber()
		s.now = func() time.Time { return now }
		value := func(n int) string {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte('!' + r.IntN(90))
			}
			return string(b)
		}
		type accepted struct {
			value string
			until time.Time // zero for good
		}
		var all []accepted
		check := func(when string) {
			for range 30 {
				a := all[r.IntN(len(all))]
				if !a.until.IsZero() && now.After(a.until) {
					continue
				}
				if got := s.Text("<" + a.value + ">"); strings.Contains(got, a.value) {
					t.Fatalf("seed %d: %s, a known secret of %d bytes shows", seed, when, len(a.value))
				}
			}
		}
		tell := func(size int) {
			v := value(size)
			var err error
			until := time.Time{}
			switch who := r.IntN(10); {
			case who == 0:
				err = s.Know(v)
			case who <= 3:
				err, until = s.Learn(v), now.Add(learnedFor)
			default:
				err = s.Keep(fmt.Sprintf("t/p%d", r.IntN(3)), v)
			}
			if err == nil {
				all = append(all, accepted{v, until})
			} else if plugin.CodeOf(err) != plugin.CodeLimitExceeded {
				t.Fatal(err)
			}
		}
		for i := range 40 {
			tell(20 + i)
		}
		for i := range 1500 {
			size := shortest + r.IntN(60)
			if r.IntN(100) == 0 {
				size = 1 + r.IntN(MaxValue)
			}
			tell(size)
			if r.IntN(50) == 0 {
				now = now.Add(time.Duration(r.IntN(3)) * time.Hour)
			}
			if i%500 == 0 {
				check("in the flood")
			}
		}
		check("after the flood")
		var one share
		for owner, has := range s.shares {
			if owner == "t/p0" {
				one = has
			}
		}
		if one.count > maxOwned || one.size > maxOwnedSpelled {
			t.Errorf("one plugin has %+v", one)
		}
		// A flood of one plugin leaves the others their own, and the host its own.
		for range 3 * maxOwned {
			_ = s.Keep("t/flooder", value(40))
		}
		for what, err := range map[string]error{"the host": s.Know(value(30)), "another plugin": s.Keep("t/other", value(30))} {
			if err != nil {
				t.Errorf("after the flood of one plugin %s gets %v", what, err)
			}
		}
	}
}
