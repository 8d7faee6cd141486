//go:build linux

package canary

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// public are the directories that every machine has and any user may write to, and some
// that only root may. A file with the mark found there has escaped.
var public = []string{"/tmp", "/var/tmp", "/dev/shm", "/run", "/etc", "/usr/lib", "/", "/dev"}

// A Coop holds the canaries of one run. Each listener has a goroutine of its own,
// and one reads what the victim says; all end with Close.
type Coop struct {
	Config Config

	closing []func()
	group   sync.WaitGroup
	hits    [kinds]atomic.Int64
	owner   atomic.Bool
	before  map[string]string // the files outside, as they were
}

// What canaries count.
const (
	tcp = iota
	udp
	unixStream
	unixDatagram
	unixPacket
	abstract
	abstractDatagram
	signalled
	kinds
)

// Evidence is what reached the canaries, whatever the probes said.
type Evidence struct {
	Connections map[string]int64 `json:"connections"` // by the kind of listener
	Signals     int64            `json:"signals"`
	Owner       bool             `json:"owner"`    // a signal came that only signal.by_descriptor_owner sends
	Files       []string         `json:"files"`    // outside: made, gone or changed
	Escaped     []string         `json:"escaped"`  // files with the mark in public directories
	Messages    int              `json:"messages"` // in the queues of the host
}

// Open sets up the canaries beneath a directory. The files are the caller's own,
// so that no permission of theirs stands in the way. probes are the names for
// which there is a file to spoil.
func Open(dir, mark string, probes []string) (*Coop, error) {
	c := &Coop{Config: Config{
		Secret: "canary-" + mark, Mark: mark,
		Outside: filepath.Join(dir, "outside"), Package: filepath.Join(dir, "package"), Scratch: filepath.Join(dir, "scratch"),
		OwnerID: os.Getuid(), HostPID: os.Getpid(), HostGroup: syscall.Getpgrp(),
	}}
	for _, step := range []func() error{
		func() error { return c.files(probes) }, c.listeners, c.memory, c.queues, c.victim, c.namespaces, c.descriptor,
	} {
		if err := step(); err != nil {
			c.Close()
			return nil, err
		}
	}
	var err error
	if c.before, err = fingerprints(c.Config.Outside); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close takes the canaries down again.
func (c *Coop) Close() {
	for _, step := range slices.Backward(c.closing) {
		step()
	}
	c.closing = nil
	c.group.Wait()
}

func (c *Coop) later(step func()) { c.closing = append(c.closing, step) }

func (c *Coop) files(probes []string) error {
	for _, file := range []string{
		"data/ledger.db", "data/ledger.key", "data/mortise.yaml", "packages/other/plugin.py", "scratch-of-another/notes",
		"home/.ssh/id_ed25519", "labelled",
	} {
		if err := c.file(file); err != nil {
			return err
		}
	}
	for _, name := range probes {
		if err := c.file("targets/" + name); err != nil {
			return err
		}
	}
	program, err := os.ReadFile(filepath.Join(c.Config.Package, "probe"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.Config.Outside, "packages/other/program"), program, 0o755); err != nil {
		return err
	}
	_ = unix.Setxattr(filepath.Join(c.Config.Outside, "labelled"), "user.canary", []byte(c.Config.Secret), 0) // where there are attributes
	c.later(func() {
		_ = os.Remove("/tmp/" + c.Config.Mark)
		for _, dir := range public {
			_ = os.Remove(filepath.Join(dir, c.Config.Mark+".made"))
		}
	})
	return errors.Join(
		os.Symlink("data/ledger.db", filepath.Join(c.Config.Outside, "link")),
		os.Mkdir(filepath.Join(c.Config.Outside, "empty"), 0o777),
		os.Mkdir("/tmp/"+c.Config.Mark, 0o777),
	)
}

func (c *Coop) file(path string) error {
	path = filepath.Join(c.Config.Outside, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(c.Config.Secret+"\n"), 0o666)
}

func (c *Coop) listeners() error {
	both, err := net.Listen("tcp", ":0")
	if err != nil {
		return err
	}
	c.accept(tcp, both)
	c.Config.TCPPort = both.Addr().(*net.TCPAddr).Port
	datagrams, err := net.ListenPacket("udp", ":0")
	if err != nil {
		return err
	}
	c.receive(udp, datagrams)
	c.Config.UDPPort = datagrams.LocalAddr().(*net.UDPAddr).Port

	c.Config.UnixStream = filepath.Join(c.Config.Outside, "stream")
	c.Config.UnixDatagram = filepath.Join(c.Config.Outside, "datagram")
	c.Config.UnixPacket = filepath.Join(c.Config.Outside, "packet")
	c.Config.Abstract, c.Config.AbstractData = c.Config.Mark, c.Config.Mark+"-datagram"
	for _, l := range []struct {
		kind          int
		network, name string
	}{
		{unixStream, "unix", c.Config.UnixStream},
		{unixPacket, "unixpacket", c.Config.UnixPacket},
		{abstract, "unix", "@" + c.Config.Abstract},
	} {
		listener, err := net.Listen(l.network, l.name)
		if err != nil {
			return err
		}
		c.accept(l.kind, listener)
	}
	for _, l := range []struct {
		kind int
		name string
	}{{unixDatagram, c.Config.UnixDatagram}, {abstractDatagram, "@" + c.Config.AbstractData}} {
		listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: l.name, Net: "unixgram"})
		if err != nil {
			return err
		}
		c.receive(l.kind, listener)
	}

	addresses, err := net.InterfaceAddrs()
	for _, a := range addresses {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			c.Config.Addresses = append(c.Config.Addresses, p.Addr().String())
		}
	}
	return err
}

// accept counts the connections of a listener.
func (c *Coop) accept(kind int, l net.Listener) {
	c.later(func() { l.Close() })
	c.group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.hits[kind].Add(1)
			conn.Close()
		}
	})
}

// receive counts the datagrams of a listener.
func (c *Coop) receive(kind int, l net.PacketConn) {
	c.later(func() { l.Close() })
	c.group.Go(func() {
		buffer := make([]byte, 64)
		for {
			if _, _, err := l.ReadFrom(buffer); err != nil {
				return
			}
			c.hits[kind].Add(1)
		}
	})
}

// memory makes memory that everybody on the host may use, of both kinds.
func (c *Coop) memory() error {
	c.Config.ShmKey = int(time.Now().UnixNano()&0x3fffffff) | 0x40000000
	for i := range 2 {
		id, err := unix.SysvShmGet(c.Config.ShmKey+i, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
		if err != nil {
			return fmt.Errorf("making shared memory: %w", err)
		}
		c.later(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
		if i > 0 {
			continue // the second one is there to be removed
		}
		c.Config.ShmID = id
		memory, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			return err
		}
		copy(memory, c.Config.Secret)
		_ = unix.SysvShmDetach(memory)
	}
	c.Config.ShmFile = c.Config.Mark + "-shm"
	path := filepath.Join("/dev/shm", c.Config.ShmFile)
	c.later(func() { _ = os.Remove(path) })
	return os.WriteFile(path, []byte(c.Config.Secret), 0o666)
}

// queues makes a semaphore and message queues.
func (c *Coop) queues() error {
	c.Config.SemKey, c.Config.MsgKey = c.Config.ShmKey, c.Config.ShmKey
	flags := uintptr(unix.IPC_CREAT | unix.IPC_EXCL | 0o666)
	id, _, no := unix.Syscall(unix.SYS_SEMGET, uintptr(c.Config.SemKey), 1, flags)
	if no != 0 {
		return fmt.Errorf("making a semaphore: %w", no)
	}
	c.Config.SemID = int(id)
	c.later(func() { unix.Syscall(unix.SYS_SEMCTL, uintptr(c.Config.SemID), 0, unix.IPC_RMID) })
	if id, _, no = unix.Syscall(unix.SYS_MSGGET, uintptr(c.Config.MsgKey), flags, 0); no != 0 {
		return fmt.Errorf("making a message queue: %w", no)
	}
	c.Config.MsgID = int(id)
	c.later(func() { unix.Syscall(unix.SYS_MSGCTL, uintptr(c.Config.MsgID), unix.IPC_RMID, 0) })

	c.Config.Queue = c.Config.Mark + "-queue"
	for _, name := range []string{c.Config.Queue, c.Config.Queue + "-spare"} {
		text := append([]byte(name), 0)
		attributes := [8]int64{0, 4, 64}
		fd, _, no := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&text[0])), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o666,
			uintptr(unsafe.Pointer(&attributes)), 0, 0)
		if no != 0 {
			return fmt.Errorf("making a POSIX message queue: %w", no)
		}
		_ = unix.Close(int(fd))
		c.later(func() { unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&text[0])), 0, 0) })
	}
	return nil
}

// victim starts a process to attack: this program again, as [Victim].
func (c *Coop) victim() error {
	cmd := exec.Command("/proc/self/exe", "victim", c.Config.Mark)
	cmd.Env = []string{"MORTISE_ESCAPE_CANARY=" + c.Config.Secret}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the victim: %w", err)
	}
	c.Config.VictimPID = cmd.Process.Pid
	c.later(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		_ = cmd.Wait()
		return errors.New("the victim did not start")
	}
	if _, err := fmt.Sscanf(lines.Text(), "ready %d", &c.Config.VictimAddr); err != nil {
		return err
	}
	c.group.Go(func() {
		for lines.Scan() {
			if lines.Text() == unix.SIGUSR2.String() {
				c.owner.Store(true)
			}
			c.hits[signalled].Add(1)
		}
		_ = cmd.Wait()
	})
	return nil
}

// Victim is the process that is attacked: it keeps the secret in its memory and
// says so when a signal reaches it.
func Victim() {
	secret := []byte(os.Getenv("MORTISE_ESCAPE_CANARY"))
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, unix.SIGUSR1, unix.SIGUSR2, unix.SIGIO, unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
	fmt.Printf("ready %d\n", uintptr(unsafe.Pointer(&secret[0])))
	for s := range signals {
		fmt.Println(s)
	}
}

func (c *Coop) namespaces() error {
	c.Config.Namespaces = map[string]string{}
	for _, kind := range []string{"user", "pid", "mnt", "net", "ipc", "uts"} {
		link, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return err
		}
		c.Config.Namespaces[kind] = link
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for mount := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(mount); len(fields) > 4 && fields[4] == "/" {
			c.Config.RootMount = fields[0]
		}
	}
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil {
		return err
	}
	c.Config.CorePattern = string(pattern)
	c.Config.Sizes = map[string]int{}
	for _, path := range []string{"/etc/passwd", "/etc/hosts"} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		c.Config.Sizes[path] = int(info.Size())
	}
	return nil
}

// descriptor opens a file of the host that programs started later inherit.
func (c *Coop) descriptor() error {
	c.Config.LeakedFD = 60
	fd, err := unix.Open(filepath.Join(c.Config.Outside, "data/ledger.key"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	c.later(func() { _ = unix.Close(c.Config.LeakedFD) })
	return unix.Dup3(fd, c.Config.LeakedFD, 0)
}

// Evidence looks at all canaries.
func (c *Coop) Evidence() (Evidence, error) {
	time.Sleep(50 * time.Millisecond) // for what is still on its way
	e := Evidence{Connections: map[string]int64{}, Signals: c.hits[signalled].Load(), Owner: c.owner.Load()}
	for kind, name := range []string{"tcp", "udp", "unix stream", "unix datagram", "unix packet", "abstract", "abstract datagram"} {
		e.Connections[name] = c.hits[kind].Load()
	}
	after, err := fingerprints(c.Config.Outside)
	if err != nil {
		return e, err
	}
	for path, print := range after {
		if was, ok := c.before[path]; !ok {
			e.Files = append(e.Files, "made: "+path)
		} else if was != print {
			e.Files = append(e.Files, "changed: "+path)
		}
	}
	for path := range c.before {
		if _, ok := after[path]; !ok {
			e.Files = append(e.Files, "gone: "+path)
		}
	}
	slices.Sort(e.Files)
	for _, dir := range public {
		path := filepath.Join(dir, c.Config.Mark+".made")
		if _, err := os.Lstat(path); err == nil {
			e.Escaped = append(e.Escaped, path)
		}
	}
	e.Messages = c.messages()
	return e, nil
}

// messages counts what lies in the queues that was not there before.
func (c *Coop) messages() int {
	var status [32]uint64 // struct msqid_ds: the number of messages is the twelfth word
	count := 0
	if _, _, no := unix.Syscall(unix.SYS_MSGCTL, uintptr(c.Config.MsgID), unix.IPC_STAT, uintptr(unsafe.Pointer(&status))); no == 0 {
		count += int(status[10])
	}
	name := append([]byte(c.Config.Queue), 0)
	fd, _, no := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0, 0, 0, 0)
	if no != 0 {
		return count
	}
	defer unix.Close(int(fd))
	var attributes [8]int64
	if _, _, no := unix.Syscall(unix.SYS_MQ_GETSETATTR, fd, 0, uintptr(unsafe.Pointer(&attributes))); no == 0 {
		count += int(attributes[3])
	}
	return count
}

// fingerprints says of every file beneath a directory what an attempt would
// change: the time of the last change of the inode covers mode, owner, links and
// attributes.
func fingerprints(dir string) (map[string]string, error) {
	prints := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		var text []byte
		if st.Mode&unix.S_IFMT == unix.S_IFREG {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		prints[path] = fmt.Sprint(st.Ino, st.Mode, st.Uid, st.Gid, st.Nlink, st.Size, st.Mtim, st.Ctim, len(text), bytes.Contains(text, []byte("canary-")))
		return nil
	})
	return prints, err
}

// Lingering returns the processes of the machine whose arguments hold a mark, by
// what they say they are. Those that have ended and wait to be reaped do not
// count.
func Lingering(mark string) map[string]int {
	found := map[string]int{}
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range entries {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		args := strings.Split(string(text), "\x00")
		if i := slices.Index(args, "linger"); i > 0 && len(args) > i+2 && args[i+1] == mark {
			var pid int
			_, _ = fmt.Sscanf(path, "/proc/%d/", &pid)
			found[args[i+2]] = pid
		}
	}
	return found
}
