package router

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MostChains is how many chains an answer has at most.
const MostChains = 10

// A Chain is one operation going on with what another makes.
type Chain struct {
	From    string `json:"from"` // plugin/operation
	To      string `json:"to"`
	Through string `json:"through,omitempty"` // the type of artifact that goes from one to the other
	Reason  string `json:"reason"`
}

// after returns how a candidate goes on with what ran last.
func (r *request) after(c Candidate) (Chain, bool) {
	for _, last := range r.last {
		if link, ok := chain(last, c); ok {
			return link, true
		}
	}
	return Chain{}, false
}

// chain returns how one operation goes on with what another makes, if it does.
func chain(from, to Candidate) (Chain, bool) {
	if from.Name() == to.Name() {
		return Chain{}, false
	}
	link := Chain{From: from.Name(), To: to.Name()}
	reads := kinds(to.Operation.Consumes)
	for _, kind := range kinds(from.Operation.Produces) {
		if slices.Contains(reads, kind) {
			link.Through = kind
			break
		}
	}
	switch {
	case mentions(from.Operation.ChainsTo, to):
		link.Reason = fmt.Sprintf("%s names it under chains_to", from.Manifest.Name)
	case mentions(to.Operation.ChainsFrom, from):
		link.Reason = fmt.Sprintf("it names %s under chains_from", from.Manifest.Name)
	case link.Through != "":
		link.Reason = fmt.Sprintf("it reads %s, which %s makes", link.Through, from.Manifest.Name)
	default:
		return Chain{}, false
	}
	return link, true
}

// mentions reports whether a list has a candidate, as plugin or plugin/operation.
func mentions(list []string, c Candidate) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		return strings.EqualFold(name, c.Manifest.Name) || strings.EqualFold(name, c.Name())
	})
}

// chains returns what goes on with what ran last and with what was chosen: what
// is declared before what only fits, and of the same kind the better source
// first. What is hidden, or needs a model that is not there, is left out.
func (r *request) chains(in []*scored, candidates []Candidate) []Chain {
	sources := slices.Clone(r.last)
	for _, s := range in {
		sources = append(sources, s.Candidate)
	}
	declared, fitting := []Chain{}, []Chain{}
	seen := map[[2]string]struct{}{}
	for _, from := range sources {
		at := [2]int{len(declared), len(fitting)}
		for _, to := range candidates {
			link, ok := chain(from, to)
			if _, again := seen[[2]string{link.From, link.To}]; !ok || again || r.barred(to) {
				continue
			}
			seen[[2]string{link.From, link.To}] = struct{}{}
			if mentions(from.Operation.ChainsTo, to) || mentions(to.Operation.ChainsFrom, from) {
				declared = append(declared, link)
			} else {
				fitting = append(fitting, link)
			}
		}
		byTarget := func(a, b Chain) int { return cmp.Compare(a.To, b.To) }
		slices.SortFunc(declared[at[0]:], byTarget)
		slices.SortFunc(fitting[at[1]:], byTarget)
	}
	all := append(declared, fitting...)
	return all[:min(MostChains, len(all))]
}

// barred reports whether a chain to a candidate would lead nowhere: one of
// another pillar is what a chain is for.
func (r *request) barred(c Candidate) bool {
	if r.named(c) {
		return false
	}
	there := *c.Manifest
	there.Pillar = ""
	return r.obstacle(Candidate{&there, c.Operation}, true) != ""
}
