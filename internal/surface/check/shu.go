package check

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/contract/shu"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// The checks of a Shu plugin, each with the row of the requirements it is about.
const (
	shuManifest = "manifest"
	shuImports  = "imports"
	shuSchemas  = "schemas"
	shuAuth     = "no auth fields"
	shuFeeds    = "feeds"
	shuOutput   = "output schema"
	shuHints    = "hints"
	shuHost     = "host"
)

var shuRows = map[string]string{
	shuManifest: "SH-08", shuImports: "SH-19", shuSchemas: "SH-01", shuAuth: "SH-28", shuFeeds: "SH-26", shuOutput: "SH-05", shuHints: "SH-27", shuHost: "SH-18",
}

// authFields are what a schema may not ask for: "Plugins MUST NOT include auth
// fields in parameter schemas" (Capability-driven Auth Declaration).
var authFields = []string{"auth_mode", "user_email", "impersonate_email"}

// shu makes all checks of one Shu plugin. Its operations run against a host that
// is none, so that they have no effects. registered is nil where the host does
// not take it; failure says why, or why it could not be enabled.
func (c *checker) shu(ctx context.Context, dir string, registered *registry.Registered, failure error) error {
	found := map[string][]finding{}
	name := dir
	if registered != nil {
		name = registered.Name
	}
	if reading, _ := contract.Inspect(dir); reading != nil {
		for _, note := range reading.Notes {
			found[shuManifest] = append(found[shuManifest], finding{Warn, note.Row, "", note.String()})
		}
	}
	var problems contract.Problems
	errors.As(failure, &problems)
	for _, p := range problems {
		check := shuManifest
		switch {
		case p.Row == shuRows[shuImports]:
			check = shuImports
		case p.File == "code":
			check = shuSchemas
		}
		found[check] = append(found[check], finding{Fail, p.Row, "", p.String()})
	}
	points := []string{shuManifest, shuImports}
	var shown registry.Shown
	switch {
	case failure != nil && len(problems) == 0:
		c.add(name, starts, Fail, "%s", messageOf(failure))
	case failure != nil && len(found[shuSchemas]) > 0:
		points = append(points, shuSchemas)
	case failure == nil:
		var err error
		if shown, err = c.host.Registry.Show(ctx, registered.Name+"@"+registered.Version); !c.judge(name, starts, err) {
			return nil
		}
		for _, op := range shown.Manifest.Operations {
			schemaFindings(op, found)
		}
		found[shuFeeds] = feedFindings(shown.Manifest)
		points = append(points, shuSchemas, shuAuth, shuFeeds, shuOutput, shuHints)
	}
	for _, check := range points {
		for _, f := range found[check] {
			c.result(Result{name, check, f.outcome, f.String(), cmp.Or(f.row, shuRows[check])})
		}
		if len(found[check]) == 0 {
			c.result(Result{Plugin: name, Check: check, Outcome: Pass, Row: shuRows[check]})
		}
	}
	if shown.Manifest == nil {
		return ctx.Err()
	}
	c.honest(ctx, shown)
	c.rehearse(ctx, shown)
	return c.compatible(ctx, shown)
}

// rehearse reports what the code of a plugin asks of the host and would not get,
// each with its rule and place.
func (c *checker) rehearse(ctx context.Context, s registry.Shown) {
	var answer struct {
		Findings []struct {
			Rule    string `json:"rule"`
			File    string `json:"file"`
			Line    int    `json:"line"`
			Message string `json:"message"`
			Warn    bool   `json:"warn"`
		} `json:"findings"`
	}
	raw, err := c.host.Runner.Rehearse(ctx, packageOf(s), s.Manifest)
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	if err != nil {
		c.result(Result{s.Name, shuHost, Fail, "its operations could not be rehearsed: " + messageOf(err), shuRows[shuHost]})
		return
	}
	for _, f := range answer.Findings {
		outcome := Fail
		if f.Warn {
			outcome = Warn
		}
		c.result(Result{s.Name, shuHost, outcome, fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Rule, f.Message), shuRows[shuHost]})
	}
	if len(answer.Findings) == 0 {
		c.result(Result{Plugin: s.Name, Check: shuHost, Outcome: Pass, Row: shuRows[shuHost]})
	}
}

// schemaFindings adds what is wrong with the schemas of an operation.
func schemaFindings(op *plugin.Operation, found map[string][]finding) {
	add := func(check string, f finding) { found[check] = append(found[check], f) }
	if len(op.Input) == 0 {
		add(shuSchemas, doubtful(op.Name, "the code has no schema for its parameters: no form can be made, and nothing is checked"))
	} else if op.Title == "" || op.Description == "" {
		add(shuSchemas, doubtful(op.Name, "its schema has no title or no description, by which a model would know what it is for"))
	}
	if len(op.Output) == 0 && !slices.Contains(op.PolicyTags, shu.ActionTag) {
		add(shuOutput, doubtful(op.Name, "get_output_schema() says nothing, so what it returns is not checked"))
	}
	var schema any
	if json.Unmarshal(op.Input, &schema) != nil {
		return
	}
	if top, isObject := schema.(map[string]any); isObject {
		known, _ := top["properties"].(map[string]any)
		required, _ := top["required"].([]any)
		for _, item := range required {
			if name, isText := item.(string); isText && known[name] == nil {
				add(shuSchemas, bad(op.Name, "its schema requires %s, which is none of its properties", name))
			}
		}
	}
	properties(schema, "", 0, func(at, name string, property map[string]any) {
		place := op.Name + ": at " + at
		if slices.Contains(authFields, name) {
			add(shuAuth, doubtful(place, "how an account is used is for the host to ask: say it in op_auth, and take the field out"))
		}
		for _, says := range hintFaults(property) {
			add(shuHints, doubtful(place, "%s", says))
		}
	})
}

// feedFindings says what is wrong with the keys for feeds.
func feedFindings(m *plugin.Manifest) []finding {
	var found []finding
	for _, name := range m.Feed.Allowed {
		if op := m.Operation(name); op != nil && len(op.Input) == 0 {
			found = append(found, doubtful("allowed_feed_ops", "%s is no operation that the code describes", name))
		}
	}
	for _, name := range append(slices.Clone(m.Feed.Allowed), m.Feed.Default) {
		op := m.Operation(name)
		if op == nil {
			continue
		}
		var s struct {
			Properties struct {
				Op struct {
					Enum []any `json:"enum"`
				} `json:"op"`
			} `json:"properties"`
		}
		if json.Unmarshal(op.Input, &s) == nil && len(s.Properties.Op.Enum) > 0 && !slices.Contains(s.Properties.Op.Enum, any(name)) {
			found = append(found, bad("allowed_feed_ops and default_feed_op", "%s is not in the enum of op in its schema", name))
		}
	}
	effects := slices.ContainsFunc(m.Operations, func(op *plugin.Operation) bool { return len(op.Effects) > 0 })
	switch d := m.Feed.Default; {
	case d != "" && len(m.Feed.Allowed) > 0 && !slices.Contains(m.Feed.Allowed, d):
		found = append(found, bad("default_feed_op", "%s is none of allowed_feed_ops", d))
	case d != "" && len(m.Feed.Allowed) == 0 && effects:
		found = append(found, doubtful("allowed_feed_ops", "it is missing: without a list a feed calls operations without effects only"))
	}
	return found
}

// maxFormDepth is how deep properties are looked for.
const maxFormDepth = 32

// properties calls each for every property of a schema, at any depth.
func properties(schema any, at string, depth int, each func(at, name string, property map[string]any)) {
	object, isObject := schema.(map[string]any)
	if !isObject || depth > maxFormDepth {
		return
	}
	for _, key := range []string{"properties", "$defs", "definitions"} {
		members, _ := object[key].(map[string]any)
		for _, name := range sortedKeys(members) {
			place := at + "/" + key + "/" + name
			if property, isObject := members[name].(map[string]any); isObject && key == "properties" {
				each(place, name, property)
			}
			properties(members[name], place, depth+1, each)
		}
	}
	for _, key := range []string{"items", "additionalProperties", "if", "then", "else", "not"} {
		properties(object[key], at+"/"+key, depth+1, each)
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		branches, _ := object[key].([]any)
		for _, branch := range branches {
			properties(branch, at+"/"+key, depth+1, each)
		}
	}
}
