package main

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// The bounds of what is kept of names.
const (
	maxNames      = 20_000 // different ones of a kind
	maxName       = 255
	maxQuestions  = 16 // of one DNS message
	maxQueryTypes = 8  // of one name
)

// A name is one that packets carry in clear text.
type name struct {
	text  string
	count int64
	first int64 // the number of the first packet that has it
	types []string
}

// names counts names of one kind, up to a limit.
type names struct {
	index map[string]*name
	other int64 // names beyond the limit
}

func newNames() *names { return &names{index: map[string]*name{}} }

func (t *names) add(text string, number int64, kind string) {
	text = strings.ToLower(cut(strings.ToValidUTF8(text, "?"), maxName))
	one := t.index[text]
	if one == nil {
		if len(t.index) == maxNames {
			t.other++
			return
		}
		one = &name{text: text, first: number}
		t.index[text] = one
	}
	one.count++
	if kind != "" && len(one.types) < maxQueryTypes && !slices.Contains(one.types, kind) {
		one.types = append(one.types, kind)
	}
}

// top returns the names that occur most.
func (t *names) top(n int) []nameReport {
	all := make([]*name, 0, len(t.index))
	for _, one := range t.index {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *name) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.first, b.first), cmp.Compare(a.text, b.text))
	})
	reports := []nameReport{}
	for _, one := range all[:min(n, len(all))] {
		reports = append(reports, nameReport{Name: one.text, Count: one.count, FirstPacket: one.first, Types: one.types})
	}
	return reports
}

// A listener reads what applications say in clear text, as far as it stands
// in a single packet.
type listener struct {
	dns     layers.DNS
	queries *names
	hosts   *names
	servers *names
}

func newListener() *listener {
	return &listener{queries: newNames(), hosts: newNames(), servers: newNames()}
}

// hear notes the names in a packet and adds the protocol to its path.
func (l *listener) hear(p *packet, number int64) {
	if len(p.payload) == 0 || p.later {
		return
	}
	defer func() { _ = recover() }() // the library met what it did not expect
	switch {
	case p.proto == 17 && (isDNS(p.src) || isDNS(p.dst)):
		l.question(p, p.payload, number)
	case p.proto == 6 && (p.src == 53 || p.dst == 53):
		if len(p.payload) > 2 {
			l.question(p, p.payload[2:], number)
		}
	case p.proto == 6 && isTLS(p.payload):
		p.path = append(p.path, "tls")
		l.hello(p.payload, number)
	case p.proto == 6 && isHTTP(p.payload):
		p.path = append(p.path, "http")
		if host, there := hostOf(p.payload); there {
			l.hosts.add(host, number, "")
		}
	}
}

func isDNS(port uint16) bool { return port == 53 || port == 5353 || port == 5355 }

// question notes what a DNS message asks; what answers repeat is not counted.
func (l *listener) question(p *packet, data []byte, number int64) {
	l.dns.Questions = l.dns.Questions[:0]
	err := l.dns.DecodeFromBytes(data, gopacket.NilDecodeFeedback)
	if err != nil && len(l.dns.Questions) == 0 {
		return
	}
	p.path = append(p.path, "dns")
	if l.dns.QR {
		return
	}
	for _, q := range l.dns.Questions[:min(maxQuestions, len(l.dns.Questions))] {
		text := string(q.Name)
		if text == "" {
			text = "."
		}
		l.queries.add(text, number, q.Type.String())
	}
}

// isTLS reports whether data begins as a record of TLS does.
func isTLS(data []byte) bool {
	return len(data) >= 5 && data[0] >= 20 && data[0] <= 24 && data[1] == 3 && data[2] <= 4 && int(data[3])<<8|int(data[4]) <= 16384+2048
}

// hello notes the server name in the ClientHello that data begins with.
func (l *listener) hello(data []byte, number int64) {
	if data[0] != 22 || len(data) < 6 || data[5] != layers.TLSHandshakeClientHello {
		return
	}
	var record layers.TLS
	_ = record.DecodeFromBytes(data, gopacket.NilDecodeFeedback) // what was read before a mistake counts
	for _, h := range record.Handshake {
		if sni := h.ClientHello.SNI; len(sni) > 0 {
			l.servers.add(string(sni), number, "")
		}
	}
}

// methods are how requests of HTTP begin.
var methods = [][]byte{[]byte("GET "), []byte("POST "), []byte("HEAD "), []byte("PUT "), []byte("DELETE "), []byte("OPTIONS "), []byte("PATCH "), []byte("CONNECT "), []byte("TRACE "), []byte("PROPFIND ")}

func isHTTP(data []byte) bool {
	return bytes.HasPrefix(data, []byte("HTTP/1.")) || slices.ContainsFunc(methods, func(m []byte) bool { return bytes.HasPrefix(data, m) })
}

// hostOf returns the Host header of a request.
func hostOf(data []byte) (string, bool) {
	if bytes.HasPrefix(data, []byte("HTTP/1.")) {
		return "", false
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			return "", false // the end of the headers
		}
		key, value, found := bytes.Cut(line, []byte(":"))
		if found && bytes.EqualFold(key, []byte("Host")) {
			value = bytes.TrimSpace(value)
			return string(value), len(value) > 0
		}
	}
	return "", false
}

// cut shortens a text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
