package check

import (
	"slices"
	"strconv"
	"strings"
)

// The words that published manifests have in place of the contract's. The host
// understands them, so that they are warnings; whatever else departs from the
// manifest's schema is a failure.
var (
	publishedKeys = []string{"model_tier", "description_llm"}
	publishedGaps = []string{"timeout_class", "cost_hint", "safe_for_auto_invoke", "requires_llm", "stability"} // the loader has a value for them
	publishedAre  = map[string][]string{"timeout_class": {"short", "long"}, "cost_hint": {"medium"}, "stability": {"stable"}}
	publishedIn   = map[string][]string{"artifacts_consumed": {"log_file", "markdown", "pdf"}, "artifacts_produced": {"log_file", "markdown", "pdf"}}
)

// published reports whether what stands at a place of the manifest is a
// departure that published plugins have.
func (t *mill) published(pointer string) bool {
	key, rest, inside := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	value, there := t.manifest[key]
	switch {
	case inside:
		items, _ := value.([]any)
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 || n >= len(items) {
			return false
		}
		word, _ := items[n].(string)
		namespace, _, _ := strings.Cut(word, ":")
		return slices.Contains(publishedIn[key], word) || key == "capabilities" && strings.Contains(namespace, "_")
	case !there:
		return slices.Contains(publishedGaps, key) || key == "description_long" && t.text("description_llm") != ""
	case slices.Contains(publishedKeys, key):
		return true
	case publishedIn[key] != nil:
		items, isList := value.([]any)
		return isList && len(items) == 0
	default:
		word, _ := value.(string)
		return slices.Contains(publishedAre[key], word)
	}
}

// capabilities holds what the tool says it is about against what it says it
// reads and makes.
func (t *mill) capabilities() []finding {
	var found []finding
	own := slices.Concat(t.words("artifacts_consumed"), t.words("artifacts_produced"))
	for i, facet := range t.words("capabilities") {
		if kind, ok := strings.CutPrefix(facet, "artifact:"); ok && !slices.Contains(own, kind) {
			found = append(found, doubtful(at("manifest.json", "/capabilities/"+strconv.Itoa(i)), "%s is neither under artifacts_consumed nor under artifacts_produced", kind))
		}
	}
	return found
}

// artifacts holds the types that the tool declares against what its code does.
func (t *mill) artifacts() []finding {
	var found []finding
	makes := slices.ContainsFunc(t.words("artifacts_produced"), func(kind string) bool { return kind != "none" })
	registers := strings.Contains(t.source, "register_artifact")
	switch {
	case makes && !registers:
		found = append(found, doubtful(at("manifest.json", "/artifacts_produced"), "%s calls no context.register_artifact, which is how an artifact is made", t.text("entry_point")))
	case !makes && registers:
		found = append(found, doubtful(at("manifest.json", "/artifacts_produced"), "the code calls context.register_artifact, and no type of what it makes stands here"))
	}
	if words := t.words("artifacts_consumed"); len(words) == 1 && words[0] == "none" && strings.Contains(t.source, "context.artifacts") {
		found = append(found, doubtful(at("manifest.json", "/artifacts_consumed"), "the code looks at context.artifacts, and none stands here"))
	}
	return found
}
