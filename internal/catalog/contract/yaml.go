package contract

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// The YAML that manifests are written in is the plain part of it: one
// document; keys that are simple words; no tags and no merge keys. Aliases
// are written out, and everything they stand for counts against maxNodes.

// maxKeys bounds the keys of all mappings together: the parser takes time in
// the square of them.
const maxKeys = 10_000

// parseYAML reads one YAML document. Problems carry the place where it is known.
func parseYAML(file string, data []byte) (tree any, problems Problems) {
	// The parser is not ours, and a manifest comes from anywhere.
	defer func() {
		if thrown := recover(); thrown != nil {
			tree, problems = nil, Whole(file, "it is not YAML that can be read here")
		}
	}()
	tokens := lexer.Tokenize(strings.TrimPrefix(string(data), "\ufeff"))
	if err := bounded(tokens); err != nil {
		return nil, Whole(file, err.Error())
	}
	parsed, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, Whole(file, yamlReason(err))
	}
	var root ast.Node
	for _, doc := range parsed.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentGroupType {
			continue
		}
		if root != nil {
			return nil, Whole(file, "it holds more than one document")
		}
		root = doc.Body
	}
	if root == nil {
		return nil, Whole(file, "it is empty")
	}
	walk := &yamlWalk{file: file, left: maxNodes, anchors: map[string]ast.Node{}}
	tree = walk.node("", root, 0)
	return tree, walk.problems
}

// bounded refuses nesting that the parser would follow with its own stack, and
// what it would take too long for, before it sees either.
func bounded(tokens token.Tokens) error {
	if len(tokens) > 2*maxNodes {
		return errTooMany
	}
	flow, run, values, keys, line := 0, 0, 0, 0, 0
	for _, t := range tokens {
		if t.Position != nil && t.Position.Line != line {
			line, values = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
			run++
		case token.SequenceEndType, token.MappingEndType:
			flow--
			run = 0
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			run++
		case token.MappingValueType:
			run = 0
			if flow <= 0 {
				values++
			}
			if keys++; keys > maxKeys {
				return fmt.Errorf("it holds more than %d keys", maxKeys)
			}
		default:
			run = 0
		}
		// Nested blocks are as deep as the column says, two spaces a level.
		if flow > MaxDepth || run > MaxDepth || values > MaxDepth || blockColumn(t) > 8*MaxDepth {
			return fmt.Errorf("line %d: nested deeper than %d", line, MaxDepth)
		}
	}
	return nil
}

// blockColumn returns how far to the right a token stands that opens a block.
func blockColumn(t *token.Token) int {
	if t.Type == token.SequenceEntryType && t.Position != nil {
		return t.Position.Column
	}
	return 0
}

// yamlReason is what the parser found wrong, without its excerpt of the file.
func yamlReason(err error) string {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		return fmt.Sprintf("line %d: %s", at.GetToken().Position.Line, at.GetMessage())
	}
	return firstLine(err.Error())
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// A yamlWalk turns parsed YAML into a tree, within bounds.
type yamlWalk struct {
	file     string
	left     int
	full     bool // the bound has been reported
	anchors  map[string]ast.Node
	open     []string // anchors whose value is being read
	problems Problems
}

func (w *yamlWalk) problem(at, format string, args ...any) {
	w.problems = append(w.problems, Problem{File: w.file, Pointer: at, Reason: fmt.Sprintf(format, args...)})
}

// node returns what stands at the pointer, nil where that is a problem.
func (w *yamlWalk) node(at string, node ast.Node, depth int) any {
	if w.left--; w.left < 0 || depth > MaxDepth {
		if !w.full {
			w.full = true
			if w.left < 0 {
				w.problem("", "%v", errTooMany)
			} else {
				w.problem("", "nested deeper than %d", MaxDepth)
			}
		}
		return nil
	}
	switch n := node.(type) {
	case nil:
		return nil
	case *ast.NullNode:
		return nil
	case *ast.BoolNode:
		return n.Value
	case *ast.IntegerNode:
		return Number(fmt.Sprint(n.Value))
	case *ast.FloatNode:
		return yamlFloat(n)
	case *ast.StringNode:
		return w.text(at, n.Value)
	case *ast.LiteralNode:
		return w.text(at, n.Value.Value)
	case *ast.MappingNode:
		return w.mapping(at, n.Values, depth)
	case *ast.MappingValueNode:
		return w.mapping(at, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		list := make([]any, 0, len(n.Values))
		for i, item := range n.Values {
			list = append(list, w.node(Child(at, strconv.Itoa(i)), item, depth+1))
		}
		return list
	case *ast.AnchorNode:
		name := n.Name.GetToken().Value
		w.open = append(w.open, name)
		value := w.node(at, n.Value, depth)
		w.open = w.open[:len(w.open)-1]
		w.anchors[name] = n.Value
		return value
	case *ast.AliasNode:
		return w.alias(at, n.Value.GetToken().Value, depth)
	default:
		w.problem(at, "a YAML %s cannot be read here", strings.ToLower(node.Type().YAMLName()))
		return nil
	}
}

func (w *yamlWalk) alias(at, name string, depth int) any {
	target, known := w.anchors[name]
	for _, open := range w.open {
		if open == name {
			w.problem(at, "the alias *%s stands inside what it stands for", name)
			return nil
		}
	}
	if !known {
		w.problem(at, "nothing above is anchored as &%s", name)
		return nil
	}
	return w.node(at, target, depth+1)
}

func (w *yamlWalk) mapping(at string, pairs []*ast.MappingValueNode, depth int) any {
	m := &Mapping{}
	for _, pair := range pairs {
		if pair.Key == nil || w.full {
			continue
		}
		key, simple := w.key(at, pair.Key)
		if !simple {
			continue
		}
		if !m.Set(key, w.node(Child(at, key), pair.Value, depth+1)) {
			w.problem(Child(at, key), "the key stands here twice")
		}
	}
	return m
}

// key returns a key as it is written: version 1.2 of YAML would make a number
// of `1`, but what manifests have for keys are names.
func (w *yamlWalk) key(at string, key ast.MapKeyNode) (string, bool) {
	switch n := key.(type) {
	case *ast.StringNode:
		text, valid := w.text(at, n.Value).(string)
		return text, valid
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		return key.GetToken().Value, true
	case *ast.MergeKeyNode:
		w.problem(Child(at, "<<"), "merge keys are not read here: write the keys out")
	default:
		w.problem(at, "a key must be a single word")
	}
	return "", false
}

// text refuses what an escape such as "\xff" can smuggle past the check of the file.
func (w *yamlWalk) text(at, text string) any {
	if !utf8.ValidString(text) {
		w.problem(at, "it is not UTF-8 text")
		return nil
	}
	return text
}

var jsonNumber = pattern.New(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func yamlFloat(n *ast.FloatNode) Number {
	if jsonNumber.MatchString(n.Token.Value) {
		return Number(n.Token.Value)
	}
	return Number(strconv.FormatFloat(n.Value, 'g', -1, 64))
}
