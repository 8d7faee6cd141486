// Package plugin is the domain in nouns: what a plugin says of itself
// ([Manifest], [Operation]), what is asked of it ([Call]), what comes back
// ([Result], [Error]), what was decided ([Decision]) and what is kept of it
// ([Entry]).
//
// It holds no behaviour beyond what its nouns owe themselves, and imports
// nothing but the standard library: every other package may speak of these
// things, and all mean the same by them.
package plugin

//go:generate go run ../internal/base/codegen -codes ../protocol/codes.json
