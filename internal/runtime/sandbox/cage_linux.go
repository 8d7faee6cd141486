package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// A cage is how programs are caged on this machine, as far as that is known.
type cage struct {
	opts     Options
	launcher *launcher
	forks    *forkServer
	groups   *cgroups
	way      way
	peers    []wire.Peer
	owners   owners
	ahead    ahead
	reaping  sync.WaitGroup // goroutines that wait for launchers
}

// A way is what a cage is started with, of several that are tried.
type way struct {
	user   bool // a user namespace
	spaces bool // all the other namespaces
}

// ways are tried in this order; the first that reaches Full is taken, or else
// the best.
func ways() []way {
	if os.Geteuid() == 0 { // who needs no user namespace to make the others
		return []way{{true, true}, {false, true}, {false, false}}
	}
	return []way{{true, true}, {false, false}}
}

// Ids that plugins of a host run under that is root, a different one each.
// Nothing of the system has an id so high.
const (
	firstUID = 0x70000000
	uidCount = 1 << 16
)

func newCage(opts Options, starter *starter) *cage {
	c := &cage{opts: opts, launcher: &launcher{}, groups: newCgroups()}
	c.forks = &forkServer{launcher: c.launcher, starter: starter}
	c.ahead = ahead{cage: c}
	if opts.Standby {
		c.ahead.most = mostAhead
	}
	for _, name := range []string{"user", "pid", "net", "ipc", "uts", "mnt"} {
		if id, err := os.Readlink("/proc/self/ns/" + name); err == nil {
			c.peers = append(c.peers, wire.Peer{Name: name, ID: id})
		}
	}
	return c
}

// idle ends the launchers that wait for a program, and returns when no launcher is left. It comes before the starter's end, on which they depend.
func (c *cage) idle() {
	c.ahead.close()
	c.reaping.Wait()
}

func (c *cage) close() error {
	c.owners.close()
	c.forks.close()
	c.launcher.close()
	return c.groups.close()
}

// probe builds cages around nothing until one stands.
func (s *Sandbox) probe() Report {
	if err := s.cage.launcher.open(s.opts.Dir); err != nil {
		return noReport(err.Error())
	}
	best, taken, refused := noReport("nothing was tried"), way{}, ""
	for i, w := range ways() {
		s.cage.way = w
		r, err := s.try()
		if err != nil && w.user && refused == "" {
			refused = err.Error() + namespaceHelp()
		}
		if i == 0 || rank(r) > rank(best) {
			best, taken = r, w
		}
		if r.Level == Full {
			break
		}
	}
	s.cage.way = taken
	return best.because(refused)
}

// because gives the namespaces that are missing the reason why the first way to
// have them failed: the way that was taken instead did not ask for them.
func (r Report) because(refused string) Report {
	for i, l := range r.Layers {
		if refused != "" && !l.On && slices.Contains(spaces, l.Name) {
			r.Layers[i].Why = refused
		}
	}
	return r
}

// spaces are the walls that namespaces are.
var spaces = []string{LayerUser, LayerMount, LayerPID, LayerNet, LayerIPC, LayerUTS}

// namespaceHelp says what keeps this user from making namespaces, as far as the
// kernel's settings tell, and how to change it.
func namespaceHelp() string {
	for _, s := range []struct{ path, forbids, change string }{
		{"user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"},
		{"kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"},
		{"kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
	} {
		if have, err := os.ReadFile("/proc/sys/" + s.path); err == nil && strings.TrimSpace(string(have)) == s.forbids {
			return "; user namespaces are forbidden here, and root allows them with: " + s.change
		}
	}
	return "; user namespaces may be forbidden here: see sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone and " +
		"kernel.apparmor_restrict_unprivileged_userns or, in a container, its seccomp and AppArmor profiles"
}

func rank(r Report) int {
	n := len(r.Layers) - len(r.Missing())
	return n + 100*slices.Index([]Level{None, Partial, Full}, r.Level)
}

// tryLimit is the time that a cage around nothing may take, unless a single start may take longer.
const tryLimit = 5 * time.Second

// try builds one cage around nothing. The error says why none could be built.
func (s *Sandbox) try() (Report, error) {
	failed := func(err error) (Report, error) { return noReport(err.Error()), err }
	ctx, cancel := context.WithTimeout(context.Background(), max(tryLimit, s.opts.StartLimit))
	defer cancel()
	scratch, err := os.MkdirTemp(s.opts.Dir, "cage-")
	if err != nil {
		return failed(fmt.Errorf("no directory to try a sandbox in: %w", err))
	}
	defer rmtree.Remove(scratch)
	if scratch, err = filepath.Abs(scratch); err != nil {
		return failed(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return failed(err)
	}
	defer null.Close()
	limits := Limits{Memory: 256 << 20, Scratch: 1 << 20, FileSize: 1 << 20, Processes: 64, OpenFiles: 64}
	p, err := s.cage.start(ctx, nil, Spec{Scratch: scratch, Limits: limits}, Files{null, null, null})
	if err != nil {
		return failed(fmt.Errorf("a sandbox could not be built: %w", err))
	}
	counts := p.caged.group == nil || p.caged.group.counts(wire.Held/2)
	_ = p.caged.lifeline.Close() // it waits for that
	p.Wait()
	p.Release()
	if !counts {
		s.cage.groups.refuse("its cgroup counts no memory")
		return s.try()
	}
	return p.report, nil
}

func (s *Sandbox) startCaged(ctx context.Context, spec Spec, files Files) (*Process, error) {
	p, err := s.cage.start(ctx, s.cage.ahead.take(spec), spec, files)
	if err != nil {
		return nil, launchFailed(spec, err)
	}
	if p.report.Level == Full { // no other way will be tried
		s.cage.ahead.refill(spec.Limits)
	}
	return p, nil
}

// start builds a cage and starts the program of spec in it; without a program,
// the cage ends once it was tried. k is a launcher that waits, or nil.
func (c *cage) start(ctx context.Context, k *caged, spec Spec, files Files) (*Process, error) {
	scratch, err := filepath.EvalSymlinks(spec.Scratch)
	if k == nil && err == nil {
		k, err = c.fork(ctx, spec.Limits, spec.Proxy)
	}
	if k == nil {
		return nil, err
	}
	p := &Process{cmd: k.cmd, caged: k, done: make(chan struct{})}
	var started wire.Started
	if err == nil {
		started, err = c.launch(ctx, p, spec, scratch, files)
	}
	if err == nil && len(spec.Argv) > 0 && c.way.spaces {
		p.scratch, _ = os.OpenRoot(fmt.Sprintf("/proc/%d/root%s", k.cmd.Process.Pid, scratch)) // nil where it has ended already
	}
	c.reaping.Go(p.reap) // from here on, it lets go of what the cage holds
	if err != nil {
		p.Kill()
		p.Wait()
		p.Release()
		return nil, err
	}
	p.report = reportOf(append(started.Layers, countedLayers(started.Layers, k.group, k.why)...))
	return p, nil
}

// launch has the launcher of a process start the program of spec.
func (c *cage) launch(ctx context.Context, p *Process, spec Spec, scratch string, files Files) (started wire.Started, err error) {
	k := p.caged
	order, err := c.order(k, spec, scratch)
	if err != nil {
		return started, err
	}
	handed := []*os.File{files.Stdin, files.Stdout, files.Stderr} // wire.Standard
	if c.way.user && c.way.spaces {
		mounts := k.owner.hand(order.Tree, len(handed))
		defer closeFiles(mounts...)
		handed = append(handed, mounts...)
	}
	proxied, err := newHandover(spec.Proxy)
	if err != nil {
		return started, err
	}
	defer proxied.close()
	if proxied != nil {
		order.Proxy = len(handed)
		handed = append(handed, proxied.theirs)
	}
	if started, err = k.negotiate(ctx, order, handed); err != nil {
		return started, err
	}
	if started.Error != "" {
		return started, refusal(started)
	}
	p.proxy, err = proxied.listener()
	return started, err
}

// order says what the launcher is to do.
func (c *cage) order(k *caged, spec Spec, scratch string) (*wire.Spec, error) {
	order := &wire.Spec{
		Argv: spec.Argv, Env: spec.Env, Dir: scratch, Mounts: c.way.spaces, Fresh: c.way.spaces,
		UID: k.uid, GID: k.gid, Switch: k.owner != nil, Outside: c.peers, Limits: spec.Limits.wire(),
		Write: []string{scratch}, Wait: k.group != nil && !k.in,
	}
	order.Limits.Watch = k.group == nil
	tree, read, err := viewOf(spec, k.uid, k.gid)
	if err != nil {
		return nil, err
	}
	order.Read = read
	if c.way.spaces {
		if order.Hidden, err = hidden(tree); err != nil {
			return nil, err
		}
		order.Tree = tree
		order.Scan = []string{"/proc", "/etc", "/dev"}
		order.Write = append(order.Write, "/tmp")
	} else if k.owner != nil {
		if err := os.Chown(scratch, k.uid, k.gid); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		order.Write = append(order.Write, "/dev/"+name)
	}
	return order, nil
}

// countedLayers are the layers that count the tree as a whole, where a cgroup
// does. Where the launcher does it has said so; it does not know why.
func countedLayers(said []Layer, group *cgroup, why string) []Layer {
	if group != nil {
		return []Layer{{Name: LayerMemory, On: true, Why: "cgroup " + group.version}, {Name: LayerProcesses, On: true, Why: "cgroup " + group.version}}
	}
	for i, l := range said {
		if l.Name == LayerMemory || l.Name == LayerProcesses {
			said[i].Why = "no cgroup (" + why + "): " + l.Why
		}
	}
	return nil
}

// hidden returns a path of the host that a cage with this tree does not show:
// that it is out of sight is tried.
func hidden(tree []wire.Node) (string, error) {
	fits := func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil && !slices.ContainsFunc(tree, func(n wire.Node) bool { return within(path, n.Path) || within(n.Path, path) })
	}
	for _, path := range []string{"/etc/shadow", "/sys/kernel", "/boot", "/root", "/home"} {
		if fits(path) {
			return path, nil
		}
	}
	top, _ := os.ReadDir("/")
	for _, entry := range top {
		if path := "/" + entry.Name(); fits(path) {
			return path, nil
		}
	}
	return "", errors.New("its cage cannot be tried: it is to see something of every directory of this machine")
}

// within reports whether path is dir, or in it.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// refusal turns what the launcher says into an error.
func refusal(s wire.Started) error {
	if s.Stage == "exec" {
		return errors.New(s.Error)
	}
	return fmt.Errorf("its sandbox cannot be built (%s): %s", s.Stage, s.Error)
}

// identity returns the user and group the program shall have, and the owner
// that this is where the launcher must become it.
func (c *cage) identity(ctx context.Context) (uid, gid int, own *owner) {
	uid, gid = os.Geteuid(), os.Getegid()
	if uid != 0 || largestID() < 2 { // a container that has no other id to give
		return uid, gid, nil
	}
	own = c.owners.take(ctx, c.forks)
	return own.id, own.id, own
}

// namespaces returns the request that starts a launcher in its namespaces. With proxied, it sets
// up the loopback interface.
func (c *cage) namespaces(own *owner, proxied bool) wire.Fork {
	var b wire.Fork
	if c.way.spaces {
		b.Flags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	}
	if c.way.user {
		b.Flags |= unix.CLONE_NEWUSER
		b.Users = []wire.Mapping{{Inside: os.Geteuid(), Outside: os.Geteuid()}}
		b.Groups = []wire.Mapping{{Inside: os.Getegid(), Outside: os.Getegid()}}
		if own != nil {
			as := wire.Mapping{Inside: own.id, Outside: own.id}
			b.Users, b.Groups, b.SetGroups = append(b.Users, as), append(b.Groups, as), true
		}
		if os.Geteuid() != 0 { // who keeps capabilities through exec only like this
			b.Ambient = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE}
			if proxied {
				b.Ambient = append(b.Ambient, unix.CAP_NET_ADMIN)
			}
		}
	}
	return b
}

// largestID returns the highest user id that can be given away here.
func largestID() int {
	file, err := os.Open("/proc/self/uid_map")
	if err != nil {
		return 0
	}
	defer file.Close()
	largest := 0
	for {
		var inside, outside, count int
		if _, err := fmt.Fscan(file, &inside, &outside, &count); err != nil {
			return largest
		}
		largest = max(largest, inside+count-1)
	}
}
