package check

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Bounds of the code that is looked into.
const (
	maxSources     = 200
	maxEntries     = 20_000 // directories and other files too
	maxSourceBytes = 8 << 20
)

// code returns the Python of the tool but for its tests, without comments and
// texts, so that what is only spoken of does not count.
func (t *mill) code() string {
	var all strings.Builder
	files, entries := 0, 0
	_ = fs.WalkDir(t.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		entries++
		switch {
		case entries > maxEntries:
			return fs.SkipAll
		case err != nil:
			return nil // what cannot be read is not part of it
		case entry.IsDir() && (entry.Name() == "tests" || entry.Name() == "__pycache__" || name != "." && strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case !entry.Type().IsRegular() || path.Ext(name) != ".py":
			return nil
		}
		if files++; files > maxSources || all.Len() > maxSourceBytes {
			return fs.SkipAll
		}
		if raw, err := t.read(name); err == nil {
			all.WriteString(bare(string(raw)))
			all.WriteByte('\n')
		}
		return nil
	})
	return all.String()
}

var pythonText = pattern.New(`(?s)"""(?:\\.|.)*?"""|'''(?:\\.|.)*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*`)

var pythonGetattr = pattern.New(`\b(get|has)attr\(\s*([\w.]+)\s*,\s*["'](\w+)["']`)

// bare returns Python without its texts and comments. An attribute that is asked
// for by its name is spelled as one.
func bare(source string) string {
	return pythonText.ReplaceAllString(pythonGetattr.ReplaceAllString(source, "${1}attr($2.$3"), `""`)
}

var (
	asksModel   = pattern.New(`\.\s*(llm_query|query_text|query_multimodal|query_with_document)\b`)
	asksWhether = pattern.New(`\bllm_enabled\b|\bllm_query\s+is\s+(not\s+)?None\b|\b(if|not|and|or)\s+[\w.]*\bllm_query\b`)
	ownClient   = pattern.New(`(?m)^\s*(?:import|from)\s+(mcp|fastmcp|openai|anthropic|google\.generativeai|google\.genai|litellm)\b`)
)

// model holds what the tool says of its need of a model against its code. Code
// that looks whether there is one can do without.
func (t *mill) model() []finding {
	var found []finding
	declared, _ := t.manifest["requires_llm"].(bool)
	uses := asksModel.MatchString(t.source)
	place := at("manifest.json", "/requires_llm")
	switch {
	case uses && !declared && !asksWhether.MatchString(t.source):
		found = append(found, doubtful(place, "the code uses context.llm_query without looking whether there is one, and this does not say true"))
	case declared && !uses:
		found = append(found, doubtful(place, "it says true, and the code uses no context.llm_query"))
	}
	if own := ownClient.FindStringSubmatch(t.source); own != nil {
		found = append(found, finding{Fail, "EM-16", "", fmt.Sprintf("the code imports %s: models are reached through context.llm_query alone", own[1])})
	}
	return found
}

// overrides holds the tool's own reference data against what its manifest and
// its README say of it.
func (t *mill) overrides() []finding {
	var found []finding
	files := map[string]bool{} // the names of the data, without extensions
	entries, _ := fs.ReadDir(t.root.FS(), "data")
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") && entry.Name() != "README.md" {
			name := entry.Name()
			files[name], files[strings.TrimSuffix(name, path.Ext(name))] = true, true
		}
	}
	keys := overrideKeys(t.manifest["reference_data_overrides"])
	place := at("manifest.json", "/reference_data_overrides")
	if _, said := t.manifest["reference_data_overrides"]; !said && len(files) > 0 {
		return append(found, bad(place, "it is missing, and there is a directory data: it names what that overrides, even if that is nothing"))
	}
	readme, _ := t.read("README.md")
	for _, key := range keys {
		if !files[key] && !files[path.Base(key)] {
			found = append(found, bad(place, "it names %s, and there is no such file in data", key))
		}
		if !strings.Contains(string(readme), key) {
			found = append(found, bad("README.md", "it does not say what the override %s is for", key))
		}
	}
	return found
}

// overrideKeys returns the names of a list of names, a list of objects with a
// key or a name, or an object with names.
func overrideKeys(value any) []string {
	var keys []string
	switch list := value.(type) {
	case map[string]any:
		for key := range list {
			keys = append(keys, key)
		}
	case []any:
		for _, item := range list {
			switch is := item.(type) {
			case string:
				keys = append(keys, is)
			case map[string]any:
				for _, member := range []string{"key", "name"} {
					if key, ok := is[member].(string); ok {
						keys = append(keys, key)
						break
					}
				}
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// ownTests looks for a test in the package's own contract test.
func (t *mill) ownTests() []finding {
	const name = "tests/test_contract.py"
	raw, err := t.read(name)
	if err != nil {
		return []finding{bad(name, "%v", err)}
	}
	if !regexp.MustCompile(`(?m)^\s*(async\s+)?def\s+test`).MatchString(bare(string(raw))) {
		return []finding{bad(name, "it has no test: no function of it begins with test")}
	}
	return nil
}
