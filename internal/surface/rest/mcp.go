package rest

import (
	"net/http"

	"github.com/mortise-dev/mortise/internal/host"
)

// MCPPath is where the Model Context Protocol is spoken. What stands before every route stands
// before it: the address, the token, its rate and share, the bounds of the body.
const MCPPath = "/mcp"

// atMCP reports whether a request is for [MCPPath], and something answers there.
func (s *server) atMCP(r *http.Request) bool { return s.MCP != nil && r.URL.Path == MCPPath }

// mcp has a request answered that speaks the Model Context Protocol.
func (s *server) mcp(w http.ResponseWriter, r *http.Request, q *request) {
	q.stays(s.RunTime + s.WorkTime)
	s.MCP(q.api, q.caller).ServeHTTP(w, r)
}

// challenge tells a client without a token what a request needs.
func (s *server) challenge(r *http.Request) string {
	if s.atMCP(r) && s.Metadata != nil {
		if where := s.Metadata(); where != "" {
			return `Bearer resource_metadata="` + where + `", scope="` + host.ScopeRun + `"`
		}
	}
	return "Bearer"
}
