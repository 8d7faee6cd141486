package egress

import (
	"net/textproto"
	"slices"
	"strings"
)

// refusedHeaders are the host's own to write, or make a GET something else.
var refusedHeaders = []string{
	"Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"X-Http-Method", "X-Http-Method-Override", "X-Method-Override",
}

// RefusedHeader reports whether no plugin may send the header, in whatever
// letter case, or one that a server may take for it.
func RefusedHeader(name string) bool { return slices.Contains(refusedHeaders, FoldHeader(name)) }

// FoldHeader returns the name that a server may read for a header: those that
// hand headers on as variables (CGI, WSGI) make one of X_Signature and
// X-Signature.
func FoldHeader(name string) string {
	return textproto.CanonicalMIMEHeaderKey(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name))
}

// RefusedHeaders returns the names of the headers that no plugin may send.
func RefusedHeaders() []string { return slices.Clone(refusedHeaders) }
