package router

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/plugin"
)

// The points of a mark. A share is of the whole: all the types that an operation
// reads, or as many words as count.
const (
	pointsPillar   = 1.0
	pointsArtifact = 0.8 // for the share of the types it reads that are at hand
	pointsFacet    = 0.6 // for the share of its capabilities' words in the text, each worth facetShare
	pointsWords    = 0.4 // for the share of its name's, titles' and tags' words in the text, each worth wordShare
	facetShare     = 0.3
	wordShare      = 0.2
)

// shortWord is the length in letters from which a word of a name, a title or a
// tag counts: of and to say nothing.
const shortWord = 3

// A scored candidate has its points and what keeps it out.
type scored struct {
	Candidate
	points   float64
	marks    []Mark
	named    bool   // the text has its name
	obstacle string // "" where nothing keeps it out
}

func (s *scored) mark(points float64, format string, args ...any) {
	if points = rounded(points); points != 0 {
		s.points = rounded(s.points + points)
		s.marks = append(s.marks, Mark{points, fmt.Sprintf(format, args...)})
	}
}

func rounded(points float64) float64 { return math.Round(points*1000) / 1000 }

// score gives a candidate its points and finds what keeps it out.
func (r *request) score(c Candidate) *scored {
	s := &scored{Candidate: c, marks: []Mark{}, named: r.named(c)}
	op := c.Operation
	if pillar := c.Manifest.Pillar; pillar != "" && pillar == r.pillar {
		s.mark(pointsPillar, "its pillar is %s", pillar)
	}
	if wanted, has := kinds(op.Consumes), r.reads(op); len(has) > 0 {
		s.mark(pointsArtifact*float64(len(has))/float64(len(wanted)), "it reads %s", strings.Join(has, ", "))
	}
	if words := r.found(facetWords(op), 2); len(words) > 0 {
		s.mark(pointsFacet*min(1, facetShare*float64(len(words))), "its capabilities say %s", strings.Join(words, ", "))
	}
	if words := r.found(titleWords(c), shortWord); len(words) > 0 {
		s.mark(pointsWords*min(1, wordShare*float64(len(words))), "its name, titles and tags say %s", strings.Join(words, ", "))
	}
	_, follows := r.after(c)
	s.obstacle = r.obstacle(c, s.points > 0 || follows)
	return s
}

// found returns those words that the text has, sorted, each once, of so many
// letters at least.
func (r *request) found(words []string, letters int) []string {
	return slices.DeleteFunc(distinct(words), func(word string) bool { return utf8.RuneCountInString(word) < letters || !r.says(word) })
}

// facetWords returns the words of an operation's capabilities, without their
// namespaces.
func facetWords(op *plugin.Operation) []string {
	var words []string
	for _, facet := range op.Facets {
		namespace, value, _ := strings.Cut(facet, ":")
		if value == "" {
			value = namespace
		}
		words = append(words, strings.Fields(wordsOf(strings.ToLower(value)))...)
	}
	return words
}

// titleWords returns the words by which a person knows a candidate.
func titleWords(c Candidate) []string {
	texts := append([]string{c.Manifest.Name, c.Manifest.DisplayName, c.Operation.Name, c.Operation.Title}, c.Operation.Tags...)
	return strings.Fields(wordsOf(strings.ToLower(strings.Join(texts, " "))))
}

// obstacle says what keeps a candidate out.
func (r *request) obstacle(c Candidate, fits bool) string {
	switch op := c.Operation; {
	case !r.query.Hidden && (op.Stability == plugin.Experimental || op.Stability == plugin.Deprecated):
		return fmt.Sprintf("it is %s, which is hidden unless it is named", op.Stability)
	case !r.query.Hidden && op.Hidden:
		return "it is hidden unless it is named"
	case op.NeedsModel && !r.query.Model:
		return "it needs a model, and none is connected"
	case c.Manifest.Pillar != "" && c.Manifest.Pillar != r.pillar:
		return fmt.Sprintf("its pillar is %s, and the request's is %s", c.Manifest.Pillar, r.pillar)
	case !fits:
		return "nothing of the request speaks for it"
	}
	return ""
}

// reads returns the types of artifacts at hand that an operation reads, sorted.
func (r *request) reads(op *plugin.Operation) []string {
	return slices.DeleteFunc(kinds(op.Consumes), func(kind string) bool { return !slices.Contains(r.kinds, kind) })
}

// kinds returns types of artifacts in the contract's own spelling, sorted, each
// once, without the one that means none.
func kinds(types []string) []string {
	var found []string
	for _, kind := range types {
		if kind != none {
			found = append(found, artifactType(kind))
		}
	}
	return distinct(found)
}

// distinct returns the strings sorted, each once.
func distinct(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
