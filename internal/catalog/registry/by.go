package registry

import "context"

type byKey struct{}

// By returns a context in which changes are made in the name of a principal.
func By(ctx context.Context, principal string) context.Context {
	return context.WithValue(ctx, byKey{}, principal)
}

// Author returns in whose name a change is made: that of [By], or own where there is none.
func Author(ctx context.Context, own string) string {
	if principal, said := ctx.Value(byKey{}).(string); said {
		return principal
	}
	return own
}
