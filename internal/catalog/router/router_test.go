package router_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/router"
	"github.com/mortise-dev/mortise/plugin"
)

// candidate returns a visible tool that is fast, free and in no pillar, changed
// by the functions.
func candidate(name string, change ...func(*plugin.Manifest, *plugin.Operation)) router.Candidate {
	op := &plugin.Operation{Name: name, Kind: plugin.Tool, Timeout: 30 * time.Second}
	m := &plugin.Manifest{Name: name, Version: "1.0.0", Operations: []*plugin.Operation{op}}
	for _, f := range change {
		f(m, op)
	}
	return router.Candidate{Manifest: m, Operation: op}
}

func pillar(name string) func(*plugin.Manifest, *plugin.Operation) {
	return func(m *plugin.Manifest, _ *plugin.Operation) { m.Pillar = name }
}

func op(change func(*plugin.Operation)) func(*plugin.Manifest, *plugin.Operation) {
	return func(_ *plugin.Manifest, op *plugin.Operation) { change(op) }
}

func loaded(types ...string) []router.Artifact {
	var list []router.Artifact
	for i, kind := range types {
		list = append(list, router.Artifact{ID: fmt.Sprintf("art_%08x", i), Type: kind})
	}
	return list
}

// TestThePillarIsChosenInOrder: an explicit choice, the session's, a strong
// artifact, terms, the usual one.
func TestThePillarIsChosenInOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query router.Query
		want  string
		why   string
	}{
		"a choice before all":               {router.Query{Pillar: "risk_assessment", Artifacts: loaded("pcap"), Text: "cloudtrail", Session: "log_analysis"}, "risk_assessment", "chosen"},
		"an artifact before words":          {router.Query{Artifacts: loaded("pcap"), Text: "aws iam"}, "network_forensics", "pcap"},
		"a cloud audit log":                 {router.Query{Artifacts: loaded("text", "cloud_audit_log"), Text: "packets"}, "cloud_investigation", "cloud_audit_log"},
		"a risk model":                      {router.Query{Artifacts: loaded("risk_model"), Text: "packets"}, "risk_assessment", "risk_model"},
		"words choose between artifacts":    {router.Query{Artifacts: loaded("pcap", "cloud_audit_log"), Text: "which iam role was it?"}, "cloud_investigation", "cloud_audit_log"},
		"a log is no strong artifact":       {router.Query{Artifacts: loaded("log_stream"), Text: "draw the attack paths"}, "threat_modeling", "attack path"},
		"the session before artifacts":      {router.Query{Artifacts: loaded("pcap"), Text: "Packets?", Session: "cloud_investigation"}, "cloud_investigation", "session"},
		"terms, in capitals too":            {router.Query{Text: "Packets to the FIREWALL?"}, "network_forensics", "packet"},
		"terms are parts of words":          {router.Query{Text: "who is LOGIN77?"}, "log_analysis", "log"},
		"the first of two alike":            {router.Query{Text: "risk in the cloud"}, "cloud_investigation", "cloud"},
		"the most terms":                    {router.Query{Text: "impact and likelihood in the cloud"}, "risk_assessment", "likelihood"},
		"the name of a framework":           {router.Query{Text: "what does MITRE say of this?"}, "threat_modeling", "mitre"},
		"the usual one":                     {router.Query{}, "log_analysis", "nothing"},
		"a choice that is none of the five": {router.Query{Pillar: "malware"}, "malware", "chosen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := router.Route(c.query, nil)
			if got.Pillar != c.want || !strings.Contains(got.PillarReason, c.why) {
				t.Errorf("%s, because %s; want %s, because of %q", got.Pillar, got.PillarReason, c.want, c.why)
			}
		})
	}
}

// TestEveryPillarCanBeReached by words alone, in the plural and in capitals too.
func TestEveryPillarCanBeReached(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"network_forensics":   "Which hosts sent DNS packets?",
		"cloud_investigation": "who assumed an IAM role in our AWS account",
		"log_analysis":        "failed logins in the syslogs",
		"risk_assessment":     "what is the residual risk and its likelihood",
		"threat_modeling":     "THREAT MODELS of the payment service",
	}
	for _, name := range router.Pillars() {
		if got := router.Route(router.Query{Text: texts[name]}, nil); got.Pillar != name {
			t.Errorf("%q goes to %s (%s), not to %s", texts[name], got.Pillar, got.PillarReason, name)
		}
	}
	if len(router.Pillars()) != len(texts) {
		t.Errorf("the pillars are %v", router.Pillars())
	}
}

// TestScores holds each mark against the points it is worth: 1 for the pillar,
// 0.8 for the share of the types, 0.6 and 0.4 for words of capabilities and titles.
func TestScores(t *testing.T) {
	t.Parallel()
	type change = func(*plugin.Manifest, *plugin.Operation)
	query := router.Query{Pillar: "log_analysis", Text: "search for an IP, tables of bursts in dpkg", Artifacts: loaded("log_stream", "log_stream"), Model: true, Hidden: true}
	reads := op(func(o *plugin.Operation) { o.Consumes = []string{"log_stream"} })
	facets := func(list ...string) change { return op(func(o *plugin.Operation) { o.Facets = list }) }
	for name, c := range map[string]struct {
		change []change
		want   float64
	}{
		"pillar":                   {nil, 1},
		"no pillar":                {[]change{pillar(""), reads}, 0.8},
		"all types that it reads":  {[]change{reads}, 1.8},
		"one of two types":         {[]change{op(func(o *plugin.Operation) { o.Consumes = []string{"log_file", "pcap", "none"} })}, 1.4},
		"one word of a capability": {[]change{facets("operation:search")}, 1.18},
		"two words":                {[]change{facets("operation:search", "entity:ip", "output:mermaid")}, 1.36},
		"a word twice is one":      {[]change{facets("entity:ip", "domain:ip")}, 1.18},
		"no more than all of it":   {[]change{facets("a:search", "b:ip", "c:table", "d:burst", "e:dpkg")}, 1.6},
		"a word of the name":       {[]change{func(m *plugin.Manifest, _ *plugin.Operation) { m.Name = "burst_detector" }}, 1.08},
		"of the name, a title and tags": {[]change{func(m *plugin.Manifest, o *plugin.Operation) {
			m.Name, m.DisplayName, o.Tags = "burst", "Search", []string{"dpkg", "other"}
		}}, 1.24},
		"short words say nothing": {[]change{op(func(o *plugin.Operation) { o.Tags = []string{"of", "in"} })}, 1},
		"what else is known counts nothing": {[]change{op(func(o *plugin.Operation) {
			o.Stability, o.AutoInvoke, o.Timeout, o.Cost, o.ChainsFrom = plugin.Core, true, time.Hour, "high", []string{"before"}
		})}, 1},
		"all of it": {[]change{reads, facets("a:search", "b:ip", "c:table", "d:burst"), op(func(o *plugin.Operation) { o.Tags = []string{"search", "table", "burst", "dpkg", "in", "an"} })}, 2.72},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := router.Route(query, []router.Candidate{candidate("it", append([]change{pillar("log_analysis")}, c.change...)...)})
			if len(got.Included) != 1 {
				t.Fatalf("included: %+v, excluded: %+v", got.Included, got.Excluded)
			}
			sum := 0.0
			for _, mark := range got.Included[0].Reasons {
				sum += mark.Points
			}
			if one := got.Included[0]; math.Abs(one.Score-c.want) > 1e-9 || math.Abs(sum-one.Score) > 1e-9 {
				t.Errorf("%v points, with marks of %v, want %v: %+v", one.Score, sum, c.want, one.Reasons)
			}
		})
	}
}

// TestWhatIsLeftOutSaysWhy, and what is named in the text is not left out.
func TestWhatIsLeftOutSaysWhy(t *testing.T) {
	t.Parallel()
	own := pillar("log_analysis")
	for name, c := range map[string]struct {
		change func(*plugin.Operation)
		want   string
	}{
		"experimental": {func(o *plugin.Operation) { o.Stability = plugin.Experimental }, "it is experimental, which is hidden unless it is named"},
		"deprecated":   {func(o *plugin.Operation) { o.Stability = plugin.Deprecated }, "it is deprecated, which is hidden unless it is named"},
		"hidden":       {func(o *plugin.Operation) { o.Hidden = true }, "it is hidden unless it is named"},
		"model":        {func(o *plugin.Operation) { o.NeedsModel = true }, "it needs a model, and none is connected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := candidate("the_tool", own, op(c.change))
			got := router.Route(router.Query{Text: "anything", Artifacts: loaded("text")}, []router.Candidate{tool})
			if len(got.Included) != 0 || len(got.Excluded) != 1 || got.Excluded[0].Reason != c.want {
				t.Fatalf("included %+v, excluded %+v; want the reason %q", got.Included, got.Excluded, c.want)
			}
			for _, text := range []string{"please use The_Tool.", "`the_tool` now", "the_tool/the_tool"} {
				named := router.Route(router.Query{Text: text, Artifacts: loaded("text")}, []router.Candidate{tool})
				if len(named.Included) != 1 || !slices.Equal(named.Included[0].Notes, []string{"it was named, but " + c.want}) {
					t.Errorf("%q: included %+v, excluded %+v", text, named.Included, named.Excluded)
				}
			}
			opted := router.Route(router.Query{Pillar: "log_analysis", Hidden: true, Model: true, Artifacts: loaded("pcap")}, []router.Candidate{tool})
			if len(opted.Included) != 1 {
				t.Errorf("with all that it needs it is excluded: %+v", opted.Excluded)
			}
		})
	}
	other := candidate("of_another", pillar("risk_assessment"), op(func(o *plugin.Operation) { o.Consumes = []string{"text"} }))
	if got := router.Route(router.Query{Artifacts: loaded("text")}, []router.Candidate{other}); len(got.Included) != 0 || got.Excluded[0].Reason != "its pillar is risk_assessment, and the request's is log_analysis" {
		t.Errorf("a tool of another pillar: %+v", got)
	}
	report := candidate("report", own, op(func(o *plugin.Operation) { o.Hidden = true }))
	if got := router.Route(router.Query{Text: "make a report"}, []router.Candidate{report}); len(got.Included) != 0 {
		t.Errorf("an ordinary word names a tool: %+v", got.Included)
	}
	if got := router.Route(router.Query{Text: "run 'report'"}, []router.Candidate{report}); len(got.Included) != 1 {
		t.Errorf("a quoted word names no tool: %+v", got.Excluded)
	}
	if got := router.Route(router.Query{Text: "weather"}, []router.Candidate{candidate("hello")}); len(got.Included) != 0 || got.Excluded[0].Reason != "nothing of the request speaks for it" {
		t.Errorf("what has nothing to do with the request: %+v", got)
	}
}

// TestANamedOperationComesFirst even where five others have more points.
func TestANamedOperationComesFirst(t *testing.T) {
	t.Parallel()
	all := []router.Candidate{candidate("z_far", pillar("risk_assessment"))}
	for i := range 6 {
		all = append(all, candidate(fmt.Sprintf("near_%d", i), pillar("log_analysis")))
	}
	got := router.Route(router.Query{Text: "logs, with z_far"}, all)
	if got.Included[0].Operation != "z_far/z_far" || len(got.Included) != 5 {
		t.Errorf("included: %+v", got.Included)
	}
	for i, want := range []string{"near_0", "near_1", "near_2", "near_3"} { // ties by name
		if got.Included[i+1].Operation != want+"/"+want {
			t.Errorf("place %d is %s, want %s", i+2, got.Included[i+1].Operation, want)
		}
	}
	if len(got.Excluded) != 2 || got.Excluded[0].Reason != "five others fit better" {
		t.Errorf("excluded: %+v", got.Excluded)
	}
}

// TestFacets of what a text mentions, what is loaded, and what candidates say.
func TestFacets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"who talked to 203.0.113.9?":               {"entity:flow", "entity:ip", "operation:search"},
		"t1059.001 and CVE-2024-12345":             {"entity:cve", "entity:mitre_technique"},
		"summarise it as a Mermaid diagram":        {"operation:render", "operation:summarize", "output:mermaid"},
		"resolve evil-site.xyz":                    {"entity:dns", "entity:domain"},
		"the ASNs behind it":                       {"entity:asn"},
		"":                                         {},
		"d41d8cd98f00b204e9800998ecf8427e is what": {"entity:hash", "entity:ioc"},
	} {
		got := router.Route(router.Query{Text: text}, []router.Candidate{candidate("a", op(func(o *plugin.Operation) { o.Facets = []string{"entity:asn", "entity:x", ":", "odd"} }))})
		if !slices.Equal(got.Facets, want) {
			t.Errorf("%q is about %v, want %v", text, got.Facets, want)
		}
	}
	if got := router.Route(router.Query{Artifacts: loaded("pcap", "pcap", "markdown", "none")}, nil); !slices.Equal(got.Facets, []string{"artifact:pcap", "artifact:text"}) {
		t.Errorf("the artifacts give %v", got.Facets)
	}
}

// TestChains: what is declared, then what fits by the type of artifact; from
// what ran last, then from what was chosen, to what may be used.
func TestChains(t *testing.T) {
	t.Parallel()
	own := pillar("threat_modeling")
	none := op(func(o *plugin.Operation) { o.Consumes = []string{"none"} })
	makes := func(kind string) func(*plugin.Manifest, *plugin.Operation) {
		return op(func(o *plugin.Operation) { o.Produces = []string{kind} })
	}
	reads := func(kind string) func(*plugin.Manifest, *plugin.Operation) {
		return op(func(o *plugin.Operation) { o.Consumes = []string{kind} })
	}
	all := []router.Candidate{
		candidate("builder", own, none, makes("risk_model"), op(func(o *plugin.Operation) { o.ChainsTo = []string{"generator"} })),
		candidate("generator", own, reads("risk_model"), makes("json_events")),
		candidate("renderer", own, reads("json_events"), op(func(o *plugin.Operation) { o.ChainsFrom = []string{"generator/generator"} })),
		candidate("scorer", own, reads("risk_model"), makes("none")),
		candidate("draft", own, reads("risk_model"), op(func(o *plugin.Operation) { o.Stability = plugin.Experimental })),
	}
	got := router.Route(router.Query{Text: "threat model, step by step", Last: "generator"}, all)
	want := []router.Chain{
		{"generator/generator", "renderer/renderer", "json_events", "it names generator under chains_from"},
		{"builder/builder", "generator/generator", "risk_model", "builder names it under chains_to"},
		{"builder/builder", "scorer/scorer", "risk_model", "it reads risk_model, which builder makes"},
	}
	if !slices.Equal(got.Chains, want) {
		t.Errorf("the chains are %+v", got.Chains)
	}
	var many []router.Candidate
	for i := range 60 {
		many = append(many, candidate(fmt.Sprintf("m%02d", i), own, reads("text"), makes("text")))
	}
	if got := router.Route(router.Query{Text: "threat model", Artifacts: loaded("text")}, many); len(got.Chains) != router.MostChains {
		t.Errorf("%d chains", len(got.Chains))
	}
}

// TestProperties of routes over random catalogues and requests.
func TestProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 7))
		query, candidates := randomQuery(r), randomCandidates(r)
		got := router.Route(query, candidates)
		text := spelled(t, got)

		shuffled := slices.Clone(candidates)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if other := spelled(t, router.Route(query, shuffled)); other != text {
			t.Fatalf("seed %d: in another order the answer is another:\n%s\n%s", seed, text, other)
		}
		if len(got.Included) > router.Most || len(got.Chains) > router.MostChains {
			t.Fatalf("seed %d: %d operations and %d chains", seed, len(got.Included), len(got.Chains))
		}
		var names, want []string
		for _, c := range got.Included {
			names = append(names, c.Operation)
		}
		for _, e := range got.Excluded {
			if names = append(names, e.Operation); e.Reason == "" {
				t.Fatalf("seed %d: %s is excluded for no reason", seed, e.Operation)
			}
		}
		for _, c := range candidates {
			want = append(want, c.Name())
		}
		slices.Sort(names)
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Fatalf("seed %d: the candidates are %v, the answer has %v", seed, want, names)
		}
		if len(candidates) > 0 && len(got.Facets) > 0 {
			raise(t, seed, r, query, candidates, got)
		}
	}
}

// raise gives one candidate a facet that the request is about, and expects that
// it stands no lower than before.
func raise(t *testing.T, seed uint64, r *rand.Rand, query router.Query, candidates []router.Candidate, was router.Answer) {
	t.Helper()
	i := r.IntN(len(candidates))
	better := *candidates[i].Operation
	better.Facets = append(slices.Clone(better.Facets), was.Facets[r.IntN(len(was.Facets))])
	changed := slices.Clone(candidates)
	changed[i].Operation = &better
	before, after := place(was, candidates[i].Name()), place(router.Route(query, changed), candidates[i].Name())
	if after > before {
		t.Fatalf("seed %d: with one more facet %s falls from %d to %d", seed, candidates[i].Name(), before, after)
	}
}

// place returns where an operation stands; what is excluded stands behind all.
func place(a router.Answer, name string) int {
	if i := slices.IndexFunc(a.Included, func(c router.Choice) bool { return c.Operation == name }); i >= 0 {
		return i
	}
	return router.Most
}

func spelled(t *testing.T, a router.Answer) string {
	t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

var (
	someTypes  = []string{"pcap", "json_events", "log_stream", "risk_model", "cloud_audit_log", "pdf_report", "text", "none", "log_file"}
	someFacets = []string{"entity:ip", "operation:search", "entity:asn", "output:mermaid", "domain:threat_intel", "operation:parse", "artifact:pcap"}
	someWords  = []string{"search", "packets", "10.0.0.1", "asn", "risk", "tool_3", "`tool_7`", "mermaid", "aws", "threat", "model", "\xff", "Ĳ", "…", "日本"}
)

func some(r *rand.Rand, of []string) []string {
	var list []string
	for range r.IntN(4) {
		list = append(list, of[r.IntN(len(of))])
	}
	return list
}

func randomQuery(r *rand.Rand) router.Query {
	q := router.Query{Text: strings.Join(append(some(r, someWords), some(r, someWords)...), " "), Artifacts: loaded(some(r, someTypes)...), Model: r.IntN(2) == 0, Hidden: r.IntN(3) == 0}
	if r.IntN(4) == 0 {
		q.Pillar = router.Pillars()[r.IntN(5)]
	}
	if r.IntN(2) == 0 {
		q.Last = fmt.Sprintf("tool_%d", r.IntN(12))
	}
	return q
}

func randomCandidates(r *rand.Rand) []router.Candidate {
	var list []router.Candidate
	for i := range r.IntN(14) {
		list = append(list, candidate(fmt.Sprintf("tool_%d", i), func(m *plugin.Manifest, o *plugin.Operation) {
			m.Pillar = append(router.Pillars(), "", "other")[r.IntN(7)]
			o.Facets, o.Consumes, o.Produces = some(r, someFacets), some(r, someTypes), some(r, someTypes)
			o.Stability = []plugin.Stability{"", plugin.Core, plugin.Verified, plugin.Experimental, plugin.Deprecated}[r.IntN(5)]
			o.AutoInvoke, o.NeedsModel, o.Hidden = r.IntN(2) == 0, r.IntN(4) == 0, r.IntN(9) == 0
			o.Timeout = []time.Duration{time.Second, 2 * time.Minute, time.Hour}[r.IntN(3)]
			o.Cost = []string{"", "low", "moderate", "high"}[r.IntN(4)]
			if r.IntN(3) == 0 {
				for range r.IntN(5) {
					o.ChainsTo = append(o.ChainsTo, fmt.Sprintf("tool_%d", r.IntN(14)))
				}
				o.ChainsFrom = []string{fmt.Sprintf("Tool_%d/tool_%d", r.IntN(14), r.IntN(14))}
			}
		}))
	}
	return list
}

// TestLongAndStrangeTexts are read in bounded time, and only so far.
func TestLongAndStrangeTexts(t *testing.T) {
	t.Parallel()
	late := strings.Repeat("word ", router.MaxText/5) + " packets"
	if got := router.Route(router.Query{Text: late}, nil); got.Pillar != "log_analysis" || !got.Cut {
		t.Errorf("what stands after the limit counts: %s, %v", got.Pillar, got.Cut)
	}
	if got := router.Route(router.Query{Text: late[8:]}, nil); got.Pillar != "network_forensics" {
		t.Errorf("what stands before the limit does not count: %s", got.Pillar)
	}
	for name, text := range map[string]string{
		"one megabyte":       strings.Repeat("search 10.0.0.1 ", 1<<16),
		"one word":           strings.Repeat("a", 1<<20),
		"through characters": strings.Repeat("日本語", 1<<17),
		"no text at all":     strings.Repeat("\xff\xfe", 1<<19),
		"marks":              strings.Repeat("\u0301", 1<<18),
		"quotes":             strings.Repeat("`'\"", 1<<18),
		"nulls":              strings.Repeat("\x00", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			a, b := router.Route(router.Query{Text: text}, nil), router.Route(router.Query{Text: text}, nil)
			if !reflect.DeepEqual(a, b) || !a.Cut {
				t.Errorf("two routes differ, or nothing was cut: %+v, %+v", a, b)
			}
			took := time.Since(begin)
			t.Run("time", func(t *testing.T) {
				if testing.Short() {
					t.Skip("make test-long: the time that a large text takes")
				}
				// It takes some 20 ms; what grew with the square of the text would take minutes.
				if took > 30*time.Second {
					t.Errorf("two routes took %s", took)
				}
			})
		})
	}
}

// FuzzRoute: any text gives an answer, and the same again.
func FuzzRoute(f *testing.F) {
	for _, word := range someWords {
		f.Add(word, word)
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		all := []router.Candidate{candidate(name, op(func(o *plugin.Operation) { o.Facets = []string{name, "entity:" + name} })), candidate("other_one", pillar("log_analysis"))}
		a, b := router.Route(router.Query{Text: text}, all), router.Route(router.Query{Text: text}, []router.Candidate{all[1], all[0]})
		if !reflect.DeepEqual(a, b) || len(a.Included)+len(a.Excluded) != 2 {
			t.Errorf("%+v\n%+v", a, b)
		}
	})
}
