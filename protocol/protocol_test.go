package protocol_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

func TestFramesAreToldApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, line string
		check      func(protocol.Frame) bool
	}{
		{"request", `{"jsonrpc":"2.0","id":7,"method":"execute","params":{"a":[1,2]}}`, func(f protocol.Frame) bool {
			id, ok := f.IntID()
			return ok && id == 7 && f.Method == "execute" && string(f.Params) == `{"a":[1,2]}` && !f.IsResponse()
		}},
		{"members in another order", `{"params":{},"method":"log","jsonrpc":"2.0"}`, func(f protocol.Frame) bool { return f.ID == nil && f.Method == "log" }},
		{"result", `{"jsonrpc":"2.0","id":"s1","result":null}`, func(f protocol.Frame) bool {
			_, isInt := f.IntID()
			return f.IsResponse() && !isInt && string(f.Result) == "null"
		}},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, func(f protocol.Frame) bool { return f.Error != nil && f.Result == nil }},
		{"unknown member", `{"jsonrpc":"2.0","id":1,"result":{},"x":1}`, func(f protocol.Frame) bool { return f.Unknown == "x" }},
		{"unknown member without a name", `{"jsonrpc":"2.0","":1,"id":1,"result":{}}`, func(f protocol.Frame) bool { return f.Unknown != "" }},
		{"white space and carriage return", " {\"jsonrpc\" : \"2.0\",\t\"id\":1,\"result\":[ 1 ]}\r", func(f protocol.Frame) bool { return string(f.Result) == "[ 1 ]" }},
	} {
		f, err := protocol.ParseFrame([]byte(c.line))
		if err != nil || !c.check(f) {
			t.Errorf("%s: %+v, %v", c.name, f, err)
		}
	}
}

func TestFramesThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		``, ` `, `null`, `[]`, `"x"`, `{`, `{}`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"1.0","id":1,"result":1}`,
		`{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`, `{"jsonrpc":"2.0","id":1,"id":1,"result":1}`,
		`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}",
		`{"jsonrpc":"2.0","id":1,"result":"\ud800"}`, `{"jsonrpc":"2.0","id":1,"result":1}{}`, `{"jsonrpc":"2.0","id":1,"result":1} x`,
		`{"jsonrpc":"2.0","id":null,"result":1}`, `{"jsonrpc":"2.0","id":1.5,"result":1}`, `{"jsonrpc":"2.0","id":1e3,"result":1}`, `{"jsonrpc":"2.0","id":{},"method":"m"}`, `{"jsonrpc":"2.0","method":7}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","result":1}`, `{"jsonrpc":"2.0","id":"` + strings.Repeat("a", 65) + `","method":"m"}`,
		`{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`,
		"\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":1,"result":1}`, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\x00}",
	} {
		if f, err := protocol.ParseFrame([]byte(line)); err == nil {
			t.Errorf("%.60q became %+v", line, f)
		}
	}
}

// A frame refers to its own line even after the decoder has read another.
func TestFramesKeepTheirBytes(t *testing.T) {
	t.Parallel()
	first, err := protocol.ParseFrame([]byte(`{"jsonrpc":"2.0","id":1,"result":{"text":"first"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := protocol.ParseFrame([]byte(`{"jsonrpc":"2.0","id":2,"result":{"text":"other"}}`)); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(first.Result); got != `{"text":"first"}` {
		t.Errorf("the first result reads %s", got)
	}
}

func TestLineReaderBoundsLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 100)
	for _, c := range []struct {
		name, in string
		limit    int
		want     []string
		end      error
	}{
		{"lines", "a\nbb\n\nccc\n", 10, []string{"a", "bb", "", "ccc"}, io.EOF},
		{"a last line without newline", "a\nb", 10, []string{"a", "b"}, io.EOF},
		{"exactly the bound", long + "\n", 100, []string{long}, io.EOF},
		{"over the bound", "a\n" + long + "a\n", 100, []string{"a"}, protocol.ErrLineTooLong},
		{"over the bound and no newline", long + long, 100, nil, protocol.ErrLineTooLong},
		{"nothing", "", 10, nil, io.EOF},
	} {
		for _, reader := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in)), iotest.DataErrReader(strings.NewReader(c.in))} {
			l := protocol.NewLineReader(reader, c.limit)
			var got []string
			for {
				line, err := l.ReadLine()
				if err != nil {
					if !errors.Is(err, c.end) {
						t.Errorf("%s: ended with %v, want %v", c.name, err, c.end)
					}
					break
				}
				got = append(got, string(line))
			}
			if strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		}
	}
}

// A part is read a second time once its memory was given back: it takes no more than its bytes then, however many names it has.
func TestAPartTakesNoMoreMemoryThanItsBytes(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"call":"c","seq":1,"kind":"content","data":{`)
	for i := range 100_000 {
		fmt.Fprintf(&b, `"n%d":0,`, i)
	}
	b.WriteString(`"last":0}}`)
	part := jsontext.Value(b.String())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var e protocol.Emit
	err := protocol.ReadPart(part, &e)
	runtime.ReadMemStats(&after)
	if err != nil || e.Kind != "content" || len(e.Data) < 1<<20 {
		t.Fatalf("%v: %d bytes of %q", err, len(e.Data), e.Kind)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 2*uint64(len(part)) {
		t.Errorf("%d bytes took %d", len(part), took)
	}
	if _, err := protocol.ParseFrame([]byte(`{"jsonrpc":"2.0","method":"emit","params":{"data":{"a":1,"a":2}}}`)); err == nil {
		t.Error("a frame with a name that is there twice is read")
	}
}

func TestMembersOfAnObject(t *testing.T) {
	t.Parallel()
	var got []string
	for m := protocol.ScanMembers([]byte(` { "a" : {"x":"}\"\\"} , "b":[1,"]"],"c\n":-1.5e3,"d":"\\","e":null}`)); m.Next(); {
		got = append(got, string(m.Name)+"="+string(m.Value))
	}
	want := `a={"x":"}\"\\"}|b=[1,"]"]|` + "c\n" + `=-1.5e3|d="\\"|e=null`
	if strings.Join(got, "|") != want {
		t.Errorf("%v", got)
	}
	for m := protocol.ScanMembers([]byte(`["a"]`)); m.Next(); {
		t.Errorf("a list has the member %s", m.Name)
	}
}

func TestAPluginCannotSpeakWithTheHostsVoice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ data, code, pluginCode string }{
		{`{"code":"policy_denied"}`, "plugin_error", "policy_denied"},
		{`{"code":"invalid_input"}`, "invalid_input", ""},
		{`{"code":"plugin_error","plugin_code":"X"}`, "plugin_error", "X"},
		{`{"code":"no_such"}`, "plugin_error", "no_such"},
	} {
		e, err := protocol.ParseError([]byte(`{"code":-32000,"message":"m","data":` + c.data + `}`))
		if err != nil || string(e.Code) != c.code || e.PluginCode != c.pluginCode {
			t.Errorf("%s: %+v, %v", c.data, e, err)
		}
	}
}

func TestResultsAreReadOnce(t *testing.T) {
	t.Parallel()
	res, failure, err := protocol.ParseResult([]byte(`{"status":"succeeded","data":{"a":1},"metrics":{"tokens_in":3},"nondeterminism":{"is_nondeterministic":true,"reasons":["llm_sampling"]},"summary":"s","from_the_future":1}`))
	if err != nil || failure != nil || string(res.Data) != `{"a":1}` || res.Metrics["tokens_in"] != 3.0 || !res.Nondeterminism.Is || res.Summary != "s" {
		t.Errorf("%+v %v %v", res, failure, err)
	}
	_, failure, err = protocol.ParseResult([]byte(`{"status":"failed","error":{"code":"NOPE","message":"no"}}`))
	if err != nil || failure == nil || failure.Code != plugin.CodePluginError || failure.PluginCode != "NOPE" || failure.Message != "no" {
		t.Errorf("%+v %v", failure, err)
	}
	for _, bad := range []string{`1`, `{}`, `{"status":"ok"}`, `{"status":"failed"}`, `{"status":"succeeded","error":{}}`, `{"status":"succeeded","metrics":[]}`} {
		if _, _, err := protocol.ParseResult([]byte(bad)); err == nil {
			t.Errorf("%s passed", bad)
		}
	}
}

func TestExecuteIsOneLine(t *testing.T) {
	t.Parallel()
	call := &plugin.Call{Tenant: "t", Principal: plugin.Principal{Type: "user", ID: "p\n"}, Key: "k"}
	line := protocol.AppendExecute(nil, 3, "tok", "a/b", protocol.Line([]byte("{\n\"x\": \"\\n\"\r\n}")), call, 5)
	if bytes.Count(line, []byte("\n")) != 1 || !bytes.HasSuffix(line, []byte("\n")) {
		t.Fatalf("%s", line)
	}
	f, err := protocol.ParseFrame(bytes.TrimSpace(line))
	if err != nil || f.Method != "execute" || !strings.Contains(string(f.Params), `"input":{"x":"\n"}`) {
		t.Errorf("%v %s", err, line)
	}
}

func FuzzParseFrame(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":[1,{"b":"c"}]}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"emit","params":{"call":"x"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		frame, err := protocol.ParseFrame(line)
		if err != nil {
			return
		}
		// What is accepted prints back to the same frame.
		var again []byte
		switch {
		case frame.Unknown != "":
			return
		case frame.IsResponse() && frame.Result != nil:
			again = protocol.AppendResult(nil, frame.ID, frame.Result)
		case !frame.IsResponse() && frame.ID != nil && frame.Params != nil:
			again = protocol.AppendRequestID(nil, frame.ID, frame.Method, frame.Params)
		default:
			return
		}
		second, err := protocol.ParseFrame(bytes.TrimSuffix(again, []byte("\n")))
		if err != nil || second.Method != frame.Method || !bytes.Equal(second.Result, frame.Result) || !bytes.Equal(second.Params, frame.Params) {
			t.Fatalf("%q came back as %q: %v", line, again, err)
		}
		for m := protocol.ScanMembers(frame.Result); m.Next(); {
			if !m.Value.IsValid(jsontext.AllowDuplicateNames(true)) {
				t.Fatalf("member %q of %q is not JSON", m.Value, frame.Result)
			}
		}
	})
}

func BenchmarkParseFrame(b *testing.B) {
	line := []byte(`{"jsonrpc":"2.0","id":12345,"result":{"status":"succeeded","data":` + payload() + `}}`)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := protocol.ParseFrame(line); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseResult(b *testing.B) {
	raw := []byte(`{"status":"succeeded","data":` + payload() + `}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := protocol.ParseResult(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// payload is 1 KB of 20 properties.
func payload() string {
	var b strings.Builder
	for i := range 20 {
		b.WriteString(`,"property_` + string(rune('a'+i)) + `":"` + strings.Repeat("v", 34) + `"`)
	}
	return "{" + b.String()[1:] + "}"
}
