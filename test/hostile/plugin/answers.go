package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// Answers that are large: the parameters are the method, how many are asked for at
// once, the bytes of each, and where a server is that has them.
func init() {
	add(map[string]behaviour{
		// It reads what it is given, and one of the answers at least has to be what it asked for.
		"asks for much": func(p *peer) {
			p.begin()
			p.provide()
			p.rest(fmt.Sprint(p.askAtOnce(0)))
		},
		// It asks, and reads nothing for a while.
		"asks for much and rests": func(p *peer) {
			p.begin()
			p.provide()
			p.rest(fmt.Sprint(p.askAtOnce(4 * time.Second)))
		},
		// It asks, and never reads again.
		"asks for much and is gone": func(p *peer) {
			p.begin()
			p.provide()
			p.send()
			forever()
		},
	})
}

// provided are the requests after which a service has something large to give.
var provided = map[string]string{
	"cache.get":        `cache.set {"key":"k","value":%s}`,
	"storage.get":      `storage.put {"key":"k","value":%s}`,
	"cursor.get":       `cursor.set {"kb_id":"k","value":%s}`,
	"kb.get_document":  `kb.ingest_text {"kb_id":"large","source_id":"s","title":"t","content":%s}`,
	"kb.search_chunks": `kb.ingest_text {"kb_id":"large","source_id":"s","title":"t","content":%s}`,
}

// wanted are the arguments by which it is asked for.
var wanted = map[string]string{
	"cache.get": `{"key":"k"}`, "storage.get": `{"key":"k"}`, "cursor.get": `{"kb_id":"k"}`,
	"kb.get_document": `{"kb_id":"large","document_id":"s"}`, "kb.search_chunks": `{"kb_ids":["large"],"query":"words","limit":100}`,
	"query.list": `{"kb_id":"large","limit":200}`,
}

// provide has the service keep what it is asked for later.
func (p *peer) provide() {
	method, args, _ := strings.Cut(provided[p.arg(0)], " ")
	if p.arg(0) == "query.list" { // many documents, of which each says much about itself
		for n := range 100 {
			p.ask("kb.ingest_text", fmt.Sprintf(`{"kb_id":"large","source_id":"s%d","title":"t","content":"c","attributes":{"a":"%s"}}`, n, strings.Repeat("a", p.num(2))))
		}
		return
	}
	if method == "" {
		return
	}
	value := numbers(p.num(2))
	if strings.HasPrefix(method, "kb.") {
		value = `"` + strings.Repeat("words and words ", p.num(2)/16) + `"`
	}
	p.ask(method, fmt.Sprintf(args, value))
}

// numbers is an array of so many bytes.
func numbers(n int) string { return "[" + strings.Repeat("1,", n/2) + "1]" }

// send asks for all of it at once.
func (p *peer) send() {
	args := wanted[p.arg(0)]
	if p.arg(0) == "http.fetch" {
		args = fmt.Sprintf(`{"url":"http://127.0.0.1:%s/%s/%d"}`, p.arg(3), p.arg(4), p.num(2))
	}
	for n := range p.num(1) {
		write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"m%d","method":%q,"params":{"call":%q,"args":%s}}`+"\n", n, p.arg(0), p.call.Params.Call, args))
	}
}

// askAtOnce sends the requests, rests, reads what comes, and returns how many were
// answered with what was asked for.
func (p *peer) askAtOnce(pause time.Duration) (good int) {
	p.send()
	time.Sleep(pause)
	codes := map[string]int{}
	for range p.num(1) {
		line, err := p.in.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		if len(line) > min(p.num(2)/2, 10_000) {
			good++
			continue
		}
		var m message
		_ = json.Unmarshal(line, &m)
		if m.Error != nil {
			codes[m.Error.Data.Code]++
		}
	}
	if good == 0 {
		fmt.Fprintf(os.Stderr, "none of it came: %v\n", codes)
		os.Exit(96)
	}
	return good
}
