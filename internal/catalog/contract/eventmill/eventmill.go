// Package eventmill reads manifests of Event Mill, finds the tree that its tools
// stand in, and spells its error codes.
package eventmill

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// Name is the name of the contract.
const Name = "eventmill"

// Contract is the contract of Event Mill.
type Contract struct{}

var (
	_ contract.Reader    = Contract{}
	_ contract.Grouper   = Contract{}
	_ contract.Describer = Contract{}
	_ contract.Facter    = Contract{}
	_ contract.Versioner = Contract{}
)

// Name implements [contract.Contract].
func (Contract) Name() string { return Name }

// Form implements [contract.Reader].
func (Contract) Form() string { return "of Event Mill (tool_name)" }

// Recognizes implements [contract.Reader].
func (Contract) Recognizes(top contract.Value) bool {
	return top.Has("tool_name") || top.Has("class_name")
}

// NeedsDescribe implements [contract.Describer]: the code of a tool describes
// nothing.
func (Contract) NeedsDescribe(*plugin.Manifest) bool { return false }

// VersionRow implements [contract.Versioner].
func (Contract) VersionRow() string { return "EM-23" }

// Facts implements [contract.Facter].
func (Contract) Facts() plugin.Contract {
	return plugin.Contract{Shim: "eventmill", SharesProcess: true, MaxSummary: maxSummary, Investigates: true, AnyRelease: true}
}

// maxSummary is how many characters of a summary a model is given (summarize_for_llm).
const maxSummary = 2000

// The contract of Event Mill, by its own words: which keys a manifest has, and
// what may stand there.
var (
	requiredInPractice = []string{"tool_name", "version", "pillar", "display_name", "description_short", "entry_point", "class_name"}
	requiredByContract = []string{"description_long", "author", "artifacts_consumed", "artifacts_produced", "capabilities", "input_schema",
		"output_schema", "timeout_class", "safe_for_auto_invoke", "stability", "tags"}
	optionalByContract = []string{"owner_team", "license", "homepage", "repository", "cost_hint", "requires_auth", "requires_llm",
		"external_connectivity", "minimum_framework_version", "python_version", "dependencies", "reference_data_overrides",
		"result_summary_fields", "chains_to", "chains_from"}

	facetNamespaces = []string{"artifact", "operation", "entity", "domain", "output"}
)

// Pillars are the five that the contract knows.
var Pillars = []string{"network_forensics", "cloud_investigation", "log_analysis", "risk_assessment", "threat_modeling"}

// ArtifactTypes are the ten that the contract knows.
var ArtifactTypes = []string{"pcap", "json_events", "log_stream", "risk_model", "cloud_audit_log", "pdf_report", "html_report", "image", "text", "none"}

// Words that published manifests have for those of the contract.
var (
	timeoutClasses = map[string]string{"short": "fast", "long": "slow"}
	stabilities    = map[string]string{"stable": string(plugin.Verified)}
	costs          = map[string]string{"medium": "moderate"}
)

var (
	facetForm = pattern.New(`^[a-z]+:[A-Za-z0-9_.-]+$`)
	classForm = pattern.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// maxShort is how long a short description is (EM-04).
const maxShort = 240

// Read implements [contract.Reader]: one tool. It is lenient, since
// published manifests depart from their contract in many ways: what cannot be
// understood or trusted is a problem, and every other departure a note.
func (Contract) Read(top contract.Value) *plugin.Manifest {
	p := top.Page
	if p.File != contract.ManifestJSON {
		top.Problem("a manifest of Event Mill is called %s", contract.ManifestJSON)
		return nil
	}
	checkKeys(top)
	name := nameOf(top.Get("tool_name").Of("EM-03"))
	pillar := pillarOf(top.Get("pillar").Of("EM-02"))
	entry := entryOf(top.Get("entry_point").Of("EM-01"))
	if place := p.Home.Place; place != "" {
		if entry != "" {
			entry = place + "/" + entry
		}
		checkNeighbours(top.Get("tool_name"), name)
	}
	short := top.Get("description_short").Of("EM-04").LooseText()
	if n := utf8.RuneCountInString(short); n > maxShort {
		top.Get("description_short").Of("EM-04").Note("it has %d characters; the contract allows %d", n, maxShort)
	}
	op := &plugin.Operation{
		Name:        name,
		Kind:        plugin.Tool,
		Description: firstText(top.Get("description_long").Of("EM-04").LooseText(), top.Get("description_llm").Of("EM-04").LooseText(), short),
		Input:       schemaOf(top.Get("input_schema").Of("EM-17"), "schemas/input.schema.json"),
		Output:      schemaOf(top.Get("output_schema").Of("EM-17"), "schemas/output.schema.json"),
		Timeout:     contract.Timeouts[classOf(top.Get("timeout_class").Of("EM-19"), "medium", timeoutClasses, "fast", "medium", "slow")],
		Facets:      facetsOf(top.Get("capabilities").Of("EM-05")),
		Tags:        top.Get("tags").Of("EM-04").LooseWords(),
		Consumes:    artifactTypesOf(top.Get("artifacts_consumed").Of("EM-06")),
		Produces:    artifactTypesOf(top.Get("artifacts_produced").Of("EM-06")),
		ChainsTo:    top.Get("chains_to").Of("EM-04").LooseWords(),
		ChainsFrom:  top.Get("chains_from").Of("EM-04").LooseWords(),
		Stability: plugin.Stability(classOf(top.Get("stability").Of("EM-07"), string(plugin.Experimental), stabilities,
			string(plugin.Experimental), string(plugin.Verified), string(plugin.Core), string(plugin.Deprecated))),
		Cost:       classOf(top.Get("cost_hint").Of("EM-19"), "low", costs, "low", "moderate", "high"),
		AutoInvoke: top.Get("safe_for_auto_invoke").Of("EM-20").LooseTruth(),
		NeedsModel: top.Get("requires_llm").Of("EM-04").LooseTruth(),
		Advisory:   true,
	}
	op.Output = outOfEnvelope(top.Get("output_schema"), op.Output)
	for _, key := range []string{"requires_auth", "external_connectivity"} {
		top.Get(key).Of("EM-04").LooseTruth()
	}
	for _, key := range []string{"dependencies", "result_summary_fields"} {
		top.Get(key).Of("EM-04").LooseWords()
	}
	return &plugin.Manifest{
		Name:         name,
		Version:      top.Get("version").Of("EM-23").LooseVersion(),
		DisplayName:  top.Get("display_name").Of("EM-04").LooseText(),
		Owner:        firstText(top.Get("author").Of("EM-04").LooseText(), top.Get("owner_team").Of("EM-04").LooseText()),
		Description:  short,
		Dialect:      Name,
		Pillar:       pillar,
		Dir:          p.Home.Place,
		Runner:       plugin.Runner{Kind: contract.ProcessRunner, Entry: entry, Class: classNameOf(top.Get("class_name").Of("EM-08")), Protocol: "2"},
		Isolation:    plugin.IsolationSession,
		Capabilities: []string{"artifacts", "llm", "reference_data", "session"},
		Operations:   []*plugin.Operation{op},
	}
}

// checkKeys holds the keys against the contract's: it has no others.
func checkKeys(v contract.Value) {
	for _, key := range requiredInPractice {
		v.Get(key).Of("EM-04").Required()
	}
	for _, key := range requiredByContract {
		if place := v.Get(key).Of("EM-04"); !place.There {
			place.Note("it is missing, and the contract asks for it")
		}
	}
	all := slices.Concat(requiredInPractice, requiredByContract, optionalByContract)
	for _, key := range v.Keys() {
		if slices.Contains(all, key) {
			continue
		}
		if meant, near := contract.Nearest(key, all); near && !v.Has(meant) {
			v.Get(key).Of("EM-04").Note("the contract has no such key, so nothing reads it; did you mean %s?", meant)
		} else {
			v.Get(key).Of("EM-04").Note("the contract has no such key")
		}
	}
}

// nameOf returns the name here, of a tool or a pillar.
func nameOf(v contract.Value) string {
	text, isText := v.Is.(string)
	switch {
	case !v.There: // the problem is noted
	case !isText:
		v.Wrong("text")
	case !contract.ToolName(text):
		v.Problem("%q is no name here: it takes small letters, digits and underscores, up to 128 of them", contract.Clip(text))
	default:
		return text
	}
	return ""
}

// checkNeighbours holds the name of a tool against its directory and its tree.
func checkNeighbours(v contract.Value, name string) {
	at := v.Page.Home
	dir := at.Place[strings.LastIndexByte(at.Place, '/')+1:]
	if name == "" {
		return
	}
	if dir != name {
		v.Of("EM-02").Note("its directory is called %s; the contract calls it like the tool", contract.Clip(dir))
	}
	if other := twin(at.Tree, at.Place, name); other != "" {
		v.Of("EM-03").Problem("the tool in %s of the same tree is called so too, and of two the last is taken: give one of them another name", contract.Clip(other))
	}
}

// pillarOf returns the pillar here. In a tree it is the directory that the tool
// stands in.
func pillarOf(v contract.Value) string {
	pillar := nameOf(v)
	if pillar == "" {
		return ""
	}
	if dir, _, inTree := strings.Cut(v.Page.Home.Place, "/"); inTree && dir != pillar {
		v.Problem("it stands in the directory of the pillar %s: one of them is wrong", contract.Clip(dir))
		return ""
	}
	if !slices.Contains(Pillars, pillar) {
		v.Note("%q is none of %s", contract.Clip(pillar), strings.Join(Pillars, ", "))
	}
	return pillar
}

// entryOf returns the file of Python here, which must be one of the tool's own.
func entryOf(v contract.Value) string {
	name := v.Word()
	if name == "" {
		return ""
	}
	if !strings.HasSuffix(name, ".py") {
		v.Problem("%s is no Python file (.py)", contract.Clip(name))
		return ""
	}
	if _, err := v.Page.Files.Regular(name); err != nil {
		v.Problem("%s: %v", contract.Clip(name), err)
		return ""
	}
	return strings.TrimPrefix(name, "./")
}

// classNameOf returns the name of a Python class here.
func classNameOf(v contract.Value) string {
	name := v.Word()
	if name != "" && !classForm.MatchString(name) {
		v.Problem("%q is no name of a Python class", contract.Clip(name))
		return ""
	}
	return name
}

// classOf returns the one of choices that stands here, or the one that another
// word for it stands for, or def.
func classOf(v contract.Value, def string, others map[string]string, choices ...string) string {
	text, isText := v.Is.(string)
	switch meant := others[text]; {
	case !v.There: // the contract's own default, or missing and noted
	case !isText:
		v.Note("text belongs here, not %s: it is taken for %s", v.Kind(), def)
	case slices.Contains(choices, text):
		return text
	case meant != "":
		v.Note("%q is none of %s: it is taken for %s", text, strings.Join(choices, ", "), meant)
		return meant
	default:
		v.Note("%q is none of %s: it is taken for %s", contract.Clip(text), strings.Join(choices, ", "), def)
	}
	return def
}

// facetsOf returns what the tool is about. All words count, those that are not
// of the contract's form too.
func facetsOf(v contract.Value) []string {
	items := v.LooseItems()
	if v.There && len(items) == 0 {
		v.Note("no capability stands here: nothing is found by them")
	}
	for _, item := range items {
		word := item.Is.(string)
		namespace, _, _ := strings.Cut(word, ":")
		switch {
		case !facetForm.MatchString(word):
			item.Note("%q has not the form namespace:name, such as operation:search", contract.Clip(word))
		case !slices.Contains(facetNamespaces, namespace):
			item.Note("the namespace %s is none of %s", contract.Clip(namespace), strings.Join(facetNamespaces, ", "))
		}
	}
	return contract.Texts(items)
}

// artifactTypesOf returns the types of artifacts here. Those that the contract
// does not know count too.
func artifactTypesOf(v contract.Value) []string {
	items := v.LooseItems()
	if v.There && len(items) == 0 {
		v.Note("no type stands here: the word for that is none")
	}
	for _, item := range items {
		switch word := item.Is.(string); {
		case !slices.Contains(ArtifactTypes, word):
			item.Note("%q is none of %s", contract.Clip(word), strings.Join(ArtifactTypes, ", "))
		case word == "none" && len(items) > 1:
			item.Note("none stands beside other types")
		}
	}
	return contract.Texts(items)
}

// firstText returns the first of texts that says anything.
func firstText(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
