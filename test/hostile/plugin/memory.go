package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// What takes many times its bytes once the host decodes it, and services that are
// asked for more than the host has room for.
func init() {
	add(map[string]behaviour{
		"members": func(p *peer) { p.begin(); p.rest(members(p.num(0))) },
		"rows":    func(p *peer) { p.begin(); p.rest("[" + strings.Repeat(`{"a":1},`, p.num(0)) + "1]") },
		"nests":   func(p *peer) { p.begin(); p.rest("[" + strings.Repeat("[[[[[[1]]]]]],", p.num(0)) + "1]") },
		"texts":   func(p *peer) { p.begin(); p.rest("[" + strings.Repeat(`"",`, p.num(0)) + "1]") },

		// In each the parameters are the method, bytes of each request, and their number.
		"floods with text":    func(p *peer) { p.flood(func(n int) string { return `"` + strings.Repeat("v", n) + `"` }) },
		"floods with members": func(p *peer) { p.flood(func(n int) string { return members(n / 12) }) },
		"floods with arrays":  func(p *peer) { p.flood(func(n int) string { return "[" + strings.Repeat("[1],", n/4) + "1]" }) },
		"reports much": func(p *peer) {
			p.begin()
			value := members(p.num(1) / 12)
			for n := range p.num(2) {
				switch p.arg(0) {
				case "log":
					write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"log","params":{"call":%q,"level":"info","message":"%d","fields":%s}}`+"\n", p.call.Params.Call, n, value))
				default:
					write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"emit","params":{"call":%q,"kind":%q,"data":%s}}`+"\n", p.call.Params.Call, p.arg(0), value))
				}
			}
			p.rest("1")
		},
	})
}

// members is an object of so many.
func members(n int) string {
	var b strings.Builder
	b.WriteString("{")
	for i := range n {
		fmt.Fprintf(&b, `"k%06d":1,`, i)
	}
	return strings.TrimSuffix(b.String(), ",") + "}"
}

// requests has the arguments of each method, with a value for what it keeps.
var requests = map[string]string{
	"cache.set": `{"key":"%d","value":%s}`, "cache.get": `{"key":"%d%.0s"}`,
	"storage.put": `{"namespace":"n","key":"%d","value":%s}`, "storage.get": `{"namespace":"%d","key":%s}`,
	"cursor.set": `{"kb_id":"k%d","value":%s}`, "cursor.get": `{"n":%d,"kb_id":%s}`,
	"kb.ingest_text": `{"kb_id":"k","source_id":"%d","title":"t","content":%s}`, "kb.upsert_knowledge_object": `{"kb_id":"k","ko":{"external_id":"%d","content":%s}}`,
	"kb.search_chunks": `{"kb_ids":["%d"],"query":%s}`, "kb.find_documents": `{"kb_id":"%d","after":%s}`,
	"secrets.set": `{"name":"s%d","value":%s}`, "audit.log": `{"event":"e%d","details":%s}`, "scheduler.enqueue": `{"operation":"run","params":{"n":%d,"v":%s}}`,
	"llm.query_text": `{"model":"m%d","prompt":%s}`, "http.fetch": `{"url":"https://a%d.example.com/","json":%s}`, "artifacts.register": `{"name":"%d","content":%s}`,
	"session.open": `{"n":%d,"v":%s}`, "operations.call": `{"operation":"good/run","input":{"n":%d,"v":%s}}`, "reference_data.get": `{"name":"%d","v":%s}`,
	"rate_limit.take": `{"name":"%d","v":%s}`, "query.list": `{"n":%d,"v":%s}`, "ocr.extract_text": `{"n":%d,"file":%s}`,
	"identity.lookup": `{"n":%d,"value":%s}`, "auth.resolve": `{"provider":"p%d","subject":%s}`,
}

// flood asks, with 48 requests open at a time, whatever the host says.
func (p *peer) flood(value func(n int) string) {
	p.begin()
	text, open := value(p.num(1)), make(chan struct{}, 48)
	done, ran := make(chan struct{}), 0
	go func() {
		defer close(done)
		for range p.num(2) {
			if p.hear().Error == nil {
				ran++
			}
			<-open
		}
	}()
	name, _ := json.Marshal(p.arg(0))
	for n := range p.num(2) {
		open <- struct{}{}
		args := fmt.Sprintf(requests[p.arg(0)], n, text)
		if p.arg(0) == "operations.call" { // it has its members beside the token
			args = args[1:]
		} else {
			args = `"args":` + args + "}"
		}
		write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"f","method":%s,"params":{"call":%q,%s}`+"\n", name, p.call.Params.Call, args))
	}
	<-done
	if p.arg(0) == "operations.call" && ran == 0 {
		os.Exit(3) // no call reached the other plugin, and nothing was tried
	}
	p.rest("1")
}
