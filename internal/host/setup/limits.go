package setup

import (
	"time"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
)

// Limits are the limits of one plugin process that a configuration has.
func Limits(p config.Plugins) sandbox.Limits {
	return sandbox.Limits{
		Memory: int64(p.Memory), Scratch: int64(p.Scratch), FileSize: int64(p.FileSize),
		Processes: p.Processes, OpenFiles: p.OpenFiles, CPU: time.Duration(p.CPU),
	}
}
