package kernel

import (
	"context"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// resolve finds the target, and refuses what no target is needed to refuse.
func (a *attempt) resolve(ctx context.Context) error {
	if a.call.Tenant == "" || a.call.Principal.ID == "" {
		return plugin.Errorf(plugin.CodeUnauthenticated, "the call names no principal or no tenant: authenticate, then call again")
	}
	if a.call.Depth > plugin.MaxDepth {
		return plugin.Errorf(plugin.CodeLimitExceeded, "calls are nested more than %d deep", plugin.MaxDepth)
	}
	if key := a.call.Key; key != printable(key, 255) {
		return plugin.Errorf(plugin.CodeInvalidInput, "the key is not 1 to 255 printable ASCII characters")
	}
	if n := len(a.call.Input); n > a.limits.input {
		return sized(plugin.Errorf(plugin.CodeInputTooLarge, "the input has %d bytes; at most %d are accepted", n, a.limits.input), n, a.limits.input)
	}
	t, err := a.k.Registry.Resolve(ctx, a.call.Operation)
	if err != nil { // what stands in the way may be what the caller does not see
		if t, a.unknown = a.k.Registry.ResolveFor(ctx, a.call.Operation, a.sees); a.unknown != nil {
			return err
		}
	}
	if err := a.elsewhere(t); err != nil {
		return err
	}
	if a.call.Digest != "" && t.Package.Digest != a.call.Digest {
		a.void = t.Name() + " is not the package any more that it was meant for"
		return plugin.Errorf(plugin.CodeApprovalVoid, "%s; it was %s and is %s", a.void, a.call.Digest, t.Package.Digest)
	}
	a.target = t
	a.record.Operation = t.Name()
	a.record.Plugin, a.record.Version = t.Manifest.Name, t.Manifest.Version
	a.record.PackageDigest = t.Package.Digest
	a.record.Kind, a.record.Effects = t.Operation.Kind, t.Operation.Effects
	if most, _ := t.Manifest.Bounds(); most > 0 && len(a.call.Input) > most {
		return sized(plugin.Errorf(plugin.CodeInputTooLarge, "the input has %d bytes; the contract of %s allows %d", len(a.call.Input), t.Manifest.Name, most), len(a.call.Input), most)
	}
	for _, scope := range t.Operation.Permissions {
		if !slices.Contains(a.call.Principal.Scopes, scope) && !slices.Contains(a.call.Principal.Scopes, "*") {
			return plugin.Errorf(plugin.CodeScopeDenied, "%s asks for the permission %s, which %s does not have", t.Name(), scope, a.call.Principal.Member())
		}
	}
	// Strict JSON first: what has two readings has no hash.
	a.record.InputHash, err = canon.Hash(a.call.Input)
	if budget.Exceeded(err) {
		return plugin.Errorf(plugin.CodeInputTooLarge, "the input %w", err)
	}
	if err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "the input is not one strict JSON value: %w", err)
	}
	if protocol.TooDeep(a.call.Input) {
		return plugin.Errorf(plugin.CodeInvalidInput, "the input is nested deeper than %d", protocol.MaxDepth)
	}
	if len(a.call.Overlay) > 0 {
		if a.overlay, err = canon.Hash(a.call.Overlay); err != nil {
			return plugin.Errorf(plugin.CodeInvalidInput, "what the host decides is not one strict JSON value: %w", err)
		}
	}
	return a.assigned(ctx)
}

// fingerprint identifies what the caller asked for: the input for one major
// version of one operation, and under a key of the caller's what the host decides
// about it. Where the host distinguishes the call by its place, it does so of that too.
func (a *attempt) fingerprint() string {
	major, _, _ := strings.Cut(a.target.Manifest.Version, ".")
	hash := a.record.AskedHash // where a hook changed it
	if hash == "" {
		hash = a.record.InputHash
	}
	text := a.target.Name() + "@" + major + " " + hash
	if kind := a.call.Principal.Type; kind != "" && kind != "user" { // a service with a user's name is a different principal
		text += " " + kind
	}
	if a.overlay != "" && a.call.Key != "" {
		text += " " + a.overlay
	}
	return canon.Sum([]byte(text))
}
