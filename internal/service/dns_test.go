package service

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

// A nameserver answers on loopback, over UDP and TCP, as a zone says.
type nameserver struct {
	resolver *net.Resolver

	mu    sync.Mutex // guards asked
	asked []string   // "A name" and "AAAA name", in order
}

// A reply is the answer to one question. The n-th question of one type and name
// gets the n-th reply, and the last one from then on.
type reply struct {
	a, aaaa  []string
	cname    string // before the addresses: what the name is another word for
	nx       bool   // there is no such name
	truncate bool   // over UDP: ask again over TCP
}

func newNameserver(t *testing.T, zone map[string][]reply) *nameserver {
	t.Helper()
	n := &nameserver{}
	var udp net.PacketConn
	var tcp net.Listener
	for range 20 { // the port that is free for the one may not be free for the other
		var err error
		if udp, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if tcp, err = net.Listen("tcp", udp.LocalAddr().String()); err == nil {
			break
		}
		_ = udp.Close()
	}
	if tcp == nil {
		t.Fatal("no port is free for both")
	}
	var all sync.WaitGroup
	all.Go(func() {
		buf := make([]byte, 4096)
		for {
			size, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(n.answer(zone, buf[:size], true), from)
		}
	})
	all.Go(func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(testwait.Limit))
				var size uint16
				for binary.Read(conn, binary.BigEndian, &size) == nil {
					question := make([]byte, size)
					if _, err := io.ReadFull(conn, question); err != nil {
						return
					}
					answer := n.answer(zone, question, false)
					_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
				}
			})
		}
	})
	t.Cleanup(func() { udp.Close(); tcp.Close(); all.Wait() })
	n.resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, udp.LocalAddr().String())
	}}
	return n
}

func (n *nameserver) answer(zone map[string][]reply, question []byte, datagram bool) []byte {
	var p dnsmessage.Parser
	header, err := p.Start(question)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	name := strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")
	kind := strings.TrimPrefix(q.Type.String(), "Type")
	n.mu.Lock()
	if datagram || !slices.Contains(n.asked, kind+" "+name) { // one over TCP repeats the one before
		n.asked = append(n.asked, kind+" "+name)
	}
	times := 0
	for _, before := range n.asked {
		if before == kind+" "+name {
			times++
		}
	}
	n.mu.Unlock()
	head := dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true, RecursionDesired: true, RecursionAvailable: true}
	replies := zone[name]
	if len(replies) == 0 {
		replies = []reply{{nx: true}}
	}
	r := replies[min(times, len(replies))-1]
	if r.nx {
		head.RCode = dnsmessage.RCodeNameError
	}
	head.Truncated = r.truncate && datagram
	b := dnsmessage.NewBuilder(nil, head)
	_ = b.StartQuestions()
	_ = b.Question(q)
	_ = b.StartAnswers()
	if !head.Truncated && !r.nx {
		owner := q.Name
		if r.cname != "" {
			target := dnsmessage.MustNewName(r.cname + ".")
			_ = b.CNAMEResource(dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET}, dnsmessage.CNAMEResource{CNAME: target})
			owner = target
		}
		resource := dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET} // its time to live is nothing
		if q.Type == dnsmessage.TypeA {
			for _, text := range r.a {
				_ = b.AResource(resource, dnsmessage.AResource{A: netip.MustParseAddr(text).As4()})
			}
		}
		if q.Type == dnsmessage.TypeAAAA {
			for _, text := range r.aaaa {
				_ = b.AAAAResource(resource, dnsmessage.AAAAResource{AAAA: netip.MustParseAddr(text).As16()})
			}
		}
	}
	message, err := b.Finish()
	if err != nil {
		return nil
	}
	if len(message) > 1232 && datagram { // what does not fit is asked for again over TCP
		head.Truncated = true
		b := dnsmessage.NewBuilder(nil, head)
		_ = b.StartQuestions()
		_ = b.Question(q)
		if message, err = b.Finish(); err != nil {
			return nil
		}
	}
	return message
}

// count returns how often a name was asked for.
func (n *nameserver) count(kind, name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	times := 0
	for _, asked := range n.asked {
		if asked == kind+" "+name {
			times++
		}
	}
	return times
}

const somewhere = "93.184.215.14" // a public address that a test must never reach

// TestNameServersThatLie has the system's own resolver ask a name server, and
// counts who comes to listeners on every address of this machine: loopback, its
// private addresses, and link-local ones where it has them.
func TestNameServersThatLie(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	var own4, own6 []string // of this machine, without loopback
	interfaces, _ := net.InterfaceAddrs()
	for _, i := range interfaces {
		if prefix, err := netip.ParsePrefix(i.String()); err == nil && !prefix.Addr().IsLoopback() {
			if prefix.Addr().Is4() {
				own4 = append(own4, prefix.Addr().String())
			} else {
				own6 = append(own6, prefix.Addr().String())
			}
		}
	}
	many := make([]string, 60)
	for i := range many {
		many[i] = fmt.Sprintf("93.184.215.%d", i+1)
	}
	const host = "lies.example.org"
	public := reply{a: []string{somewhere}}
	for name, c := range map[string]struct {
		zone    map[string][]reply
		fetches int // of which the last is judged
		code    plugin.Code
		dialled bool // an address of the Internet, and nothing else
	}{
		"rebinding: public, then this machine":     {map[string][]reply{host: {public, {a: []string{"127.0.0.1"}}}}, 2, plugin.CodeEgressDenied, false},
		"rebinding: public, then a private one":    {map[string][]reply{host: {public, {a: append([]string{"10.0.0.1"}, own4...)}}}, 2, plugin.CodeEgressDenied, false},
		"a flip between the check and the connect": {map[string][]reply{host: {public, {a: []string{"127.0.0.1"}}}}, 1, plugin.CodeUnavailable, true},
		"public and private":                       {map[string][]reply{host: {{a: []string{somewhere, "127.0.0.1"}}}}, 1, plugin.CodeEgressDenied, false},
		"public and private in the other family":   {map[string][]reply{host: {{a: []string{somewhere}, aaaa: []string{"::1"}}}}, 1, plugin.CodeEgressDenied, false},
		"an alias that ends in private":            {map[string][]reply{host: {{cname: "inner.example.net", a: []string{"192.168.0.1"}}}}, 1, plugin.CodeEgressDenied, false},
		"an alias that ends in this machine":       {map[string][]reply{host: {{cname: "localhost", a: []string{"127.0.0.1"}, aaaa: []string{"::1"}}}}, 1, plugin.CodeEgressDenied, false},
		"the metadata of a cloud":                  {map[string][]reply{host: {{a: []string{"169.254.169.254"}}}}, 1, plugin.CodeEgressDenied, false},
		"AAAA with IPv4 in it":                     {map[string][]reply{host: {{aaaa: []string{"::ffff:127.0.0.1"}}}}, 1, plugin.CodeEgressDenied, false},
		"AAAA through NAT64":                       {map[string][]reply{host: {{aaaa: []string{"64:ff9b::7f00:1"}}}}, 1, plugin.CodeEgressDenied, false},
		"AAAA through 6to4":                        {map[string][]reply{host: {{aaaa: []string{"2002:7f00:1::1"}}}}, 1, plugin.CodeEgressDenied, false},
		"AAAA alone, of a private network":         {map[string][]reply{host: {{aaaa: []string{"fd00::1"}}}}, 1, plugin.CodeEgressDenied, false},
		"AAAA alone, link-local":                   {map[string][]reply{host: {{aaaa: append([]string{"fe80::1"}, own6...)}}}, 1, plugin.CodeEgressDenied, false},
		"very many answers":                        {map[string][]reply{host: {{a: many}}}, 1, plugin.CodeUnavailable, true},
		"very many answers, the last a trap":       {map[string][]reply{host: {{a: append(slices.Clone(many), "127.0.0.1")}}}, 1, plugin.CodeEgressDenied, false},
		"cut, and a trap over TCP":                 {map[string][]reply{host: {{truncate: true, a: []string{"127.0.0.1"}}}}, 1, plugin.CodeEgressDenied, false},
		"no such name, then this machine":          {map[string][]reply{host: {{nx: true}, {a: []string{"127.0.0.1"}}}}, 2, plugin.CodeEgressDenied, false},
		"no such name":                             {map[string][]reply{}, 1, plugin.CodeUnavailable, false},
		"no address":                               {map[string][]reply{host: {{}}}, 1, plugin.CodeUnavailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newNameserver(t, c.zone)
			s := newScene(t).real()
			s.broker.web.resolver = server.resolver
			s.target.Manifest.HTTP = plugin.HTTP{Hosts: []string{host + ":" + canary.port}}
			var dialled []netip.AddrPort
			s.broker.web.connect = func(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
				dialled = append(dialled, to)
				if to.Addr().String() == somewhere || strings.HasPrefix(to.Addr().String(), "93.184.215.") {
					if err := check(to); err != nil {
						return nil, err
					}
					return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("connection refused")}
				}
				return egress.Connect(ctx, to, check)
			}
			var err error
			for range c.fetches {
				dialled = nil
				_, err = s.fetch("http://"+host+":"+canary.port+"/", "timeout_seconds", 10, "method", "POST")
			}
			if plugin.CodeOf(err) != c.code {
				t.Errorf("got %v, want %s", err, c.code)
			}
			if (len(dialled) > 0) != c.dialled || len(dialled) > 8 {
				t.Errorf("dialled %v", dialled)
			}
			if times := server.count("A", host); times != c.fetches && len(c.zone) > 0 {
				t.Errorf("the name was asked for %d times in %d requests", times, c.fetches)
			}
			if err != nil && strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("the plugin is told where the name leads: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		if n := canary.count(); n != 0 {
			t.Errorf("%d connections came", n)
		}
	})
}
