package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// A frame is a line that is wrong in one way. In it, ID stands for the id of
// the request and DATA for an honest result.
type frame func(n int) string

const (
	honest = `{"jsonrpc":"2.0","id":ID,"result":DATA}`
	data   = `{"status":"succeeded","data":1}`
)

// holding is an honest answer with this as its data.
func holding(value string) string {
	return `{"jsonrpc":"2.0","id":ID,"result":{"status":"succeeded","data":` + value + `}}`
}

// choose makes a frame of a list, of which the parameter picks one.
func choose(texts ...string) frame { return func(n int) string { return texts[n%len(texts)] } }

// swap makes frames of an honest answer in which one part is replaced.
func swap(old string, with ...string) frame {
	return func(n int) string { return strings.Replace(honest, old, with[n%len(with)], 1) }
}

var frames = map[string]frame{
	"text":           func(n int) string { return strings.Repeat("x", n) },
	"blank":          choose("", " ", "\t", "   \t  ", "\v", "\u00a0"),
	"bare value":     choose("null", "true", "false", "0", "-1", `""`, `"text"`, "1e5"),
	"array":          choose("[]", "[1]", "["+honest+"]", "["+honest+","+honest+"]", "[[[]]]"),
	"byte order":     choose("\xef\xbb\xbf"+honest, "\xff\xfe"+honest, "\xfe\xff"+honest, "\xff\xfe\x00\x00"+honest, "\x00\x00\xfe\xff"+honest),
	"nul":            choose("\x00"+honest, honest+"\x00", strings.Replace(honest, "jsonrpc", "json\x00rpc", 1), holding("\"a\x00b\"")),
	"control":        choose(holding("\"\x01\""), holding("\"\x1b[2J\""), "\x1b[2J"+honest, holding("\"a\tb\""), holding("\"\x7f\"\x08")),
	"bad utf-8":      func(n int) string { return holding(`"` + badUTF8[n%len(badUTF8)] + `"`) },
	"bad utf-8 name": func(n int) string { return holding(`{"` + badUTF8[n%len(badUTF8)] + `":1}`) },
	"surrogate":      choose(holding(`"\ud800"`), holding(`"\udc00"`), holding(`"\udc00\ud800"`), holding(`"\ud800\ud800"`), holding(`"\ud800x"`), holding(`{"\ud800":1}`)),
	"escape":         choose(holding(`"\x41"`), holding(`"\u12"`), holding(`"\u{41}"`), holding(`"\'"`), holding(`"\`)),
	"twice": choose(holding(`{"a":1,"a":2}`), holding(`{"a":1,"\u0061":2}`), holding(`{"b":[{"a":1,"a":1}]}`),
		strings.Replace(honest, `"id":ID`, `"id":ID,"id":ID`, 1), strings.Replace(honest, `"id"`, `"jsonrpc":"2.0","id"`, 1),
		strings.Replace(honest, `"result"`, `"result":1,"result"`, 1), holding(`{"":1,"":2}`)),
	"deep array":     func(n int) string { return holding(strings.Repeat("[", n) + strings.Repeat("]", n)) },
	"deep object":    func(n int) string { return holding(strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)) },
	"never closed":   func(n int) string { return holding(strings.Repeat("[", n)) },
	"only closing":   func(n int) string { return strings.Repeat("]", n) },
	"number":         choose(holding("01"), holding("+1"), holding("1."), holding(".5"), holding("1e"), holding("0x10"), holding("NaN"), holding("-Infinity"), holding("1_000"), holding("--1")),
	"id":             func(n int) string { return strings.Replace(honest, "ID", ids[n%len(ids)], 1) },
	"no id":          choose(`{"jsonrpc":"2.0","result":`+data+`}`, `{"result":1}`, `{"jsonrpc":"2.0"}`, `{}`),
	"version":        swap(`"2.0"`, `"1.0"`, `2.0`, `"2"`, `null`, `["2.0"]`, `""`),
	"no version":     swap(`"jsonrpc":"2.0",`, "", `"Jsonrpc":"2.0",`, `"json-rpc":"2.0",`),
	"member":         swap(`"id"`, `"x":1,"id"`, `"":1,"id"`, `"ID2":1,"id"`, `"jsonrpc ":"2.0","id"`, `"__proto__":{},"id"`),
	"case":           swap(`"result"`, `"Result"`, `"RESULT"`, `"re\u0073ult ":1,"Result"`),
	"both":           swap(`"result"`, `"error":{"code":1,"message":"m"},"result"`, `"params":{},"result"`, `"method":"x","result"`),
	"neither":        choose(`{"jsonrpc":"2.0","id":ID}`, `{"jsonrpc":"2.0","id":ID,"params":{}}`),
	"error":          choose(`{"jsonrpc":"2.0","id":ID,"error":{}}`, `{"jsonrpc":"2.0","id":ID,"error":1}`, `{"jsonrpc":"2.0","id":ID,"error":null}`, `{"jsonrpc":"2.0","id":ID,"error":{"code":"1","message":"m"}}`, `{"jsonrpc":"2.0","id":ID,"error":{"code":1}}`, `{"jsonrpc":"2.0","id":ID,"error":{"code":1.5,"message":"m"}}`, `{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":7}}`, `{"jsonrpc":"2.0","id":ID,"error":[]}`),
	"cut":            func(n int) string { return honest[:min(n, len(honest)-1)] },
	"cut at the end": func(n int) string { return holding(`"` + strings.Repeat("y", n)) },
	"more":           choose(honest+"x", honest+"{}", honest+",", honest+honest, honest+"]", honest+" 1", "x"+honest, ","+honest),
	"almost json":    choose(holding("[1,]"), holding(`{"a":1,}`), holding("// no\n"), holding("/* no */1"), holding("'a'"), holding("{a:1}"), holding("undefined"), holding("True"), holding("None"), holding("1,"), holding(`"a" "b"`)),
	"other format":   choose("HTTP/1.1 200 OK\r", "<html></html>", "key: value", "Content-Length: 2\r", "<?xml version='1.0'?>", "{'a': 1}", "eyJhIjoxfQ==", "#!/bin/sh", "\x7fELF\x02\x01\x01", "%PDF-1.7", "PK\x03\x04", "data: {}"),
	"compressed":     func(n int) string { return zip(n) },
	"noise":          noise,
	"over the limit": func(n int) string { return holding(`"` + strings.Repeat("a", 4<<20+n) + `"`) },
	"emit":           choose(`{"jsonrpc":"2.0","method":"emit"}`, `{"jsonrpc":"2.0","method":"emit","params":7}`, `{"jsonrpc":"2.0","method":"emit","params":{"call":1,"kind":"progress"}}`, `{"jsonrpc":"2.0","method":"emit","params":[]}`, `{"jsonrpc":"2.0","method":"emit","params":{"seq":"1"}}`),
	"log":            choose(`{"jsonrpc":"2.0","method":"log","params":7}`, `{"jsonrpc":"2.0","method":"log","params":{"message":7}}`, `{"jsonrpc":"2.0","method":"log","params":[]}`, `{"jsonrpc":"2.0","method":"log"}`, `{"jsonrpc":"2.0","method":"log","params":{"level":1}}`),
}

var badUTF8 = []string{
	"\xff", "\xfe", "\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xf0\x9f\x98", "\xc3", "a\xffb",
}

var ids = []string{
	"4711", "-1", "0", "null", `"ID"`, "1.0", "1e0", "[]", "{}", "true", "9223372036854775807", "9223372036854775808", "99999999999999999999999999", "1e400", `""`, "ID0", strings.Repeat("9", 10_000),
}

// zip returns n zero bytes, compressed, without newlines.
func zip(n int) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(make([]byte, n))
	_ = w.Close()
	return strings.ReplaceAll(b.String(), "\n", "")
}

// noise returns the same 1000 random bytes for the same n.
func noise(n int) string {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	b := []byte{0xfe}
	for range 1000 {
		b = append(b, byte(11+r.IntN(245)))
	}
	return string(b)
}

// A place is when a frame is said.
var places = map[string]func(p *peer, line string){
	"opening":   func(p *peer, line string) { write([]byte(p.fill(line, p.opening))); p.serve() },
	"answer":    func(p *peer, line string) { p.begin(); p.say(line) },
	"no end":    func(p *peer, line string) { p.begin(); p.say(strings.TrimSuffix(line, "\n")); os.Exit(0) },
	"later":     func(p *peer, line string) { p.begin(); time.Sleep(150 * time.Millisecond); p.say(line) },
	"progress":  func(p *peer, line string) { p.begin(); p.progress(3); p.say(line) },
	"events":    func(p *peer, line string) { p.begin(); p.progress(2000); p.say(line) },
	"service":   func(p *peer, line string) { p.begin(); p.ask("cache.get", `{"key":"a"}`); p.say(line) },
	"unasked":   func(p *peer, line string) { p.open(); p.say(line) },
	"in pieces": func(p *peer, line string) { p.begin(); p.pieces(line) },
	"early":     func(p *peer, line string) { p.begin(); p.say(line); p.answer("1") },
}

func init() {
	for kind, f := range frames {
		add(map[string]behaviour{"frame/" + kind: func(p *peer) {
			line := strings.ReplaceAll(f(p.num(0)), "DATA", data) + "\n"
			at := places[p.arg(1)]
			if at == nil {
				fmt.Fprintf(os.Stderr, "there is no behaviour %q at %q\n", kind, p.arg(1))
				os.Exit(99)
			}
			at(p, line)
			forever()
		}})
	}
}

// say writes a line as the answer to the call.
func (p *peer) say(line string) { write([]byte(p.fill(line, p.call.ID))) }

// pieces writes a line as the answer to the call, seven bytes at a time.
func (p *peer) pieces(line string) {
	for text := p.fill(line, p.call.ID); text != ""; {
		n := max(min(7, len(text)), len(text)/200)
		write([]byte(text[:n]))
		text = text[n:]
		time.Sleep(time.Millisecond)
	}
}
