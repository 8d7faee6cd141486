package editor

import (
	_ "embed" // npx.sh
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// fetches are programs that fetch what they run. Of them, the host starts what npx fetches: the
// others execute it, which the sandbox does not do with what a program could have written.
var fetches = map[string]bool{"npx": true, "pnpx": true, "bunx": true, "uvx": true, "pipx": true, "docker": true, "podman": true}

// npxFile is what a mount has that starts a package of npm.
const npxFile = "npx.sh"

//go:embed npx.sh
var npxScript []byte

// exact is a package of npm with one version.
var exact = regexp.MustCompile(`^(@[^@/]+/)?[^@/]+@\d+\.\d+\.\d+[^ ]*$`)

// fetched returns the command that starts what a command fetches, with a file that it needs, and a
// warning; the command itself where it fetches nothing.
func (s Server) fetched() (command []string, files map[string][]byte, warning string, err error) {
	command = slices.Clone(s.Command)
	program := strings.TrimSuffix(filepath.Base(command[0]), ".cmd")
	switch {
	case !fetches[program]:
		return command, nil, "", nil
	case program != "npx":
		return nil, nil, "", fmt.Errorf("%s executes what it fetches when it starts, and the sandbox executes nothing that lies where a server may write: install the server, in the plugin's directory, /usr or /opt, and mount the program that it has", program)
	}
	registry := "" // the one that npm has by itself
	for _, name := range []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"} {
		if u, err := url.Parse(s.Env[name]); err == nil && u.Host != "" {
			registry = u.Host
		}
	}
	if !slices.ContainsFunc(s.Hosts, func(host string) bool {
		return registry == "" || host == registry || host == registry+":443" || strings.HasPrefix(host, ".") && strings.HasSuffix(registry, host)
	}) {
		if registry == "" {
			registry = "with the host of npm's registry ('npm config get registry' prints it)"
		}
		return nil, nil, "", fmt.Errorf("npx fetches the server when it starts, and its command declares no host to fetch it from: add --host %s; or install the server, in the plugin's directory, /usr or /opt, and mount the program that it has", registry)
	}
	rest := command[1:]
	for len(rest) > 0 && (rest[0] == "-y" || rest[0] == "--yes" || rest[0] == "-q" || rest[0] == "--quiet") {
		rest = rest[1:]
	}
	if len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return nil, nil, "", fmt.Errorf("of npx, the host takes 'npx -y PACKAGE ARGUMENT...': write it so, with other flags left out")
	}
	if !exact.MatchString(rest[0]) {
		warning = fmt.Sprintf("%s is fetched in the version that is there when it starts: pin one, as %s@1.2.3", rest[0], unversioned(rest[0]))
	}
	return append([]string{"sh", "./" + npxFile}, rest...), map[string][]byte{npxFile: npxScript}, warning, nil
}

// unversioned returns the name of a package.
func unversioned(pkg string) string {
	if at := strings.LastIndex(pkg, "@"); at > 0 {
		return pkg[:at]
	}
	return pkg
}
