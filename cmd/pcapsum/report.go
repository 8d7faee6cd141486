package main

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// A report is what is written to standard output: the result of the plugin,
// and table, which the plugin makes an artifact of.
type report struct {
	Capture       captureReport    `json:"capture"`
	Truncated     bool             `json:"truncated"`
	TruncatedAt   *int64           `json:"truncated_at"`
	Truncation    *string          `json:"truncation"`
	Packets       int64            `json:"packets"`
	Bytes         int64            `json:"bytes"`
	BytesCaptured int64            `json:"bytes_captured"`
	Time          timeReport       `json:"time"`
	Quality       qualityReport    `json:"quality"`
	Counts        countReport      `json:"counts"`
	Protocols     []protocolReport `json:"protocols"`
	Conversations []flowReport     `json:"conversations"`
	Talkers       []talkerReport   `json:"talkers"`
	DNS           []nameReport     `json:"dns_queries"`
	HTTP          []nameReport     `json:"http_hosts"`
	TLS           []nameReport     `json:"tls_server_names"`
	VLANs         []vlanReport     `json:"vlans"`
	Notes         []string         `json:"notes"`
	Table         *tableReport     `json:"table,omitempty"`
}

type captureReport struct {
	Format     string            `json:"format"`
	ByteOrder  string            `json:"byte_order"`
	Compressed bool              `json:"compressed"`
	Resolution *string           `json:"time_resolution"`
	Snaplen    *uint32           `json:"snaplen"`
	Sections   int               `json:"sections"`
	LinkTypes  []linkReport      `json:"link_types"`
	Interfaces []interfaceReport `json:"interfaces"`
}

type linkReport struct {
	Number  int    `json:"number"`
	Name    string `json:"name"`
	Packets int64  `json:"packets"`
}

type interfaceReport struct {
	Name       string `json:"name"`
	LinkType   int    `json:"link_type"`
	Snaplen    uint32 `json:"snaplen"`
	Resolution string `json:"time_resolution"`
	Packets    int64  `json:"packets"`
	Bytes      int64  `json:"bytes"`
}

type timeReport struct {
	First      *string `json:"first"`
	Last       *string `json:"last"`
	Seconds    float64 `json:"duration_seconds"`
	OutOfOrder int64   `json:"out_of_order"`
	Without    int64   `json:"packets_without"`
}

type qualityReport struct {
	CutBySnaplen int64 `json:"cut_by_snaplen"`
	ShortHeaders int64 `json:"short_headers"`
	Malformed    int64 `json:"malformed"`
	Fragments    int64 `json:"fragments"`
}

type countReport struct {
	Conversations int   `json:"conversations"`
	Unkept        int64 `json:"packets_of_unkept_conversations"`
	Addresses     int   `json:"addresses"`
	IPPackets     int64 `json:"ip_packets"`
	Queries       int   `json:"dns_queries"`
	Hosts         int   `json:"http_hosts"`
	Servers       int   `json:"tls_server_names"`
	VLANs         int   `json:"vlans"`
}

type protocolReport struct {
	Path     string `json:"path"`
	Protocol string `json:"protocol"`
	Packets  int64  `json:"packets"`
	Bytes    int64  `json:"bytes"`
}

type flowReport struct {
	Source          string   `json:"source"`
	SourcePort      *uint16  `json:"source_port"`
	Destination     string   `json:"destination"`
	DestinationPort *uint16  `json:"destination_port"`
	Protocol        string   `json:"protocol"`
	Packets         int64    `json:"packets"`
	Bytes           int64    `json:"bytes"`
	PacketsForward  int64    `json:"packets_forward"`
	BytesForward    int64    `json:"bytes_forward"`
	PacketsBack     int64    `json:"packets_back"`
	BytesBack       int64    `json:"bytes_back"`
	First           *string  `json:"first"`
	Last            *string  `json:"last"`
	Seconds         float64  `json:"duration_seconds"`
	FlagsForward    []string `json:"flags_forward,omitempty"`
	FlagsBack       []string `json:"flags_back,omitempty"`
}

type talkerReport struct {
	Address         string `json:"address"`
	Packets         int64  `json:"packets"`
	Bytes           int64  `json:"bytes"`
	PacketsSent     int64  `json:"packets_sent"`
	BytesSent       int64  `json:"bytes_sent"`
	PacketsReceived int64  `json:"packets_received"`
	BytesReceived   int64  `json:"bytes_received"`

	addr netip.Addr
}

type nameReport struct {
	Name        string   `json:"name"`
	Count       int64    `json:"count"`
	FirstPacket int64    `json:"first_packet"`
	Types       []string `json:"types,omitempty"`
}

type vlanReport struct {
	ID      uint16 `json:"id"`
	Packets int64  `json:"packets"`
}

type tableReport struct {
	Written int   `json:"written"`
	Omitted int   `json:"omitted"`
	Bytes   int64 `json:"bytes"`
}

// report says what was counted, with at most limit entries in each list.
func (t *tally) report(c *capture, limit int) *report {
	r := &report{
		Capture: c.report(t), Truncated: c.broken != "", Packets: t.packets, Bytes: t.bytes, BytesCaptured: t.captured,
		Time:    timeReport{OutOfOrder: t.disorder, Without: t.packets - t.timed},
		Quality: qualityReport{t.snapped, t.short, t.malformed, t.fragments},
		Counts: countReport{t.conversations.n, t.conversations.other.packets[0] + t.conversations.other.packets[1], t.talkers.n, t.ip,
			len(t.listener.queries.index), len(t.listener.hosts.index), len(t.listener.servers.index), len(t.vlans)},
		Protocols: t.protocols.report(), Conversations: []flowReport{}, Talkers: t.talkers.top(limit),
		DNS: t.listener.queries.top(limit), HTTP: t.listener.hosts.top(limit), TLS: t.listener.servers.top(limit),
		VLANs: t.tags(limit), Notes: t.notes(c),
	}
	if r.Truncated {
		r.TruncatedAt, r.Truncation = &c.at, &c.broken
	}
	if t.timed > 0 {
		first, last := stamp(t.first), stamp(t.last)
		r.Time.First, r.Time.Last, r.Time.Seconds = &first, &last, float64(t.last-t.first)/1e9
	}
	r.Protocols = r.Protocols[:min(len(r.Protocols), 10*limit)]
	for _, n := range t.conversations.largest(limit) {
		r.Conversations = append(r.Conversations, t.conversations.at(int(n)).report())
	}
	return r
}

// report says what the file is.
func (c *capture) report(t *tally) captureReport {
	r := captureReport{Format: "pcap", Compressed: c.compressed, LinkTypes: links(t.links), Interfaces: []interfaceReport{}}
	if c.ng != nil {
		r.Format, r.ByteOrder, r.Sections = "pcapng", orderName(c.ng.order), c.ng.sections
		for _, i := range c.ng.named {
			r.Interfaces = append(r.Interfaces, interfaceReport{strings.ToValidUTF8(i.name, "?"), int(i.link), i.snaplen, i.unit(), i.packets, i.bytes})
		}
		return r
	}
	unit := "10^-6 s"
	if c.pcap.unit == 1 {
		unit = "10^-9 s"
	}
	r.ByteOrder, r.Resolution, r.Snaplen = orderName(c.pcap.order), &unit, &c.pcap.snaplen
	return r
}

func orderName(order binary.ByteOrder) string {
	if order == binary.BigEndian {
		return "big"
	}
	return "little"
}

// tags are the VLANs with the most packets.
func (t *tally) tags(limit int) []vlanReport {
	all := []vlanReport{}
	for id, n := range t.vlans {
		all = append(all, vlanReport{id, n})
	}
	slices.SortFunc(all, func(a, b vlanReport) int { return compare(b.Packets, a.Packets, int64(a.ID), int64(b.ID)) })
	return all[:min(limit, len(all))]
}

// notes say what a reader of the numbers has to know.
func (t *tally) notes(c *capture) []string {
	notes := []string{}
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if c.broken != "" {
		if c.compressed {
			note("Reading ended at byte %d of what was compressed: %s. The numbers are of what stands before.", c.at, c.broken)
		} else {
			note("Reading ended at byte %d: %s. %d bytes were not read; the numbers are of what stands before.", c.at, c.broken, c.rest())
		}
	}
	if n := t.conversations.other.packets[0] + t.conversations.other.packets[1]; n > 0 {
		note("%d packets with %d bytes belong to conversations beyond the first %d, which are counted together.",
			n, t.conversations.other.bytes[0]+t.conversations.other.bytes[1], t.conversations.limit)
	}
	if t.talkers.other > 0 {
		note("%d packets have an address beyond the first %d, which is in no list.", t.talkers.other, maxAddresses)
	}
	for what, names := range map[string]*names{"DNS queries": t.listener.queries, "HTTP hosts": t.listener.hosts, "TLS server names": t.listener.servers} {
		if names.other > 0 {
			note("%d %s are beyond the first %d names and in no list.", names.other, what, maxNames)
		}
	}
	if t.protocols.nodes == maxNodes {
		note("There are more combinations of protocols than the %d that are kept.", maxNodes)
	}
	if t.snapped > 0 {
		note("%d packets were captured in part; what they carry may be missing from the names.", t.snapped)
	}
	if t.fragments > 0 {
		note("Packets are not put together: the later fragments of one have no ports and are a conversation of their own.")
	}
	if n := t.packets - t.timed; n > 0 {
		note("%d packets have no time, or none that makes sense.", n)
	}
	if c.ng != nil && len(c.ng.named) == maxNamed {
		note("Only the first %d interfaces are listed.", maxNamed)
	}
	slices.Sort(notes)
	return notes
}
