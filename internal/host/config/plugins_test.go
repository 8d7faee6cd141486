package config_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/host/config"
)

func TestBoundsOfPluginsAreRead(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte("sandbox: required\nplugins: {memory: 512MiB, cpu: 90s, scratch: 65536}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := c.Plugins
	if c.Sandbox != "required" || p.Memory != 512<<20 || p.Scratch != 64<<10 || time.Duration(p.CPU) != 90*time.Second || p.Processes != 256 {
		t.Errorf("%s %+v", c.Sandbox, p)
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := config.Parse(text); err != nil || !reflect.DeepEqual(again.Plugins, p) {
		t.Errorf("printed and read again: %+v, %v", again.Plugins, err)
	}
	for text, want := range map[string]string{
		"sandbox: perhaps":                    "sandbox is",
		"plugins: {memory: 1MiB}":             "plugins.memory is too little",
		"plugins: {memory: lots}":             "no size",
		"plugins: {memory: 99999999999GiB}":   "no size",
		"plugins: {memory: -1}":               "no size",
		"plugins: {processes: 2}":             "plugins.processes is too little",
		"plugins: {cpu: 10ms}":                "plugins.cpu is",
		"plugins: {open_files: 1}":            "plugins.open_files",
		"plugins: {file_size: 1, scratch: 1}": "plugins.scratch",
		"plugins: {colour: red}":              "colour",
	} {
		if _, err := config.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
