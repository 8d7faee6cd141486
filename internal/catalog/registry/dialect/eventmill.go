package dialect

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/plugin"
)

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
	toolName  = regexp.MustCompile(`^[a-z0-9_]{1,128}$`)
	facetForm = regexp.MustCompile(`^[a-z]+:[A-Za-z0-9_.-]+$`)
	className = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// maxShort is how long a short description is (EM-04).
const maxShort = 240

// eventMill reads a manifest of Event Mill: one tool. It is lenient, since
// published manifests depart from their contract in many ways: what cannot be
// understood or trusted is a problem, and every other departure a note.
func (p *page) eventMill(top value) *plugin.Manifest {
	top.eventMillKeys()
	name := top.get("tool_name").of("EM-03").toolName()
	pillar := top.get("pillar").of("EM-02").pillar()
	entry := top.get("entry_point").of("EM-01").toolEntry()
	if place := p.home.place; place != "" {
		if entry != "" {
			entry = place + "/" + entry
		}
		top.get("tool_name").neighbours(name)
	}
	short := top.get("description_short").of("EM-04").looseText()
	if n := utf8.RuneCountInString(short); n > maxShort {
		top.get("description_short").of("EM-04").note("it has %d characters; the contract allows %d", n, maxShort)
	}
	op := &plugin.Operation{
		Name:        name,
		Kind:        plugin.Tool,
		Description: firstText(top.get("description_long").of("EM-04").looseText(), top.get("description_llm").of("EM-04").looseText(), short),
		Input:       top.get("input_schema").of("EM-17").toolSchema("schemas/input.schema.json"),
		Output:      top.get("output_schema").of("EM-17").toolSchema("schemas/output.schema.json"),
		Timeout:     timeouts[top.get("timeout_class").of("EM-19").class("medium", timeoutClasses, "fast", "medium", "slow")],
		Facets:      top.get("capabilities").of("EM-05").facets(),
		Tags:        top.get("tags").of("EM-04").looseWords(),
		Consumes:    top.get("artifacts_consumed").of("EM-06").artifactTypes(),
		Produces:    top.get("artifacts_produced").of("EM-06").artifactTypes(),
		ChainsTo:    top.get("chains_to").of("EM-04").looseWords(),
		ChainsFrom:  top.get("chains_from").of("EM-04").looseWords(),
		Stability: plugin.Stability(top.get("stability").of("EM-07").class(string(plugin.Experimental), stabilities,
			string(plugin.Experimental), string(plugin.Verified), string(plugin.Core), string(plugin.Deprecated))),
		Cost:       top.get("cost_hint").of("EM-19").class("low", costs, "low", "moderate", "high"),
		AutoInvoke: top.get("safe_for_auto_invoke").of("EM-20").looseTruth(),
		NeedsModel: top.get("requires_llm").of("EM-04").looseTruth(),
		Advisory:   true,
	}
	op.Output = top.get("output_schema").outOfEnvelope(op.Output)
	for _, key := range []string{"requires_auth", "external_connectivity"} {
		top.get(key).of("EM-04").looseTruth()
	}
	for _, key := range []string{"dependencies", "result_summary_fields"} {
		top.get(key).of("EM-04").looseWords()
	}
	return &plugin.Manifest{
		Name:         name,
		Version:      top.get("version").of("EM-23").looseVersion(),
		DisplayName:  top.get("display_name").of("EM-04").looseText(),
		Owner:        firstText(top.get("author").of("EM-04").looseText(), top.get("owner_team").of("EM-04").looseText()),
		Description:  short,
		Dialect:      EventMill,
		Pillar:       pillar,
		Dir:          p.home.place,
		Runner:       plugin.Runner{Kind: processRunner, Entry: entry, Class: top.get("class_name").of("EM-08").className(), Protocol: "2"},
		Isolation:    plugin.IsolationSession,
		Capabilities: []string{"artifacts", "llm", "reference_data", "session"},
		Operations:   []*plugin.Operation{op},
	}
}

// eventMillKeys holds the keys against the contract's: it has no others.
func (v value) eventMillKeys() {
	for _, key := range requiredInPractice {
		v.get(key).of("EM-04").required()
	}
	for _, key := range requiredByContract {
		if place := v.get(key).of("EM-04"); !place.there {
			place.note("it is missing, and the contract asks for it")
		}
	}
	all := slices.Concat(requiredInPractice, requiredByContract, optionalByContract)
	for _, key := range v.keys() {
		if slices.Contains(all, key) {
			continue
		}
		if meant, near := Nearest(key, all); near && !v.has(meant) {
			v.get(key).of("EM-04").note("the contract has no such key, so nothing reads it; did you mean %s?", meant)
		} else {
			v.get(key).of("EM-04").note("the contract has no such key")
		}
	}
}

// toolName returns the name here, of a tool or a pillar.
func (v value) toolName() string {
	text, isText := v.is.(string)
	switch {
	case !v.there: // the problem is noted
	case !isText:
		v.wrong("text")
	case !toolName.MatchString(text):
		v.problem("%q is no name here: it takes small letters, digits and underscores, up to 128 of them", clip(text))
	default:
		return text
	}
	return ""
}

// neighbours holds the name of a tool against its directory and its tree.
func (v value) neighbours(name string) {
	at := v.page.home
	dir := at.place[strings.LastIndexByte(at.place, '/')+1:]
	if name == "" {
		return
	}
	if dir != name {
		v.of("EM-02").note("its directory is called %s; the contract calls it like the tool", clip(dir))
	}
	if other := twin(at.tree, at.place, name); other != "" {
		v.of("EM-03").problem("the tool in %s of the same tree is called so too, and of two the last is taken: give one of them another name", clip(other))
	}
}

// pillar returns the pillar here. In a tree it is the directory that the tool
// stands in.
func (v value) pillar() string {
	pillar := v.toolName()
	if pillar == "" {
		return ""
	}
	if dir, _, inTree := strings.Cut(v.page.home.place, "/"); inTree && dir != pillar {
		v.problem("it stands in the directory of the pillar %s: one of them is wrong", clip(dir))
		return ""
	}
	if !slices.Contains(Pillars, pillar) {
		v.note("%q is none of %s", clip(pillar), strings.Join(Pillars, ", "))
	}
	return pillar
}

// toolEntry returns the file of Python here, which must be one of the tool's own.
func (v value) toolEntry() string {
	name := v.word()
	if name == "" {
		return ""
	}
	if !strings.HasSuffix(name, ".py") {
		v.problem("%s is no Python file (.py)", clip(name))
		return ""
	}
	if _, err := v.page.files.regular(name); err != nil {
		v.problem("%s: %v", clip(name), err)
		return ""
	}
	return strings.TrimPrefix(name, "./")
}

// className returns the name of a Python class here.
func (v value) className() string {
	name := v.word()
	if name != "" && !className.MatchString(name) {
		v.problem("%q is no name of a Python class", clip(name))
		return ""
	}
	return name
}

// class returns the one of choices that stands here, or the one that another
// word for it stands for, or def.
func (v value) class(def string, others map[string]string, choices ...string) string {
	text, isText := v.is.(string)
	switch meant := others[text]; {
	case !v.there: // the contract's own default, or missing and noted
	case !isText:
		v.note("text belongs here, not %s: it is taken for %s", v.kind(), def)
	case slices.Contains(choices, text):
		return text
	case meant != "":
		v.note("%q is none of %s: it is taken for %s", text, strings.Join(choices, ", "), meant)
		return meant
	default:
		v.note("%q is none of %s: it is taken for %s", clip(text), strings.Join(choices, ", "), def)
	}
	return def
}

// facets returns what the tool is about. All words count, those that are not
// of the contract's form too.
func (v value) facets() []string {
	items := v.looseItems()
	if v.there && len(items) == 0 {
		v.note("no capability stands here: nothing is found by them")
	}
	for _, item := range items {
		word := item.is.(string)
		namespace, _, _ := strings.Cut(word, ":")
		switch {
		case !facetForm.MatchString(word):
			item.note("%q has not the form namespace:name, such as operation:search", clip(word))
		case !slices.Contains(facetNamespaces, namespace):
			item.note("the namespace %s is none of %s", clip(namespace), strings.Join(facetNamespaces, ", "))
		}
	}
	return texts(items)
}

// artifactTypes returns the types of artifacts here. Those that the contract
// does not know count too.
func (v value) artifactTypes() []string {
	items := v.looseItems()
	if v.there && len(items) == 0 {
		v.note("no type stands here: the word for that is none")
	}
	for _, item := range items {
		switch word := item.is.(string); {
		case !slices.Contains(ArtifactTypes, word):
			item.note("%q is none of %s", clip(word), strings.Join(ArtifactTypes, ", "))
		case word == "none" && len(items) > 1:
			item.note("none stands beside other types")
		}
	}
	return texts(items)
}
