package router

import "github.com/mortise-dev/mortise/internal/base/pattern"

// usualPillar is that of a request of which nothing tells the pillar.
const usualPillar = "log_analysis"

// none is the type of artifacts that says there are none.
const none = "none"

// A pillar is one field of investigation with what tells that it is meant.
type pillar struct {
	name   string
	strong string   // the type of artifact that belongs to no other; "" for none
	terms  []string // parts of words that a text about it has, in lower case: login has log
}

// pillars are the five, in the order in which they are taken where terms speak
// for several alike.
var pillars = []pillar{
	{"network_forensics", "pcap", []string{
		"pcap", "packet", "network", "traffic", "netflow", "firewall", "dns", "tcp", "udp", "port scan", "beacon", "exfil", "ip address", "talked to", "pfsense", "palo alto", "flow log",
	}},
	{"cloud_investigation", "cloud_audit_log", []string{"cloud", "aws", "azure", "gcp", "iam ", "bucket", "kubernetes", "service account"}},
	{"log_analysis", "", []string{
		"log", "event", "failed", "error", "auth", "brute force", "ssh", "timeline", "pattern", "anomal", "indicator", "ioc", "threat intel", "advisory",
		"bulletin", "grep", "search", "stack trace", "siem", "image", "screenshot", "photo",
	}},
	{"risk_assessment", "risk_model", []string{"risk", "likelihood", "impact", "vulnerab", "compliance", "residual"}},
	{"threat_modeling", "", []string{
		"threat model", "att&ck", "mitre", "technique", "lateral movement", "attack path", "attack tree", "kill chain", "stride", "attack graph", "trust boundar",
		"spoofing", "tampering", "data flow diagram", "blast radius", "choke point", "crown jewel", "design", "architecture",
	}},
}

// Pillars returns the names of the five.
func Pillars() []string {
	names := make([]string, len(pillars))
	for i, p := range pillars {
		names[i] = p.name
	}
	return names
}

// A facet is what a request may be about, with the words that tell so, or the
// shape of what it mentions.
type facet struct {
	name  string
	words []string
	shape *pattern.Pattern
}

// facets are those that words do not spell: a candidate's own facet, such as
// entity:asn, is found by its word without a line here.
var facets = []facet{
	{"operation:search", []string{"search", "find", "look for", "look up", "locate", "which", "where", "who", "filter", "hunt", "grep"}, nil},
	{"operation:parse", []string{"parse", "read", "decode", "extract", "convert", "load", "ingest", "import"}, nil},
	{"operation:extract", []string{"extract", "pull out", "collect", "harvest"}, nil},
	{"operation:enrich", []string{"enrich", "context", "look up", "lookup", "add detail", "reputation", "attribute"}, nil},
	{"operation:summarize", []string{"summarize", "summarise", "summary", "overview", "brief", "tl dr", "what happened", "digest"}, nil},
	{"operation:analyze", []string{"analyze", "analyse", "analysis", "investigate", "examine", "inspect", "explain", "understand", "why"}, nil},
	{"operation:aggregate", []string{"aggregate", "count", "group by", "total", "how many", "statistic", "top", "most", "per hour", "per day"}, nil},
	{"operation:correlate", []string{"correlate", "relate", "connect", "link", "match", "compare", "in common"}, nil},
	{"operation:classify", []string{"classify", "categorize", "categorise", "label", "what kind", "what type", "identify"}, nil},
	{"operation:profile", []string{"profile", "baseline", "characterize", "characterise", "what kind", "identify"}, nil},
	{"operation:detect", []string{"detect", "anomaly", "anomalies", "suspicious", "malicious", "unusual", "alert", "outlier"}, nil},
	{"operation:generate", []string{"generate", "create", "build", "make", "write", "produce", "draft"}, nil},
	{"operation:render", []string{"render", "draw", "visualize", "visualise", "visualization", "diagram", "chart", "plot", "show me"}, nil},
	{"operation:model", []string{"model", "modeling", "modelling"}, nil},
	{"operation:map", []string{"map", "mapping"}, nil},

	{"entity:ip", []string{"ip", "ips", "ip address", "address", "host", "source address", "destination address"}, pattern.New(`\b(\d{1,3}\.){3}\d{1,3}\b|\b([0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b`)},
	{"entity:dns", []string{"dns", "domain", "domain name", "hostname", "nslookup", "resolver"}, pattern.New(`\b[a-z0-9-]+\.(com|net|org|info|io|ru|cn|top|xyz|biz|onion)\b`)},
	{"entity:domain", []string{"domain", "domain name", "hostname"}, pattern.New(`\b[a-z0-9-]+\.(com|net|org|info|io|ru|cn|top|xyz|biz|onion)\b`)},
	{"entity:url", []string{"url", "link", "web address", "uri"}, pattern.New(`\bh(tt|xx)ps?://`)},
	{"entity:port", []string{"port", "service port"}, nil},
	{"entity:flow", []string{"flow", "netflow", "conversation", "session", "connection", "talked to", "top talker"}, nil},
	{"entity:user", []string{"user", "account", "login", "logon", "username", "principal", "service account"}, nil},
	{"entity:hash", []string{"hash", "md5", "sha1", "sha256", "checksum"}, pattern.New(`\b([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})\b`)},
	{"entity:ioc", []string{"ioc", "indicator", "indicator of compromise", "observable", "threat intel", "threat intelligence"}, pattern.New(`\b([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})\b|\[\.\]|\bhxxps?://`)},
	{"entity:cve", []string{"cve", "vulnerability", "vulnerabilities"}, pattern.New(`\bcve-\d{4}-\d{4,}\b`)},
	{"entity:mitre_technique", []string{"mitre", "att ck", "technique", "tactic", "ttp"}, pattern.New(`\bt\d{4}(\.\d{3})?\b`)},
	{"entity:attack_path", []string{"attack path", "attack tree", "attack graph", "kill chain"}, nil},
	{"entity:threat_actor", []string{"threat actor", "adversary", "attacker", "apt"}, nil},
	{"entity:asset", []string{"asset", "crown jewel", "server", "workstation"}, nil},

	{"domain:network_forensics", []string{"network forensics", "network", "packet", "traffic", "pcap"}, nil},
	{"domain:cloud_investigation", []string{"cloud", "aws", "gcp", "azure"}, nil},
	{"domain:log_analysis", []string{"log", "syslog", "event log"}, nil},
	{"domain:risk_assessment", []string{"risk", "likelihood", "exposure"}, nil},
	{"domain:threat_modeling", []string{"threat model", "threat modeling", "threat modelling", "attack path", "attack tree"}, nil},
	{"domain:threat_intel", []string{"threat intel", "threat intelligence", "threat report", "advisory", "ioc", "indicator", "threat actor"}, nil},
	{"domain:firewall", []string{"firewall", "acl", "blocked", "denied", "allowed"}, nil},

	{"output:table", []string{"table", "tabular", "row", "csv", "list"}, nil},
	{"output:mermaid", []string{"mermaid", "diagram", "graph", "flowchart", "draw", "visualize", "visualise"}, nil},
	{"output:json", []string{"json", "machine readable", "structured"}, nil},
	{"output:markdown", []string{"markdown", "report", "write up"}, nil},
	{"output:chart", []string{"chart", "plot", "histogram"}, nil},
}

// spellings are other words for types of artifacts that are in use.
var spellings = map[string]string{"log_file": "log_stream", "markdown": "text", "pdf": "pdf_report"}

func artifactType(kind string) string {
	if known, ok := spellings[kind]; ok {
		return known
	}
	return kind
}
