package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestTsharkCountsTheSame reads generated captures with tshark too and
// compares packets, bytes, times, protocols and conversations. MORTISE_PCAP_MB
// sets the size of the captures; by default it is one that takes seconds.
func TestTsharkCountsTheSame(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("not run: tshark is not installed (apt-get install tshark)")
	}
	size := int64(1)
	if text := os.Getenv("MORTISE_PCAP_MB"); text != "" {
		if size, err = strconv.ParseInt(text, 10, 32); err != nil || size < 1 {
			t.Fatalf("MORTISE_PCAP_MB is %q, no number of megabytes", text)
		}
	}
	program := build(t)
	for i, s := range shapes {
		if s.flows = max(300, int(size)*1000); size > 10 && i != 0 && i != 4 && i != 6 {
			continue // one with whole packets, one with a short snaplen, one of pcapng
		}
		t.Run(s.name, func(t *testing.T) {
			path, _ := write(t, s, uint64(100+i), size<<20)
			start := time.Now()
			peak := measured(t, program, path)
			took := time.Since(start)
			withinMemory(t, peak)
			r, flows := summarised(t, path, 1000)
			start = time.Now()
			seen := watched(t, tshark, path)
			t.Logf("%d MiB, %d packets, %d conversations: pcapsum %v and %d MiB, tshark %v", size, r.Packets, len(flows),
				took.Round(time.Millisecond), peak>>20, time.Since(start).Round(time.Millisecond))
			if r.Packets != seen.packets || r.Bytes != seen.bytes || r.BytesCaptured != seen.captured {
				t.Errorf("%d packets, %d bytes, %d captured; tshark has %d, %d, %d", r.Packets, r.Bytes, r.BytesCaptured, seen.packets, seen.bytes, seen.captured)
			}
			if *r.Time.First != stamp(seen.first) || *r.Time.Last != stamp(seen.last) {
				t.Errorf("%s to %s; tshark has %s to %s", *r.Time.First, *r.Time.Last, stamp(seen.first), stamp(seen.last))
			}
			protocols := map[string]int64{}
			for _, p := range r.Protocols {
				protocols[p.Path] = p.Packets
			}
			if s.snaplen > 0 { // tshark goes by ports where there is nothing to read
				protocols, seen.protocols = lower(protocols), lower(seen.protocols)
			}
			if !reflect.DeepEqual(protocols, seen.protocols) {
				t.Errorf("protocols differ: %s", strings.Join(difference(protocols, seen.protocols), "\n"))
			}
			if s.snaplen > 0 && s.snaplen < 90 {
				return // both see parts of addresses and ports, each its own
			}
			got := map[string]int64{}
			for _, f := range flows {
				got[f.id()] = f.Packets
			}
			if !reflect.DeepEqual(got, seen.flows) {
				t.Errorf("%d conversations differ from tshark's %d:\n%s", len(got), len(seen.flows), strings.Join(difference(got, seen.flows), "\n"))
			}
			bytes := map[string]int64{}
			for _, f := range flows {
				bytes[f.id()] = f.Bytes
			}
			if !reflect.DeepEqual(bytes, seen.flowBytes) {
				t.Errorf("bytes of conversations differ:\n%s", strings.Join(difference(bytes, seen.flowBytes), "\n"))
			}
		})
	}
}

// lower leaves out what stands in parts of packets that may not be captured.
func lower(protocols map[string]int64) map[string]int64 {
	kept := map[string]int64{}
	for path, n := range protocols {
		switch path[strings.LastIndexByte(path, '/')+1:] {
		case "dns", "http", "tls", "fragment":
		default:
			kept[path] = n
		}
	}
	return kept
}

// build builds the program.
func build(t testing.TB) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "pcapsum")
	cmd := exec.Command("go", "build", "-trimpath", "-o", out, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if words, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, words)
	}
	return out
}

// measured runs the program with a table, as the plugin does, and returns the
// most memory that it was seen to hold. What the kernel says of a child that
// has ended counts what its parent held before it became the program.
func measured(t testing.TB, program, path string) (peak int64) {
	t.Helper()
	cmd := exec.Command(program, "-table", filepath.Join(t.TempDir(), "table"), path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	status := fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			return peak
		case <-time.After(2 * time.Millisecond):
			raw, _ := os.ReadFile(status)
			_, after, _ := strings.Cut(string(raw), "VmHWM:")
			kilobytes, _, _ := strings.Cut(strings.TrimSpace(after), " ")
			n, _ := strconv.ParseInt(kilobytes, 10, 64)
			peak = max(peak, n<<10)
		}
	}
}

// A sight is what tshark says.
type sight struct {
	packets, bytes, captured int64
	first, last              int64
	protocols                map[string]int64
	flows, flowBytes         map[string]int64
}

var fields = []string{"frame.time_epoch", "frame.len", "frame.cap_len", "frame.protocols", "ip.src", "ip.dst", "ip.proto", "ip.frag_offset",
	"ipv6.src", "ipv6.dst", "ipv6.nxt", "ipv6.dstopts.nxt", "ipv6.fraghdr.nxt", "ipv6.fraghdr.offset",
	"tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport", "sctp.srcport", "sctp.dstport"}

func watched(t testing.TB, tshark, path string) *sight {
	t.Helper()
	args := []string{"-n", "-r", path, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,"}
	for _, preference := range []string{"ip.defragment:FALSE", "ipv6.defragment:FALSE", "tcp.desegment_tcp_streams:FALSE", "tcp.analyze_sequence_numbers:FALSE",
		"tls.desegment_ssl_records:FALSE", "http.desegment_headers:FALSE", "http.desegment_body:FALSE"} {
		args = append(args, "-o", preference)
	}
	for _, field := range fields {
		args = append(args, "-e", field)
	}
	cmd := exec.Command(tshark, args...)
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &sight{protocols: map[string]int64{}, flows: map[string]int64{}, flowBytes: map[string]int64{}}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.line(strings.Split(lines.Text(), "\t"))
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("tshark: %v: %s", err, words.String())
	}
	return s
}

// line takes one packet of tshark's.
func (s *sight) line(columns []string) {
	at := map[string][]string{}
	for i, column := range columns {
		if column != "" {
			at[fields[i]] = strings.Split(column, ",")
		}
	}
	number := func(field string, n int) int64 {
		v, _ := strconv.ParseInt(at[field][n], 10, 64)
		return v
	}
	seconds, fraction, _ := strings.Cut(at["frame.time_epoch"][0], ".")
	whole, _ := strconv.ParseInt(seconds, 10, 64)
	parts, _ := strconv.ParseInt(fraction, 10, 64)
	now := whole*1e9 + parts
	if s.packets == 0 {
		s.first = now
	}
	s.first, s.last = min(s.first, now), max(s.last, now)
	s.packets++
	s.bytes += number("frame.len", 0)
	s.captured += number("frame.cap_len", 0)

	later := false
	for _, offset := range append(at["ip.frag_offset"], at["ipv6.fraghdr.offset"]...) {
		later = later || offset != "0"
	}
	path, last := ours(strings.Split(at["frame.protocols"][0], ":"), later)
	guessed := !slices.Contains(append(at["tcp.srcport"], at["tcp.dstport"]...), "443")
	if path[len(path)-1] == "tls" && guessed { // it knows many ports that TLS is used with, and looks no further
		path = path[:len(path)-1]
	}
	for i := range path {
		s.protocols[strings.Join(path[:i+1], "/")]++
	}
	var from, to, proto string
	lastOf := func(field string) string {
		if all := at[field]; len(all) > 0 {
			return all[len(all)-1]
		}
		return ""
	}
	switch last {
	case "ip":
		from, to, proto = lastOf("ip.src"), lastOf("ip.dst"), lastOf("ip.proto")
	case "ipv6":
		from, to, proto = lastOf("ipv6.src"), lastOf("ipv6.dst"), lastOf("ipv6.nxt")
		for _, extension := range []string{"ipv6.dstopts.nxt", "ipv6.fraghdr.nxt"} {
			if next := lastOf(extension); next != "" {
				proto = next
			}
		}
	}
	if from == "" || to == "" {
		return // the addresses were not captured
	}
	n, _ := strconv.Atoi(proto)
	name := nameOf(from, to, protocolName(uint8(n)), 0, 0, false)
	if transport := protocolName(uint8(n)); lastOf(transport+".srcport") != "" && lastOf(transport+".dstport") != "" {
		src, _ := strconv.Atoi(lastOf(transport + ".srcport"))
		dst, _ := strconv.Atoi(lastOf(transport + ".dstport"))
		name = nameOf(from, to, transport, uint16(src), uint16(dst), true)
	}
	s.flows[name]++
	s.flowBytes[name] += number("frame.len", 0)
}

// ours are tshark's protocols by our names, and the last layer of IP in them.
func ours(theirs []string, later bool) (path []string, last string) {
	for _, name := range theirs {
		switch name {
		case "ieee8021ad":
			name = "vlan"
		case "eth", "vlan", "arp", "icmp", "icmpv6", "tcp", "udp", "sctp", "gre", "dns", "http", "tls":
		case "ip", "ipv6":
			last = name
		default: // what is looked at here ends where tshark guesses, and payload is no protocol
			continue
		}
		if name == "eth" && slices.Contains(path, "udp") {
			continue // a guess too
		}
		path = append(path, name)
	}
	if later {
		path = append(path, "fragment")
	}
	return path, last
}

// TestManyConversationsStayInBounds reads a capture in which nearly every
// packet is a conversation of its own, more than are kept apart.
func TestManyConversationsStayInBounds(t *testing.T) {
	size, some := int64(8), false
	if text := os.Getenv("MORTISE_PCAP_MB"); text != "" {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			size, some = n, n >= 100
		}
	}
	path := swarm(t, size<<20)
	program := build(t)
	start := time.Now()
	peak := measured(t, program, path)
	t.Logf("%d MiB, a conversation in each packet: %v, %d MiB", size, time.Since(start).Round(time.Millisecond), peak>>20)
	withinMemory(t, peak)
	r, err := run(options{path: path, limit: 1, flows: maxFlows})
	if err != nil {
		t.Fatal(err)
	}
	if some && (r.Counts.Conversations != maxFlows || r.Counts.Unkept == 0) || r.Counts.IPPackets != int64(r.Counts.Conversations)+r.Counts.Unkept {
		t.Errorf("%d conversations, %d packets beyond them", r.Counts.Conversations, r.Counts.Unkept)
	}
}

// swarm writes a capture of UDP packets without payload, each of other ends.
func swarm(t testing.TB, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := newWriter(file, shapes[0])
	w.header(101)
	p := make([]byte, 48)
	p[0], p[5], p[6], p[7] = 0x60, 8, 17, 64
	p[45] = 8
	for n := uint32(0); w.n < size; n++ {
		copy(p[8:], fmt.Appendf(nil, "%08x", n*2654435761))
		copy(p[24:], fmt.Appendf(nil, "%08x", n*2246822519))
		w.packet(p, 1e18+int64(n)*1000, 0)
	}
	if err := w.w.Flush(); err != nil {
		t.Fatal(err)
	}
	return path
}
