package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/base/alive"
)

// cgroups makes and keeps the control groups that count the trees of plugins,
// below the host's own: whatever bounds the host bounds its plugins too. To
// make one takes long, so they are used again.
type cgroups struct {
	mu     sync.Mutex // guards the rest
	opened bool
	why    string // why there are none
	v2     bool   // else version 1, where each controller has its own tree
	pids   string // directories for our groups
	memory string // the same one in version 2
	free   []*cgroup
	made   int
}

// A cgroup counts one tree of processes.
type cgroup struct {
	version      string
	pids, memory string // its directories
	limits       Limits // as they are set
	ooms, forks  int64  // counted before the present tree
}

// groupsOpened tells several sandboxes of one process apart.
var groupsOpened atomic.Int32

// keptGroups is how many wait to be used again.
const keptGroups = 64

func newCgroups() *cgroups { return &cgroups{} }

// take returns a group with these limits, or why there is none.
func (c *cgroups) take(limits Limits) (*cgroup, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.opened {
		c.opened = true
		if err := c.open(); err != nil {
			c.why = err.Error()
		}
	}
	if c.why != "" {
		return nil, c.why
	}
	for n := len(c.free); n > 0; n = len(c.free) {
		g := c.free[n-1]
		c.free = c.free[:n-1]
		if g.bound(limits) == nil {
			return g, ""
		}
		c.remove(g)
	}
	g, err := c.make()
	if err == nil {
		if err = g.bound(limits); err == nil {
			return g, ""
		}
		c.remove(g)
	}
	return nil, err.Error()
}

// refuse gives up on groups: the launcher counts instead.
func (c *cgroups) refuse(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = why
}

// give takes a group back whose tree has ended.
func (c *cgroups) give(g *cgroup) {
	if g == nil {
		return
	}
	g.killAll()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.free) < keptGroups {
		c.free = append(c.free, g)
		return
	}
	c.remove(g)
}

func (c *cgroups) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.free {
		c.remove(g)
	}
	c.free = nil
	if c.opened && c.why == "" {
		_ = os.Remove(c.pids) // stays where a group does; the next host clears it
		_ = os.Remove(c.memory)
		c.opened = false
	}
	return nil
}

func (c *cgroups) remove(g *cgroup) {
	_ = os.Remove(g.pids)
	if g.memory != g.pids {
		_ = os.Remove(g.memory)
	}
}

// open finds the host's own groups and makes one below each for ours.
func (c *cgroups) open() error {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	name := fmt.Sprintf("mortise-%d-%d", os.Getpid(), groupsOpened.Add(1))
	pids, memory := ownGroup(string(raw), string(mounts), "pids"), ownGroup(string(raw), string(mounts), "memory")
	if pids == "" || memory == "" {
		own := ownGroup(string(raw), string(mounts), "")
		if own == "" {
			return errors.New("no control groups are mounted")
		}
		if err := delegate(own); err != nil {
			return err
		}
		c.v2, pids, memory = true, own, own
	}
	sweep(pids)
	sweep(memory)
	c.pids, c.memory = filepath.Join(pids, name), filepath.Join(memory, name)
	for _, dir := range []string{c.pids, c.memory} {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("this user may make none: %w", errors.Unwrap(err))
		}
	}
	if c.v2 {
		return write(c.pids, "cgroup.subtree_control", "+memory +pids")
	}
	return nil
}

// ownGroup returns the directory of the group that this process is in, for a
// controller of version 1 or, with none named, for version 2.
func ownGroup(groups, mounts, controller string) string {
	own, found := "", false
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && contains(fields[1], controller) {
			own, found = fields[2], true
		}
	}
	if !found {
		return ""
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if len(where) < 5 || len(what) < 3 {
			continue
		}
		if controller == "" && what[0] == "cgroup2" || controller != "" && what[0] == "cgroup" && contains(what[2], controller) {
			if below, ok := strings.CutPrefix(own, strings.TrimSuffix(where[3], "/")); ok {
				return filepath.Join(where[4], below)
			}
		}
	}
	return ""
}

func contains(list, item string) bool {
	for each := range strings.SplitSeq(list, ",") {
		if each == item {
			return true
		}
	}
	return false
}

// delegate lets groups below own count memory and processes. In version 2 a
// group that has such groups has no processes of its own: a host that is alone
// in its group moves into one beside them.
func delegate(own string) error {
	have, err := os.ReadFile(filepath.Join(own, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range []string{"memory", "pids"} {
		if !strings.Contains(" "+strings.TrimSpace(string(have))+" ", " "+controller+" ") {
			return fmt.Errorf("the controller %s is not delegated to this host: start it with systemd-run --user --scope -p Delegate=yes, or Delegate=yes in its unit", controller)
		}
	}
	err = write(own, "cgroup.subtree_control", "+memory +pids")
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	inside, err := os.ReadFile(filepath.Join(own, "cgroup.procs"))
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(inside)) != strconv.Itoa(os.Getpid()) {
		return errors.New("other processes share the host's group: start it in a unit or scope of its own")
	}
	host := filepath.Join(own, "host")
	if err := os.Mkdir(host, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := write(host, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	return write(own, "cgroup.subtree_control", "+memory +pids")
}

// sweep removes what hosts that are gone left behind.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, "mortise-*"))
	for _, old := range left {
		name, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(old), "mortise-"), "-")
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() || alive.Process(pid) {
			continue
		}
		groups, _ := filepath.Glob(filepath.Join(old, "p*"))
		for _, group := range groups {
			_ = unix.Rmdir(group)
		}
		_ = unix.Rmdir(old)
	}
}

func (c *cgroups) make() (*cgroup, error) {
	c.made++
	name := fmt.Sprintf("p%d", c.made)
	g := &cgroup{version: "v1", pids: filepath.Join(c.pids, name), memory: filepath.Join(c.memory, name)}
	if c.v2 {
		g.version = "v2"
	}
	for _, dir := range []string{g.pids, g.memory} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	if c.v2 {
		_ = write(g.memory, "memory.oom.group", "1")
		_ = write(g.memory, "memory.swap.max", "0")
	}
	return g, nil
}

// bound sets the limits and forgets what was counted.
func (g *cgroup) bound(l Limits) error {
	if g.limits != l {
		processes, memory := "max", "-1"
		if l.Processes > 0 {
			processes = strconv.Itoa(l.Processes + launcherTasks)
		}
		if l.Memory > 0 {
			memory = strconv.FormatInt(l.Memory, 10)
		}
		if err := write(g.pids, "pids.max", processes); err != nil {
			return err
		}
		if g.version == "v2" {
			if l.Memory <= 0 {
				memory = "max"
			}
			if err := write(g.memory, "memory.max", memory); err != nil {
				return err
			}
		} else {
			_ = write(g.memory, "memory.memsw.limit_in_bytes", "-1") // where swap is counted
			if err := write(g.memory, "memory.limit_in_bytes", memory); err != nil {
				return err
			}
			_ = write(g.memory, "memory.memsw.limit_in_bytes", memory)
		}
		g.limits = l
	}
	g.ooms, g.forks = g.counters()
	return nil
}

// launcherTasks is room for the launcher's own threads.
const launcherTasks = 16

// add puts a process into the group.
func (g *cgroup) add(pid int) error {
	for _, dir := range []string{g.pids, g.memory} {
		if err := write(dir, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return err
		}
		if g.memory == g.pids {
			break
		}
	}
	return nil
}

// tasks returns the files by which a thread moves itself into the group. Version 2 moves whole processes only.
func (g *cgroup) tasks() []string {
	if g == nil || g.version == "v2" {
		return nil
	}
	return []string{filepath.Join(g.pids, "tasks"), filepath.Join(g.memory, "tasks")}
}

// counts reports whether the group has counted so much memory, and a process.
func (g *cgroup) counts(held int64) bool {
	file := "memory.usage_in_bytes"
	if g.version == "v2" {
		file = "memory.current"
	}
	return number(filepath.Join(g.memory, file)) >= held && number(filepath.Join(g.pids, "pids.current")) >= 1
}

func number(path string) int64 {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	return n
}

// exceeded returns the limit that the present tree ran into.
func (g *cgroup) exceeded() string {
	switch ooms, forks := g.counters(); {
	case ooms > g.ooms:
		return LimitMemory
	case forks > g.forks:
		return LimitProcesses
	default:
		return ""
	}
}

// counters returns how often the kernel has ended a process for its memory and
// refused one more.
func (g *cgroup) counters() (ooms, forks int64) {
	file := "memory.oom_control"
	if g.version == "v2" {
		file = "memory.events"
	}
	return counter(filepath.Join(g.memory, file), "oom_kill"), counter(filepath.Join(g.pids, "pids.events"), "max")
}

func counter(path, name string) int64 {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			return n
		}
	}
	return 0
}

// killAll ends what may be left in the group, where no PID namespace did.
func (g *cgroup) killAll() {
	raw, _ := os.ReadFile(filepath.Join(g.pids, "cgroup.procs"))
	for _, field := range strings.Fields(string(raw)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
