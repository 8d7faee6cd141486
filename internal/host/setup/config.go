package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	runtimecontract "github.com/mortise-dev/mortise/internal/catalog/contract/runtime"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/service/blob"
)

// ReadConfig returns the configuration of a data directory and where it is
// from. A file that was named must exist; the one in home need not.
func ReadConfig(home, named string) (config.Config, string, error) {
	path := named
	if path == "" {
		path = filepath.Join(home, config.FileName)
	}
	c, err := config.Load(path)
	if named == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) {
		return config.Default(), path, nil
	}
	if named == "" && errors.Is(err, fs.ErrPermission) {
		return config.Config{}, path, foreign(home)
	}
	if err != nil {
		return config.Config{}, path, err
	}
	var errs []error
	for _, b := range Bindings(c.Bindings, path) {
		_, err := runtimecontract.Bind(b)
		errs = append(errs, err)
	}
	if c.Blobs != "" {
		if err := blob.Check(c.Blobs); err != nil {
			errs = append(errs, fmt.Errorf("blobs: %w", err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return config.Config{}, path, fmt.Errorf("%s: %w", path, err)
	}
	return c, path, nil
}

// Bindings turns the bindings of the configuration at path into the registry's.
func Bindings(configured []config.Binding, path string) []runtimecontract.Binding {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		dir = "" // then a relative path in a command is refused
	}
	var all []runtimecontract.Binding
	for _, b := range configured {
		all = append(all, runtimecontract.Binding{
			PluginID: b.PluginID, Version: b.Version, Description: b.Description, Command: b.Command, Dir: dir,
			ProtocolVersion: b.ProtocolVersion, Tools: runtimecontract.Tools(b.Tools...), Capabilities: b.Capabilities,
			Context: b.Context, Effects: b.Effects, PolicyTags: b.PolicyTags, Permissions: b.Permissions, Timeout: time.Duration(b.Timeout),
		})
	}
	return all
}
