package session_test

import "github.com/mortise-dev/mortise/internal/store/sqlstore"

// A store may run a closure again at any time: in these tests it always does.
func init() { sqlstore.RunTwice() }
