package shu

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/contract/shu/python"
	"github.com/mortise-dev/mortise/internal/service/egress"
)

// manifestFile is a module of Python, and manifestName the name that it gives the
// manifest.
const (
	manifestFile = "manifest.py"
	manifestName = "PLUGIN_MANIFEST"
)

// File implements [contract.FileOwner].
func (Contract) File() string { return manifestFile }

// Owns implements [contract.FileOwner]: a module that only has the name is none.
func (Contract) Owns(files contract.Files) bool {
	data, err := files.Read(manifestFile, contract.MaxBytes)
	return err == nil && strings.Contains(string(data), manifestName)
}

// Parse implements [contract.FileOwner]: it reads the literal that a module gives
// PLUGIN_MANIFEST. Nothing is run.
func (Contract) Parse(file string, data []byte) (any, contract.Problems) {
	value, err := python.Assigned(data, manifestName)
	if err != nil {
		return nil, contract.Problems{at(file, err)}
	}
	tree, err := fromPython(value)
	if err != nil {
		return nil, contract.Whole(file, err.Error())
	}
	return tree, nil
}

// at returns a problem at the place where source is wrong.
func at(file string, err error) contract.Problem {
	var wrong *python.Error
	if errors.As(err, &wrong) {
		return contract.Problem{File: file, Line: wrong.Line, Column: wrong.Column, Reason: wrong.Reason}
	}
	return contract.Problem{File: file, Reason: err.Error()}
}

// fromPython returns a literal as manifests of any format are read.
func fromPython(value any) (any, error) {
	switch v := value.(type) {
	case python.Number:
		return contract.Number(v), nil
	case python.Bytes:
		return nil, errors.New("it holds bytes, which a manifest has no use for")
	case []any:
		list := make([]any, 0, len(v))
		for _, item := range v {
			read, err := fromPython(item)
			if err != nil {
				return nil, err
			}
			list = append(list, read)
		}
		return list, nil
	case *python.Dict:
		m := &contract.Mapping{}
		for i, key := range v.Keys {
			name, isText := key.(string)
			if !isText {
				return nil, errors.New("it holds a dictionary with a key that is no text")
			}
			read, err := fromPython(v.Values[i])
			if err != nil {
				return nil, err
			}
			if !m.Set(name, read) {
				return nil, fmt.Errorf("the key %q stands twice in one dictionary", contract.Clip(name))
			}
		}
		return m, nil
	}
	return value, nil
}

// The bounds of what is looked through.
const (
	maxModules  = 5_000
	maxSource   = 64 << 20 // bytes of all modules
	maxRefusals = 50
)

// guard holds every module of the package, those in vendor too, against what a
// Shu plugin may not import: "Plugins must not import host-internal modules" and
// "must not import direct HTTP clients" (Plugin Independence Policy). It returns
// the addresses that stand in the plugin's own, its tests aside.
func guard(p *contract.Page) (addresses []string) {
	if p.Files.Root == nil {
		return nil
	}
	modules, refused, size := 0, 0, 0
	refuse := func(problem contract.Problem) error {
		problem.Row = "SH-19"
		p.Problems = append(p.Problems, problem)
		if refused++; refused >= maxRefusals {
			return fs.SkipAll
		}
		return nil
	}
	err := fs.WalkDir(p.Files.Root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return refuse(contract.Problem{File: name, Reason: "it cannot be read, so that what it imports is not known"})
		case entry.IsDir() && name == environment:
			return fs.SkipDir // it is not the plugin's own, and what it asks the guard for is refused as it runs
		case entry.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "__pycache__"):
			return fs.SkipDir // nothing is imported from there
		case !entry.Type().IsRegular() || path.Ext(base) != ".py":
			return nil
		}
		code, err := p.Files.Read(name, python.MaxBytes)
		if err != nil {
			return refuse(contract.Problem{File: name, Reason: err.Error()})
		}
		modules, size = modules+1, size+len(code)
		if modules > maxModules || size > maxSource {
			_ = refuse(contract.Problem{Reason: fmt.Sprintf("the package holds more than %d modules or %d MiB of them, so that what it imports is not known", maxModules, maxSource>>20)})
			return fs.SkipAll
		}
		scan, err := python.Imports(code)
		if err != nil {
			problem := at(name, err)
			problem.Reason += ", so that what it imports is not known"
			return refuse(problem)
		}
		for _, i := range scan.Imports {
			if why := forbidden(i.Name); why != "" {
				if err := refuse(contract.Problem{File: name, Line: i.Line, Column: i.Column, Reason: fmt.Sprintf("it imports %s: %s", contract.Clip(i.Name), why)}); err != nil {
					return err
				}
			}
		}
		if !strings.HasPrefix(name, "vendor/") && !strings.HasPrefix(name, "tests/") {
			addresses = append(addresses, scan.Addresses...)
		}
		return nil
	})
	if err != nil {
		p.Problems = append(p.Problems, contract.Problem{Reason: "the package cannot be looked through", Row: "SH-19"})
	}
	return addresses
}

// forbidden says why a module may not be imported, "" where it may.
func forbidden(module string) string {
	top, _, _ := strings.Cut(module, ".")
	switch {
	case slices.Contains([]string{"requests", "httpx", "urllib3"}, top), strings.HasPrefix(module+".", "urllib.request."):
		return "a plugin reaches the network through host.http alone"
	case top == "shu":
		return "a plugin has no part of its host but what execute is given; shu_plugin_sdk is there for it"
	}
	return ""
}

// environment is where the host puts what an administrator had installed for a plugin; a
// package that brings it along is refused before.
const environment = "_environment"

// maxHosts is how many hosts a plugin may have found in its code.
const maxHosts = 64

// hostsOf returns the hosts of addresses, each once, in order: the contract has
// no key that declares them. Of an address whose host is computed nothing is known.
func hostsOf(addresses []string) []string {
	var hosts []string
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || strings.HasSuffix(u.Hostname(), ".") {
			continue
		}
		host := strings.ToLower(u.Host)
		if _, err := egress.ParseHost(host); err == nil && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return hosts[:min(len(hosts), maxHosts)]
}
