package sandbox

import (
	"fmt"
	"strconv"
	"time"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// A Spec says what to start and what it may see. Paths are absolute, and the
// program sees each at the same place as the host does.
type Spec struct {
	Argv []string // the first is the program
	Env  []string // all that is in its environment

	Read      []string // files and directories it may read and run: its package, its interpreter
	Named     []string // likewise, where the program's own files named it: nothing within Hide, links followed
	Artifacts []File   // files it may read
	Hide      []string // directories that look empty to it, but for what Read and Artifacts name within
	Own       []string // directories within Hide that Named may lie in after all: they are the host's to show
	Proxy     bool     // it finds the proxy of [Process.Proxy] at 127.0.0.1:[ProxyPort], and nothing else on a network
	Scratch   string   // a directory of the host's: where the program starts and may write

	Limits Limits
}

// ProxyPort is where a program finds its proxy.
const ProxyPort = wire.ProxyPort

// A File is one file that a program may read. Where its inode is known, a path
// that leads to another one by the time it is shown is refused.
type File struct {
	Path          string
	Device, Inode uint64
}

// Limits bound a program together with all that it starts. Zero is no limit.
type Limits struct {
	Memory    int64         // bytes of the whole tree
	Scratch   int64         // bytes of its scratch directory and /tmp together
	FileSize  int64         // bytes of one file
	Processes int           // processes and threads of the whole tree
	OpenFiles int           // of one process
	CPU       time.Duration // of one process, in whole seconds
}

// Names of limits, as [Process.Exceeded] says them and the configuration spells them.
const (
	LimitMemory    = "memory"
	LimitScratch   = "scratch"
	LimitFileSize  = "file_size"
	LimitProcesses = "processes"
	LimitCPU       = "cpu"
)

func (l Limits) wire() wire.Limits {
	return wire.Limits{
		Memory: l.Memory, Scratch: l.Scratch, FileSize: l.FileSize, Processes: l.Processes, OpenFiles: l.OpenFiles,
		CPU: int64((l.CPU + time.Second - 1) / time.Second),
	}
}

// Text returns a limit, by its name, as the configuration spells it.
func (l Limits) Text(name string) string {
	switch name {
	case LimitMemory:
		return bytesText(l.Memory)
	case LimitScratch:
		return bytesText(l.Scratch)
	case LimitFileSize:
		return bytesText(l.FileSize)
	case LimitProcesses:
		return strconv.Itoa(l.Processes)
	case LimitCPU:
		return l.CPU.String()
	default:
		return "unknown"
	}
}

func bytesText(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d%s", n/unit.size, unit.name)
		}
	}
	return strconv.FormatInt(n, 10)
}
