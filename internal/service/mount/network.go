package mount

import (
	"fmt"
	"os"
	"strings"

	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
)

// networked returns the variables by which a program finds the proxy, and the certificates that
// the system trusts. A manifest may set others.
func networked() map[string]string {
	at := "http://" + process.ProxyAddress
	env := map[string]string{
		"HTTP_PROXY": at, "HTTPS_PROXY": at, "ALL_PROXY": at, "http_proxy": at, "https_proxy": at, "all_proxy": at,
		"NO_PROXY": "", "no_proxy": "", "NODE_USE_ENV_PROXY": "1",
	}
	for _, file := range bundles {
		if _, err := os.Stat(file); err == nil {
			env["SSL_CERT_FILE"] = file
			break
		}
	}
	return env
}

// bundles are where systems keep all certificates that they trust in one file.
var bundles = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}

// A running is a call that a server is at work on.
type running struct {
	target *plugin.Target
	call   *plugin.Call

	refusals int
}

// maxRefusals is how many refusals are put on the record of one call.
const maxRefusals = 16

// begin notes a call that the server gets, for what it asks the network for meanwhile.
func (s *server) begin(t *plugin.Target, call *plugin.Call) (end func()) {
	one := &running{target: t, call: call}
	s.work.Lock()
	defer s.work.Unlock()
	if s.running == nil {
		s.running = map[*running]bool{}
	}
	s.running[one] = true
	return func() {
		s.work.Lock()
		defer s.work.Unlock()
		delete(s.running, one)
	}
}

// refused puts a request that was refused on the record of each call that the server is at work
// on: which of several it belongs to, no proxy can tell.
func (s *server) refused(why *plugin.Error) {
	s.work.Lock()
	var calls []running
	for one := range s.running {
		if one.refusals++; one.refusals <= maxRefusals {
			calls = append(calls, *one)
		}
	}
	s.work.Unlock()
	if s.runner.opts.Refused == nil {
		return
	}
	for _, one := range calls {
		e := *why
		e.Message = "network: " + e.Message
		if len(calls) > 1 {
			e.Message += fmt.Sprintf("; its server was at work on %d calls", len(calls))
		}
		if one.refusals == maxRefusals {
			e.Message += "; further refusals of this call are not recorded"
		}
		s.runner.opts.Refused(one.target, one.call, &e)
	}
}

// reach says, in words that follow a message, what the server's program may reach, and what it was
// refused.
func (s *server) reach() string {
	if s.proxy == nil {
		return "it has no network, and reads what lies in the package, /usr and /opt"
	}
	text := "it reaches " + strings.Join(s.runner.opts.Egress.HostsOf(s.manifest.Name, s.manifest.HTTP.Hosts), ", ") + " alone, and reads what lies in the package, /usr and /opt"
	if refusals := s.proxy.Refusals(); len(refusals) > 0 {
		text += "; it was refused: " + strings.Join(refusals, "; ")
	}
	return text
}
