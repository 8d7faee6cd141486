// Package plugin defines the types of the domain: the description of a plugin ([Manifest],
// [Operation]), a request ([Call]), its outcome ([Result], [Error]), the decision of policy
// ([Decision]) and the line of the ledger that records them ([Entry]).
//
// It imports only the standard library, so that every other package can use these types.
package plugin

//go:generate go run ../internal/base/codegen -codes ../protocol/codes.json
