package policy

import "github.com/cedar-policy/cedar-go/x/exp/ast"

// Ambiguous returns the policies, as people know them, that go by the id of a
// principal and not by its type: a user, an agent and a service may have one id.
func (e *Engine) Ambiguous() (warnings []string) {
	for _, s := range e.now.Load().all {
		if FromConfiguration(s.file) || typedScope(s.ast.Principal) {
			continue
		}
		byID, typed := false, false
		for _, c := range s.ast.Conditions {
			ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
				if access, ok := n.(ast.NodeTypeAccess); ok && access.Value == "id" {
					if v, ok := access.Arg.(ast.NodeTypeVariable); ok && v.Name == "principal" {
						byID = true
					}
				}
				typed = typed || typeTested(n) != ""
				return true
			})
		}
		if byID && !typed {
			warnings = append(warnings, s.label+": principal.id is the same for a user, an agent and a service of that name; add `principal is User`, or name User::\"...\" itself")
		}
	}
	return warnings
}

// typedScope reports whether the scope says which type the principal has.
func typedScope(scope ast.IsPrincipalScopeNode) bool {
	switch scope.(type) {
	case ast.ScopeTypeEq, ast.ScopeTypeIs, ast.ScopeTypeIsIn:
		return true
	}
	return false
}
