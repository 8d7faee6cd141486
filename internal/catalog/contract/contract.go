// Package contract reads what a plugin says of itself, in the words of the
// contract it was written to, into one [plugin.Manifest].
//
// Each contract is one folder below this one. It registers itself under the
// name that [plugin.Manifest].Dialect has, and has as many of the interfaces
// here as it needs: [Reader] for a manifest of its own, [Preparer] for what
// stands around a call, and so on. What the core has to know of it are the facts
// in [plugin.Contract]. Package all registers the contracts that the host has.
//
// Reading never runs anything of the plugin. A manifest is accepted as a whole
// or refused with [Problems], all of them at once, each with its place. A key
// that this version would have to ignore is refused, not ignored: it may be
// what keeps the plugin harmless. Contracts whose published manifests depart
// from them are read leniently; the notes of a [Reading] tell all that departs.
package contract

import (
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/mortise-dev/mortise/plugin"
)

// A Contract is what plugins are written to. It has further interfaces of this
// package where it departs from what is usual.
type Contract interface {
	// Name is the name that manifests of the contract are stored with. It never
	// changes.
	Name() string
}

// A Reader has a manifest of its own in a file of the package.
type Reader interface {
	Contract

	// Form tells a manifest of this contract from others, for people: "of Event
	// Mill (tool_name)".
	Form() string

	// Recognizes reports whether a mapping is a manifest of this contract, good
	// or bad.
	Recognizes(top Value) bool

	// Read returns what a manifest means. What is wrong with it is noted on its
	// page.
	Read(top Value) *plugin.Manifest
}

// A FileOwner has a manifest in a file, and a format, that no other contract has.
type FileOwner interface {
	Reader

	// File is the name of that file.
	File() string

	// Owns reports whether the file in a package is a manifest, good or bad, and
	// not a file that only has its name.
	Owns(files Files) bool

	// Parse reads the format.
	Parse(file string, data []byte) (tree any, problems Problems)
}

// A SourceReader takes a source file that has no manifest.
type SourceReader interface {
	ReadSource(name string) *plugin.Manifest
}

// A Grouper has plugins that stand together in one package.
type Grouper interface {
	// Holds reports whether dir holds a plugin of the contract, good or bad.
	Holds(dir string) bool

	// Tree returns the package that the plugin in dir belongs to, and its place
	// there, as [TreeIn] does. It reports false where the plugin stands by itself.
	Tree(dir, named string) (tree, place string, grouped bool)
}

// A Bundler has plugins that a package file may hold in one directory with other
// files beside it.
type Bundler interface {
	// Bundled reports whether dir holds such a plugin, good or bad.
	Bundled(dir string) bool
}

// A Describer says itself when the code of a plugin has to be asked for what its
// manifest leaves open.
type Describer interface{ NeedsDescribe(m *plugin.Manifest) bool }

// A Merger says itself what the code of a plugin may add to its manifest. What is
// wrong is a problem of v.
type Merger interface {
	Merge(v *Validator, m *plugin.Manifest, d Described) *plugin.Manifest
}

// A Facter has facts that the core has to know.
type Facter interface{ Facts() plugin.Contract }

// A Preparer turns what a person or a model wrote into the parameters of a call.
type Preparer interface {
	// Operation returns the operation of m that the parameters name, "" where
	// they name none.
	Operation(m *plugin.Manifest, params json.RawMessage) string

	// Prepare splits an input as a person wrote it into the parameters of a call
	// of op and the part that only the host interprets. debug reports whether the
	// call is to show its diagnostics.
	Prepare(op *plugin.Operation, input json.RawMessage) (params, overlay json.RawMessage, debug bool, err error)

	// FromModel makes parameters of what a model wrote.
	FromModel(op *plugin.Operation, input json.RawMessage) (json.RawMessage, error)
}

// An Enveloper spells how a call ended in the envelope of its contract, whatever
// contract the plugin has. op is nil where it is not known.
type Enveloper interface {
	Envelope(op *plugin.Operation, res plugin.Result, err error, debug bool) any
}

// A Speller gives an answer the members that its contract knows, beside the host's own.
type Speller interface {
	Spell(session string, res plugin.Result, err error) map[string]any
}

// A Versioner has a requirement of its own on what a later version may change.
type Versioner interface {
	// VersionRow is its row in the requirements.
	VersionRow() string
}

var registered atomic.Pointer[[]Contract]

// Register adds a contract, after those that are there: a manifest is read by the
// first that recognizes it. Two of one name are a mistake in the program.
func Register(contracts ...Contract) {
	all := slices.Clone(All())
	for _, c := range contracts {
		if Named(c.Name()) != nil {
			panic("two contracts are called " + c.Name())
		}
		all = append(all, c)
		registered.Store(&all)
	}
}

// All returns the contracts in the order in which they recognize manifests.
func All() []Contract {
	if all := registered.Load(); all != nil {
		return *all
	}
	return nil
}

// Named returns the contract of that name, nil if there is none.
func Named(name string) Contract {
	for _, c := range All() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// Of returns the contract of m as a T, and whether it is one.
func Of[T any](m *plugin.Manifest) (T, bool) {
	t, is := Named(m.Dialect).(T)
	return t, is
}

// Each returns the contracts that are a T, with their names.
func Each[T any](yield func(string, T) bool) {
	for _, c := range All() {
		if t, is := c.(T); is && !yield(c.Name(), t) {
			return
		}
	}
}

// Prepare returns the parameters of a call of t and the part of the input that
// only the host interprets, as its contract has it: the same for every source of
// calls. Without a [Preparer], and without a target, the input is the parameters.
func Prepare(t *plugin.Target, input json.RawMessage) (params, overlay json.RawMessage, debug bool, err error) {
	if t == nil {
		return input, nil, false, nil
	}
	p, prepares := Of[Preparer](t.Manifest)
	if !prepares {
		return input, nil, false, nil
	}
	return p.Prepare(t.Operation, input)
}

// Names returns the names of the contracts that are a T.
func Names[T any]() []string {
	var names []string
	for name := range Each[T] {
		names = append(names, name)
	}
	return names
}
