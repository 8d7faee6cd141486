package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
	"github.com/mortise-dev/mortise/plugin"
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
	for _, name := range []string{"user", "pid", "net", "ipc", "uts", "mnt"} {
		if id, err := os.Readlink("/proc/self/ns/" + name); err == nil {
			c.peers = append(c.peers, wire.Peer{Name: name, ID: id})
		}
	}
	return c
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

// tryLimit is how long a cage around nothing may take.
const tryLimit = 5 * time.Second

// try builds one cage around nothing. The error says why none could be built.
func (s *Sandbox) try() (Report, error) {
	failed := func(err error) (Report, error) { return noReport(err.Error()), err }
	ctx, cancel := context.WithTimeout(context.Background(), tryLimit)
	defer cancel()
	scratch, err := os.MkdirTemp(s.opts.Dir, "cage-")
	if err != nil {
		return failed(fmt.Errorf("no directory to try a sandbox in: %w", err))
	}
	defer os.RemoveAll(scratch)
	if scratch, err = filepath.Abs(scratch); err != nil {
		return failed(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return failed(err)
	}
	defer null.Close()
	limits := Limits{Memory: 256 << 20, Scratch: 1 << 20, FileSize: 1 << 20, Processes: 64, OpenFiles: 64}
	p, err := s.cage.start(ctx, Spec{Scratch: scratch, Limits: limits}, Files{null, null, null})
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

// caged is what a process in a cage has besides.
type caged struct {
	cage     *cage
	spaces   bool     // the kernel ends everything with the launcher
	lifeline *os.File // to the launcher: when it is closed, everything ends
	report   *os.File
	// reports are the start and the end, which may both be there before the first is read: one decoder reads them, since a
	// second would miss what the first has in its buffer.
	reports *json.Decoder
	group   *cgroup // nil for none
	owner   *owner  // likewise
	once    sync.Once
}

func (s *Sandbox) startCaged(ctx context.Context, spec Spec, files Files) (*Process, error) {
	p, err := s.cage.start(ctx, spec, files)
	if err != nil {
		return nil, launchFailed(spec, err)
	}
	return p, nil
}

// start builds a cage and starts the program of spec in it; without a program,
// the cage ends once it was tried.
func (c *cage) start(ctx context.Context, spec Spec, files Files) (_ *Process, err error) {
	scratch, err := filepath.EvalSymlinks(spec.Scratch)
	if err != nil {
		return nil, err
	}
	group, why := c.groups.take(spec.Limits) // before anything is started: a group that is to have others has no process but the host
	uid, gid, own := c.identity(ctx)
	k := &caged{group: group, owner: own, cage: c, spaces: c.way.spaces}
	defer func() {
		if err != nil {
			k.release()
		}
	}()
	order := wire.Spec{
		Argv: spec.Argv, Env: spec.Env, Dir: scratch, Mounts: c.way.spaces, Fresh: c.way.spaces,
		UID: uid, GID: gid, Switch: own != nil, Outside: c.peers, Limits: spec.Limits.wire(),
	}
	tree, read, err := viewOf(spec, uid, gid)
	if err != nil {
		return nil, err
	}
	order.Read = read
	order.Write = []string{scratch}
	if c.way.spaces {
		if order.Hidden, err = hidden(tree); err != nil {
			return nil, err
		}
		order.Tree = tree
		order.Scan = []string{"/proc", "/etc", "/dev"}
		order.Write = append(order.Write, "/tmp")
	} else if own != nil {
		if err := os.Chown(scratch, uid, gid); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		order.Write = append(order.Write, "/dev/"+name)
	}

	order.Wait, order.Limits.Watch = group != nil, group == nil
	down, up, err := pipes()
	if err != nil {
		return nil, err
	}
	k.lifeline, k.report, k.reports = down[1], up[0], json.NewDecoder(io.LimitReader(up[0], 2*maxReport))
	theirs := []*os.File{down[0], up[1]} // wire.SpecFD, wire.ReportFD
	if c.way.user && c.way.spaces {
		theirs = append(theirs, own.hand(order.Tree, wire.ReportFD+1)...)
	}
	proxied, err := newHandover(spec.Proxy)
	if err != nil {
		closeFiles(theirs...)
		return nil, err
	}
	defer proxied.close()
	if proxied != nil {
		order.Proxy = wire.SpecFD + len(theirs)
		theirs = append(theirs, proxied.theirs)
	}
	cmd, err := c.forks.fork(ctx, c.namespaces(own, spec.Proxy), append([]*os.File{files.Stdin, files.Stdout, files.Stderr}, theirs...)...)
	closeFiles(theirs...)
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, caged: k, done: make(chan struct{})}
	started, failed := k.negotiate(ctx, cmd.Process.Pid, &order)
	if failed == nil && started.Error != "" {
		failed = refusal(started)
	}
	if failed == nil && len(spec.Argv) > 0 && c.way.spaces {
		p.scratch, _ = os.OpenRoot(fmt.Sprintf("/proc/%d/root%s", cmd.Process.Pid, scratch)) // nil where it has ended already
	}
	if failed == nil {
		p.proxy, failed = proxied.listener()
	}
	go p.reap() // from here on, it lets go of what the cage holds
	if failed != nil {
		p.Kill()
		p.Wait()
		p.Release()
		return nil, failed
	}
	p.report = reportOf(append(started.Layers, countedLayers(started.Layers, group, why)...))
	return p, nil
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

// pipes makes a pipe to the launcher and one back.
func pipes() (down, up [2]*os.File, err error) {
	if down[0], down[1], err = os.Pipe(); err != nil {
		return down, up, err
	}
	if up[0], up[1], err = os.Pipe(); err != nil {
		_, _ = down[0].Close(), down[1].Close()
	}
	return down, up, err
}

// maxReport is the longest line that the launcher may answer with.
const maxReport = 64 << 10

// negotiate sends the order and waits for what came of it.
func (k *caged) negotiate(ctx context.Context, pid int, order *wire.Spec) (started wire.Started, err error) {
	deadline := time.Now().Add(startLimit)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	stop := context.AfterFunc(ctx, func() {
		_ = k.report.SetReadDeadline(time.Now())
		_ = k.lifeline.SetWriteDeadline(time.Now())
	})
	defer stop()
	_ = k.report.SetReadDeadline(deadline)
	_ = k.lifeline.SetWriteDeadline(deadline)
	fail := func(err error) (wire.Started, error) {
		switch {
		case ctx.Err() != nil:
			err = plugin.AsError(context.Cause(ctx))
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = plugin.Errorf(plugin.CodeTimeout, "building its cage took longer than %s", startLimit)
		case errors.Is(err, io.EOF), errors.Is(err, unix.EPIPE), errors.Is(err, unix.ESRCH):
			err = errors.New("the launcher ended without a word")
		}
		return started, err
	}
	sent := k.send(pid, order)
	if sent != nil && !errors.Is(sent, unix.EPIPE) && !errors.Is(sent, unix.ESRCH) {
		return fail(sent)
	}
	// A launcher that has ended already may have said why.
	if err := k.reports.Decode(&started); err != nil {
		return fail(err)
	}
	if sent != nil && started.Error == "" {
		return fail(sent)
	}
	_ = k.report.SetReadDeadline(time.Time{})
	return started, nil
}

// send sends the order, and puts the launcher into its cgroup.
func (k *caged) send(pid int, order *wire.Spec) error {
	line, err := json.Marshal(order)
	if err != nil {
		return err
	}
	if _, err := k.lifeline.Write(append(line, '\n')); err != nil || k.group == nil {
		return err
	}
	if err := k.group.add(pid); err != nil { // while the launcher is at work on the rest
		return fmt.Errorf("putting it into its cgroup: %w", err)
	}
	_, err = k.lifeline.Write([]byte{'\n'})
	return err
}

// ended learns from the launcher, which has ended, how the program did.
func (k *caged) ended(end *State) {
	_ = k.report.SetReadDeadline(time.Now().Add(startLimit))
	var said wire.Ended
	if err := k.reports.Decode(&said); err == nil {
		end.Exit, end.Signal, end.Exceeded = said.Exit, syscall.Signal(said.Signal), said.Exceeded
	}
	if !end.OK() && k.group != nil {
		// What the kernel counted is a fact; what the launcher found lying about
		// may be from before.
		if counted := k.group.exceeded(); end.Exceeded == "" || counted == LimitMemory && end.Signal == syscall.SIGKILL {
			end.Exceeded = counted
		}
	}
	k.release()
}

// hangUp tells a launcher that is not the first process of a namespace to end
// everything, since no PID namespace does that when the launcher ends. It reports false
// where that is not needed.
func (k *caged) hangUp() bool {
	if k.spaces {
		return false
	}
	_ = k.lifeline.Close()
	return true
}

// release lets go of what the cage of one process holds, once.
func (k *caged) release() {
	k.once.Do(func() {
		closeFiles(k.lifeline, k.report)
		k.cage.groups.give(k.group)
		k.cage.owners.give(k.owner)
	})
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
