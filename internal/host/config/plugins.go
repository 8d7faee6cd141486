package config

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mortise-dev/mortise/internal/catalog/signed"
)

// Plugins bounds one plugin process together with all that it starts. What the
// host cannot enforce without a cage is not enforced there. 0 is no bound.
type Plugins struct {
	Memory    Bytes    `yaml:"memory" json:"memory"`
	Processes int      `yaml:"processes" json:"processes"` // and threads
	CPU       Duration `yaml:"cpu" json:"cpu"`             // of one process, whole seconds
	OpenFiles int      `yaml:"open_files" json:"open_files"`
	FileSize  Bytes    `yaml:"file_size" json:"file_size"`
	Scratch   Bytes    `yaml:"scratch" json:"scratch"` // what it may write, /tmp included

	Subscribe []string `yaml:"subscribe" json:"subscribe"` // plugins that act for a principal once they have subscribed, * for all

	Environments Environments `yaml:"environments" json:"environments"` // what may be installed for one plugin alone
	Trust        signed.Trust `yaml:"trust" json:"trust"`               // whose signatures of packages are believed
}

func (p Plugins) check() []error {
	var errs []error
	least := func(key string, value, low int64, text string) {
		if value != 0 && value < low {
			errs = append(errs, fmt.Errorf("plugins.%s is too little for any plugin to start; it is %s or more, or 0 for no bound", key, text))
		}
	}
	least("memory", int64(p.Memory), 16<<20, "16MiB")
	least("processes", int64(p.Processes), 16, "16, threads included")
	least("open_files", int64(p.OpenFiles), 32, "32")
	least("file_size", int64(p.FileSize), 4<<10, "4KiB")
	least("scratch", int64(p.Scratch), 64<<10, "64KiB")
	for _, name := range p.Subscribe {
		if name == "" || len(name) > 128 {
			errs = append(errs, fmt.Errorf("plugins.subscribe: %.40q is no name of a plugin", name))
		}
	}
	if cpu := time.Duration(p.CPU); cpu != 0 && cpu < time.Second {
		errs = append(errs, fmt.Errorf("plugins.cpu is %s; it is a second or more, or 0s for no bound", cpu))
	}
	return append(append(errs, p.Environments.check()...), p.Trust.Check()...)
}

// Bytes is a number of bytes, written as such or with a unit: 512MiB, 1GiB.
type Bytes int64

var units = []struct {
	name string
	size Bytes
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// UnmarshalYAML reads a size.
func (b *Bytes) UnmarshalYAML(raw []byte) error {
	var text string
	if err := yaml.Unmarshal(raw, &text); err != nil {
		return err
	}
	number, unit := strings.TrimSpace(text), Bytes(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(n), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/int64(unit) {
		return fmt.Errorf("%q is no size; write one like 512MiB or 1GiB", text)
	}
	*b = Bytes(n) * unit
	return nil
}

// String returns the size as it is read.
func (b Bytes) String() string {
	for _, u := range units {
		if b >= u.size && b%u.size == 0 {
			return fmt.Sprintf("%d%s", b/u.size, u.name)
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// MarshalJSON writes the size as it is read.
func (b Bytes) MarshalJSON() ([]byte, error) { return json.Marshal(b.String()) }

// MarshalYAML writes the size as it is read.
func (b Bytes) MarshalYAML() ([]byte, error) { return []byte(b.String()), nil }
