// Package wire is what the host and its launcher say to each other: one
// [Spec] to the launcher, then one [Started] and one [Ended] back, each a line
// of JSON. Before that, a [Fork] asks the fork server for the launcher, and a
// [Forked] answers.
package wire

// Descriptors that the launcher finds open. Its first three are the null device until the spec comes.
const (
	SpecFD   = 3 // a stream socket: one byte with descriptors, then the spec. Its end, at any time, says that the host is gone
	ReportFD = 4 // a pipe for what came of it
)

// Descriptors that come with the spec, by their index.
const (
	Standard = 3             // how many the program has: its standard input, output and error
	MaxFiles = Standard + 93 // with the mounts of [Node.FD] and the socket of [Spec.Proxy]
)

// ProxyPort is where a program finds the proxy of the host, on 127.0.0.1 of its own network namespace.
const ProxyPort = 3128

// Launcher is argv[0] of a process that is a launcher, by which package launcher
// knows it.
const Launcher = "mortise-launcher"

// ByHand is what a launcher says that was not started by a host.
const ByHand = "this is the launcher of mortise's sandboxes: mortise starts it and tells it what to do; there is nothing to do by hand"

// HostName is what a cage calls its machine.
const HostName = "mortise"

// Held is how much memory a launcher takes to see it counted. One that has no
// program holds as much while the host looks, until the host hangs up.
const Held = 2 << 20

// ForkServer is the argument of a launcher that forks other launchers. It finds a
// SOCK_SEQPACKET socket at SpecFD and reads a [Fork], with the descriptors of the new
// launcher, from each packet. It answers each with a [Forked].
const ForkServer = "forkserver"

// OwnMounts is the argument of a launcher that has a mount namespace of its own.
const OwnMounts = "mounts"

// Bounds of a [Fork].
const (
	MaxFork      = 4 << 10 // bytes of it
	MaxForkFiles = 8       // descriptors beside it
)

// A Fork says in which namespaces a launcher starts, and as which user.
type Fork struct {
	Flags     uintptr   `json:"flags"` // of clone
	Users     []Mapping `json:"users"` // of its user namespace, where flags ask for one
	Groups    []Mapping `json:"groups"`
	SetGroups bool      `json:"set_groups"` // it may give up groups
	Ambient   []uintptr `json:"ambient"`    // capabilities that it keeps
	Tasks     []string  `json:"tasks"`      // files by which a thread joins cgroups of version 1: it is forked in these
}

// A Mapping is the number that one user or group has inside and outside of a
// user namespace.
type Mapping struct {
	Inside  int `json:"inside"`
	Outside int `json:"outside"`
}

// A Forked is the answer to a [Fork]. The launcher is a child of the host.
type Forked struct {
	PID   int    `json:"pid"`
	In    bool   `json:"in"` // it is in the cgroups of [Fork.Tasks]
	Error string `json:"error,omitempty"`
	Errno int    `json:"errno,omitempty"` // which error of the kernel's that is, if it is one
}

// A Spec says what to start and in which walls.
type Spec struct {
	Argv []string `json:"argv"` // empty: only try the walls
	Env  []string `json:"env"`
	Dir  string   `json:"dir"` // where the program starts: its scratch directory

	Mounts  bool   `json:"mounts"`  // there is a mount namespace, and [OwnMounts] said so: build the view below
	Fresh   bool   `json:"fresh"`   // there is a PID namespace: mount its own /proc
	Tree    []Node `json:"tree"`    // what the root has, parents before what is in them
	UID     int    `json:"uid"`     // whom to become
	GID     int    `json:"gid"`     // likewise
	Switch  bool   `json:"switch"`  // become UID and GID; else the launcher is them already
	Outside []Peer `json:"outside"` // the host's own namespaces, to tell that these are others

	Read   []string `json:"read"`   // Landlock: may be read and run
	Scan   []string `json:"scan"`   // Landlock: may be read
	Write  []string `json:"write"`  // Landlock: may be written
	Hidden string   `json:"hidden"` // a path of the host that must not be there

	Proxy int `json:"proxy,omitzero"` // the index of the socket on which a listener is handed to the host, at ProxyPort; 0 for a program without network

	Wait   bool   `json:"wait"` // the host sends one more byte once the launcher is in its cgroup
	Limits Limits `json:"limits"`
}

// A Node is one thing in the root that the program sees.
type Node struct {
	Kind string `json:"kind"` // bind, link, work, empty, text, proc, dev
	Path string `json:"path"`
	To   string `json:"to,omitempty"` // of a link: where to; of a text: what it says
	Dir  bool   `json:"dir,omitempty"`
	FD   int    `json:"fd,omitempty"` // of a bind: the index of the mount itself, which the host made; 0 for none

	Device uint64 `json:"device,omitzero"` // of a bind of a file: which one it has to be
	Inode  uint64 `json:"inode,omitzero"`  // 0 for any
}

// A Peer is a namespace of the host.
type Peer struct {
	Name string `json:"name"` // as below /proc/self/ns
	ID   string `json:"id"`   // as its link reads
}

// Limits bound the program and all that it starts. Zero is no limit.
type Limits struct {
	Memory    int64 `json:"memory"`    // bytes
	Scratch   int64 `json:"scratch"`   // bytes, of scratch and /tmp together
	FileSize  int64 `json:"file_size"` // bytes of one file
	Processes int   `json:"processes"` // processes and threads
	OpenFiles int   `json:"open_files"`
	CPU       int64 `json:"cpu"`   // seconds of one process
	Watch     bool  `json:"watch"` // no cgroup counts: the launcher itself does
}

// A Layer is one wall and whether it stands.
type Layer struct {
	Name string `json:"name"`
	On   bool   `json:"on"`
	Why  string `json:"why,omitempty"`
}

// A Started says what became of a spec.
type Started struct {
	Layers []Layer `json:"layers"`
	Error  string  `json:"error,omitempty"` // nothing was started
	Stage  string  `json:"stage,omitempty"` // with Error: view, walls or exec
}

// An Ended says how the program ended.
type Ended struct {
	Exit     int    `json:"exit"`
	Signal   int    `json:"signal,omitempty"`
	Exceeded string `json:"exceeded,omitempty"` // the limit that ended it
	Last     bool   `json:"last,omitempty"`     // it was the last process of its PID namespace but the launcher
}
