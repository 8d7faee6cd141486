package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/service/egress"
)

// Environments are what an administrator may have installed for one plugin alone. Nothing
// is unless Allow is set.
type Environments struct {
	Allow    bool     `yaml:"allow" json:"allow"`
	Index    string   `yaml:"index" json:"index,omitempty"`   // the address of an index of packages: https://pypi.org/simple/
	Hosts    []string `yaml:"hosts" json:"hosts,omitempty"`   // that its files may be on, beside its own
	Wheels   string   `yaml:"wheels" json:"wheels,omitempty"` // a directory of wheels, in place of an index
	Unhashed bool     `yaml:"unhashed" json:"unhashed"`       // requirements without hashes are taken
	Timeout  Duration `yaml:"timeout" json:"timeout"`
	Size     Bytes    `yaml:"size" json:"size"` // of what is installed for one plugin
}

// defaultEnvironments is what holds where nothing is said.
func defaultEnvironments() Environments {
	return Environments{Timeout: Duration(5 * time.Minute), Size: 256 << 20}
}

func (e Environments) check() []error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("plugins.environments."+format, args...))
	}
	if e.Index != "" {
		u, err := url.Parse(e.Index)
		switch {
		case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
			refuse("index is no plain address, like https://pypi.org/simple/")
		case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
			refuse("index is neither https nor on this machine")
		}
		if e.Wheels != "" {
			refuse("wheels takes the place of index: only one of them is used")
		}
	}
	for _, host := range e.Hosts {
		if _, err := egress.ParseHost(host); err != nil || strings.HasPrefix(host, ".") {
			refuse("hosts: %q is not the name of one host", host)
		}
	}
	if e.Timeout < Duration(time.Second) || e.Timeout > Duration(time.Hour) {
		refuse("timeout is between 1s and 1h")
	}
	if e.Size < 1<<20 || e.Size > 512<<20 {
		refuse("size is between 1MiB and 512MiB, which is as large as a package may be")
	}
	return errs
}
