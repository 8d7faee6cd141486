package schema

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/budget"
)

// Bounds of one comparison. What is beyond them counts as unclear.
const (
	maxComparisons = 20_000
	maxNested      = 64
	maxComparing   = 1 << 22 // steps of holding values against schemas
)

// A comparison finds out whether every value that sub accepts is accepted by
// sup. It goes by keyword: each that sup has must follow from what sub has.
type comparison struct {
	direction Direction
	sub, sup  *side
	running   map[pair]bool // for schemas that contain themselves
	left      int           // comparisons that may still be made
	work      *budget.Steps // of the values that are held against a schema
}

// A pair is two schemas that are being compared.
type pair struct{ sub, sup string }

// A node is one schema within a side.
type node struct {
	side  *side
	at    string         // where it stands, as a JSON pointer
	keys  map[string]any // nil for a boolean schema
	never bool           // it accepts nothing
	split string         // not empty: only its values of this type
}

// child returns a schema under a keyword of n.
func (n node) child(value any, path ...string) node {
	at := n.at
	for _, part := range path {
		at += "/" + escape.Replace(part)
	}
	return n.side.node(value, at)
}

// has reports whether one of the keywords is there.
func (n node) has(keywords ...string) bool {
	return slices.ContainsFunc(keywords, func(k string) bool { _, there := n.keys[k]; return there })
}

// anything reports whether n accepts every value.
func (n node) anything() bool { return !n.never && n.split == "" && !n.has(constraints...) }

// allTypes are those of JSON Schema; an integer is a number too.
var allTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// types returns which types the values may have.
func (n node) types() []string {
	types := allTypes
	switch t := n.keys["type"].(type) {
	case string:
		types = []string{t}
	case []any:
		types = nil
		for _, one := range t {
			if name, ok := one.(string); ok {
				types = append(types, name)
			}
		}
	}
	if n.split != "" {
		types = []string{n.split}
	}
	return types
}

// some reports whether the values may be of one of these types.
func (n node) some(types ...string) bool {
	return slices.ContainsFunc(n.types(), func(t string) bool { return slices.Contains(types, t) })
}

// fits returns what keeps values of sub from being accepted by sup.
func (c *comparison) fits(sub, sup node, path []string) []Change {
	if sub.never || sup.anything() {
		return nil
	}
	if sup.never {
		return one(c.breaking(path, "", "nothing is accepted any more", "something may stand here that never did"))
	}
	if c.left--; c.left < 0 || len(path) > maxNested {
		return one(c.unclear(path, "", "the schemas are too large or too deep to compare"))
	}
	here := pair{sub.at + " " + sub.split, sup.at}
	if c.running[here] {
		return nil // what is below is being compared already
	}
	c.running[here] = true
	defer delete(c.running, here)

	sub, ok := c.resolved(sub)
	target, okSup := c.resolved(sup)
	if !ok || !okSup {
		return one(c.unclear(path, "$ref", "a reference beside other keywords, or one that cannot be followed"))
	}
	if target.at != sup.at || sub.never || target.never { // it was a reference
		return c.fits(sub, target, path)
	}
	if values, finite := sub.values(); finite {
		return c.each(sub, sup, values, path)
	}
	if branches := sub.branches(); branches != nil {
		return c.fromBranches(sub, sup, branches, path)
	}
	return c.keywords(sub, sup, path)
}

// resolved follows references. One with other keywords beside it is not followed.
func (c *comparison) resolved(n node) (node, bool) {
	for range maxNested {
		if n.has("$dynamicRef", "$recursiveRef") {
			return n, false
		}
		ref, there := n.keys["$ref"].(string)
		if !there {
			return n, true
		}
		for _, k := range constraints {
			if k != "$ref" && n.has(k) {
				return n, false
			}
		}
		split := n.split
		var ok bool
		if n, ok = n.side.follow(ref); !ok {
			return n, false
		}
		n.split = split
	}
	return n, false
}

// values returns the values that n lists, where it does.
func (n node) values() ([]any, bool) {
	if value, there := n.keys["const"]; there {
		return []any{value}, true
	}
	list, ok := n.keys["enum"].([]any)
	return list, ok
}

// each holds the values that sub lists against sup.
func (c *comparison) each(sub, sup node, values []any, path []string) []Change {
	keyword := "enum"
	if sub.has("const") {
		keyword = "const"
	}
	var lost []string
	for _, value := range values {
		own, err := c.accepts(sub, value)
		if err != nil {
			return one(c.unclear(path, keyword, "its values cannot be held against the other schema"))
		}
		if !own {
			continue
		}
		other, err := c.accepts(sup, value)
		if err != nil {
			return one(c.unclear(path, keyword, "its values cannot be held against the other schema"))
		}
		if !other {
			lost = append(lost, show(value))
		}
	}
	if len(lost) == 0 {
		return nil
	}
	if len(lost) > 5 {
		lost = append(lost[:5], fmt.Sprintf("%d more", len(lost)-5))
	}
	list := strings.Join(lost, ", ")
	return one(c.breaking(path, keyword, list+" is refused now", list+" may stand here now"))
}

// accepts reports whether a value fits one schema of a side.
func (c *comparison) accepts(n node, value any) (bool, error) {
	compiled, err := n.side.compiler.Compile(resource + (&url.URL{Fragment: n.at}).String())
	if err != nil {
		return false, err
	}
	e := newEvaluation(c.work, true)
	fits := e.evaluate(&frame{schema: compiled, value: value, fresh: true})
	return fits, c.work.Err()
}

// branches returns the alternatives of which a value of n fits at least one.
func (n node) branches() []node {
	for _, keyword := range []string{"anyOf", "oneOf"} {
		list, _ := n.keys[keyword].([]any)
		var found []node
		for i, branch := range list {
			found = append(found, n.child(branch, keyword, strconv.Itoa(i)))
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// fromBranches compares where sub has alternatives: either what stands beside
// them is enough, or each of them fits.
func (c *comparison) fromBranches(sub, sup node, branches []node, path []string) []Change {
	var changes []Change
	for _, branch := range branches {
		changes = append(changes, c.fits(branch, sup, path)...)
	}
	beside := slices.ContainsFunc(constraints, func(k string) bool { return k != "anyOf" && k != "oneOf" && sub.has(k) })
	if holds(changes) || !beside {
		return changes
	}
	return c.keywords(sub, sup, path)
}

// holds reports whether nothing among changes keeps a value from being accepted.
func holds(changes []Change) bool { w := Worst(changes); return w == "" || w == Additive }

// keywords holds each keyword of sup against sub.
func (c *comparison) keywords(sub, sup node, path []string) []Change {
	var changes []Change
	add := func(more ...Change) { changes = append(changes, more...) }
	add(c.typed(sub, sup, path)...)
	if values, finite := sup.values(); finite {
		if len(values) > 5 {
			values = values[:5:5]
		}
		var list []string
		for _, v := range values {
			list = append(list, show(v))
		}
		add(c.breaking(path, "enum", "only some values are accepted now: "+strings.Join(list, ", "), "any value may stand here, and it was one of a list before"))
	}
	add(c.bounds(sub, sup, path)...)
	if sub.some("string") {
		add(c.alike(sub, sup, path, "pattern", "format")...)
	}
	if sub.some("object") {
		add(c.members(sub, sup, path)...)
	}
	if sub.some("array") {
		add(c.items(sub, sup, path)...)
	}
	add(c.combined(sub, sup, path)...)
	return changes
}

// typed compares types.
func (c *comparison) typed(sub, sup node, path []string) []Change {
	if !sup.has("type") {
		return nil
	}
	allowed := sup.types()
	var lost []string
	for _, t := range sub.types() {
		if !slices.Contains(allowed, t) && (t != "integer" || !slices.Contains(allowed, "number")) {
			lost = append(lost, t)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	list := strings.Join(lost, ", ")
	return one(c.breaking(path, "type", "values of type "+list+" are refused now", "values of type "+list+" may stand here now"))
}

// alike wants keywords of sup to stand in sub with the same value.
func (c *comparison) alike(sub, sup node, path []string, keywords ...string) []Change {
	var changes []Change
	for _, k := range keywords {
		switch {
		case !sup.has(k) || sub.has(k) && reflect.DeepEqual(sub.keys[k], sup.keys[k]):
		case !sub.has(k):
			changes = append(changes, c.breaking(path, k, fmt.Sprintf("%s must hold now, and nothing was asked before", show(sup.keys[k])), fmt.Sprintf("%s held before and need not now", show(sup.keys[k]))))
		default:
			changes = append(changes, c.unclear(path, k, "another one stands here"))
		}
	}
	return changes
}

// members compares what is said of an object's members.
func (c *comparison) members(sub, sup node, path []string) []Change {
	var changes []Change
	add := func(more ...Change) { changes = append(changes, more...) }
	ownRequired := texts(sub.keys["required"])
	for _, name := range texts(sup.keys["required"]) {
		if !slices.Contains(ownRequired, name) {
			add(c.breaking(path, "required", fmt.Sprintf("%q must be given now", name), fmt.Sprintf("%q was always there and need not be now", name)))
		}
	}
	patterns := c.equal(sub.keys["patternProperties"], sup.keys["patternProperties"])
	if !patterns && sup.has("patternProperties") || !patterns && sup.has("additionalProperties") {
		add(c.unclear(path, "patternProperties", "other patterns stand here"))
	}
	mine, _ := sub.keys["properties"].(map[string]any)
	theirs, _ := sup.keys["properties"].(map[string]any)
	rest := sub.rest("additionalProperties")
	theirRest := sup.rest("additionalProperties")
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		want, at := sup.child(theirs[name], "properties", name), append(slices.Clone(path), "properties", name)
		switch schema, named := mine[name]; {
		case named:
			add(c.fits(sub.child(schema, "properties", name), want, at)...)
		case rest.never && !sub.has("patternProperties") && c.direction == Input:
			add(Change{Pointer(at), Additive, "a new member that may be given"})
		case want.anything():
		case sub.has("patternProperties"):
			add(c.unclear(at, "", "a member that only patterns spoke of, or speak of"))
		case rest.anything() && c.direction == Input:
			add(c.unclear(at, "", "a new member, and any value was let through under its name before"))
		case rest.anything():
			add(c.breaking(at, "", "", "nothing is said of this member any more"))
		default:
			add(c.fits(rest, want, at)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(mine)) {
		if _, named := theirs[name]; named {
			continue
		}
		own, at := sub.child(mine[name], "properties", name), append(slices.Clone(path), "properties", name)
		switch {
		case own.never:
		case theirRest.never && c.direction == Output: // who reads passes over what they do not know
			add(Change{Pointer(at), Additive, "a new member"})
		case theirRest.never:
			add(c.breaking(at, "", "this member is refused now", ""))
		default:
			add(c.fits(own, theirRest, at)...)
		}
	}
	switch at := append(slices.Clone(path), "additionalProperties"); {
	case rest.never || theirRest.anything():
	case theirRest.never:
		add(c.breaking(at, "", "members that are not named are refused now", "members that are not named may be there now"))
	default:
		add(c.fits(rest, theirRest, at)...)
	}
	return changes
}

// rest returns what holds for all that is not named, anything where it is not said.
func (n node) rest(keyword string) node {
	value, there := n.keys[keyword]
	if !there {
		value = true
	}
	return n.child(value, keyword)
}

// items compares what is said of an array's items.
func (c *comparison) items(sub, sup node, path []string) []Change {
	var changes []Change
	if sup.keys["uniqueItems"] == true && sub.keys["uniqueItems"] != true {
		changes = append(changes, c.breaking(path, "uniqueItems", "items must differ now", "items may be equal now"))
	}
	if sub.tuple() || sup.tuple() {
		return append(changes, c.group(sub, sup, path, "prefixItems", "items", "additionalItems")...)
	}
	if most, there, ok := number(sub.keys, "maxItems"); sup.has("items") && !(there && ok && most.Sign() == 0) {
		changes = append(changes, c.fits(sub.rest("items"), sup.rest("items"), append(slices.Clone(path), "items"))...)
	}
	return changes
}

// tuple reports whether items are told apart by their place.
func (n node) tuple() bool {
	_, list := n.keys["items"].([]any)
	return list || n.has("prefixItems")
}

// combined compares what combines schemas, and all that is compared as a whole.
func (c *comparison) combined(sub, sup node, path []string) []Change {
	var changes []Change
	all, _ := sup.keys["allOf"].([]any)
	for i, branch := range all {
		if own, _ := sub.keys["allOf"].([]any); slices.ContainsFunc(own, func(o any) bool { return c.equal(o, branch) }) {
			continue
		}
		more := c.fits(sub, sup.child(branch, "allOf", strconv.Itoa(i)), path)
		if sub.has("allOf") && !holds(more) {
			more = one(c.unclear(path, "allOf", "it combines other schemas"))
		}
		changes = append(changes, more...)
	}
	if list, ok := sup.keys["anyOf"].([]any); ok && !(sub.has("anyOf") && c.equal(sub.keys["anyOf"], sup.keys["anyOf"])) {
		changes = append(changes, c.anyOf(sub, sup, list, path)...)
	}
	for _, keywords := range wholes {
		changes = append(changes, c.group(sub, sup, path, keywords...)...)
	}
	for _, k := range []string{"unevaluatedProperties", "unevaluatedItems"} { // they depend on all that stands beside them
		if sup.has(k) && !c.equal(any(sub.keys), any(sup.keys)) {
			changes = append(changes, c.unclear(path, k, "it depends on keywords that differ"))
		}
	}
	return changes
}

// wholes are keywords that are compared together and only for being equal.
var wholes = [][]string{
	{"oneOf"}, {"not"}, {"if", "then", "else"}, {"propertyNames"}, {"dependentRequired"}, {"dependentSchemas"}, {"dependencies"},
	{"contains", "minContains", "maxContains"}, {"$dynamicRef"}, {"$recursiveRef"},
}

// group wants keywords of sup to stand in sub just the same.
func (c *comparison) group(sub, sup node, path []string, keywords ...string) []Change {
	if !sup.has(keywords...) {
		return nil
	}
	for _, k := range keywords {
		if sub.has(k) != sup.has(k) || sup.has(k) && !c.equal(sub.keys[k], sup.keys[k]) {
			return one(c.unclear(path, k, "it is not as it was"))
		}
	}
	return nil
}

// anyOf wants each way to be a value of sub to fit an alternative of sup.
func (c *comparison) anyOf(sub, sup node, list []any, path []string) []Change {
	ways := []node{sub}
	if types := sub.types(); len(types) > 1 && len(types) < len(allTypes) {
		ways = nil
		for _, t := range types {
			way := sub
			way.split = t
			ways = append(ways, way)
		}
	}
	for _, way := range ways {
		found := false
		for i := range list {
			found = found || holds(c.fits(way, sup.child(list[i], "anyOf", strconv.Itoa(i)), path))
		}
		if !found {
			return one(c.breaking(path, "anyOf", "an alternative that was accepted is refused now", "an alternative that was not there may stand here now"))
		}
	}
	return nil
}

// equal reports whether two values of keywords mean the same: they are equal,
// and so is all that they may refer to.
func (c *comparison) equal(a, b any) bool {
	return reflect.DeepEqual(a, b) && (!refers(a) || reflect.DeepEqual(c.sub.root, c.sup.root))
}
