package protocol

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

var fastCorpus = []string{
	`{"jsonrpc":"2.0","id":1,"result":{"status":"succeeded","data":{"a":1,"b":[{"c":null},{"c":-1.5e+3}]}}}`,
	`{"jsonrpc":"2.0","id":"s1","method":"cache.get","params":{"call":"a","args":{"key":"\u00e9\n\"\\"}}}`,
	`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no","data":{}}}`,
	` { "jsonrpc" : "2.0" , "method" : "emit" , "params" : [ {"a":true}, false, "é", 0.10 ] } `,
	`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"a":1,"\u0061":2}}`,
	`{"jsonrpc":"2.0","id":1,"result":"\ud800"}`,
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"12345678\xff\"}",
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"1234567\x01\"}",
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\x7f1234567\xed\xa0\x80\"}",
	`{"jsonrpc":"2.0","id":01,"result":1}`,
	`{"jsonrpc":"2.0","id":1,"result":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}}`,
	`{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40) + `}`,
	`{"jsonrpc":"2.0","id":1,"result":{}} {}`,
	`{"jsonrpc":"2.0","id":1,"result":{"propertyabcdefgh":1,"propertyABCDefgh":1}}`,
}

// FuzzFast: what is read in one pass is what the reference reads.
func FuzzFast(f *testing.F) {
	for _, line := range fastCorpus {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var s fast
		if !s.parse(line) {
			return
		}
		got := s.frame
		want, err := parseFrame(line)
		if err != nil {
			t.Fatalf("%q was accepted: %v", line, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %+v, want %+v", line, got, want)
		}
	})
}

// TestFastAccepts: the lines that matter take the short way.
func TestFastAccepts(t *testing.T) {
	t.Parallel()
	for i, line := range fastCorpus[:4] {
		if !(&fast{}).parse([]byte(line)) {
			t.Errorf("line %d was not recognised", i)
		}
	}
	for i, line := range fastCorpus[4:11] {
		if (&fast{}).parse([]byte(line)) {
			t.Errorf("line %d was accepted: %s", i+4, line)
		}
	}
}

func BenchmarkFast(b *testing.B) {
	var data strings.Builder
	for i := range 20 {
		fmt.Fprintf(&data, `,"property_%c":"%s"`, 'a'+i, strings.Repeat("v", 34))
	}
	line := []byte(`{"jsonrpc":"2.0","id":1,"result":{"status":"succeeded","data":{` + data.String()[1:] + `}}}`)
	for name, parse := range map[string]func([]byte) (Frame, error){"fast": ParseFrame, "reference": parseFrame} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parse(line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Plain looks at eight bytes at a time; it stops where a look at each byte does.
func TestPlainStopsAtTheFirstByteThatIsNotPlain(t *testing.T) {
	t.Parallel()
	each := func(b []byte, i int) int {
		for ; i < len(b); i++ {
			if c := b[i]; c == '"' || c == '\\' || c < ' ' || c >= 0x80 {
				break
			}
		}
		return i
	}
	line := make([]byte, 27)
	for at := range line {
		for one := range 256 {
			for _, other := range []byte{'a', ' ', 0x7f, '!', '#', '[', ']', '"', '\\', 0x00, 0x1f, 0x80, 0xa0, 0xa2, 0xff} {
				for i := range line {
					line[i] = other
				}
				line[at] = byte(one)
				for _, from := range []int{0, 1, at} {
					if got, want := Plain(line, from), each(line, from); got != want {
						t.Fatalf("Plain(%q, %d) is %d, and byte by byte it is %d", line, from, got, want)
					}
				}
			}
		}
	}
}
