package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Env are the values, by plugin and name, that a plugin's schema may stand for
// with x-binding: env:NAME. They are never those of the host's environment, and
// no secrets: the file is shown.
type Env map[string]map[string]string

// Settings are what an administrator sets for investigation plugins: by plugin,
// the members of context.config. They are no secrets: the file is shown.
type Settings map[string]map[string]any

const maxSettings = 64 << 10 // bytes of one plugin's, as JSON

func (s Settings) check() (errs []error) {
	for _, plugin := range slices.Sorted(maps.Keys(s)) {
		if !envPlugin.MatchString(plugin) {
			errs = append(errs, fmt.Errorf("settings: %q is no name of a plugin", plugin))
		}
		raw, err := json.Marshal(s[plugin])
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("settings of %s: they have no form in JSON: %w", plugin, err))
		case len(raw) > maxSettings:
			errs = append(errs, fmt.Errorf("settings of %s: they have %d bytes as JSON; at most %d are taken", plugin, len(raw), maxSettings))
		}
	}
	return errs
}

const maxEnv = 4 << 10 // bytes of one value

var (
	envPlugin = pattern.New(`^[A-Za-z][A-Za-z0-9_.-]{0,127}$`)
	envName   = pattern.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

func (e Env) check() (errs []error) {
	for _, plugin := range slices.Sorted(maps.Keys(e)) {
		if !envPlugin.MatchString(plugin) {
			errs = append(errs, fmt.Errorf("env: %q is no name of a plugin", plugin))
		}
		for _, name := range slices.Sorted(maps.Keys(e[plugin])) {
			if !envName.MatchString(name) {
				errs = append(errs, fmt.Errorf("env of %s: %q is no name of a variable", plugin, name))
			}
			if n := len(e[plugin][name]); n > maxEnv {
				errs = append(errs, fmt.Errorf("env of %s: %s has %d bytes; at most %d are kept", plugin, name, n, maxEnv))
			}
		}
	}
	return errs
}
