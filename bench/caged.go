package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
)

// caged is table S: what a cage costs at the start of a program, and in each
// call of a plugin that runs already.
func caged(ctx context.Context, l *lab) ([]table, error) {
	box, err := l.box()
	if err != nil {
		return nil, err
	}
	r := box.Report()
	if err := box.Close(); err != nil {
		return nil, err
	}
	if r.Level != sandbox.Full {
		return nil, fmt.Errorf("not run: this machine reaches isolation level %s; mortise doctor says what is missing", r.Level)
	}
	spawned, err := l.spawns(ctx, "S1. From spawn to exit of a program that does nothing, one after the other, unpinned", 0)
	if err != nil {
		return nil, err
	}
	rested, err := l.spawns(ctx, "S1b. The same, 30 ms after the last one", 30*time.Millisecond)
	if err != nil {
		return nil, err
	}
	called, err := onePinned(ctx, l, "role-caged")
	return []table{spawned, rested, called}, err
}

// box returns a sandbox that starts programs in a full cage or not at all.
func (l *lab) box() (*sandbox.Sandbox, error) { return l.boxOf(false) }

// boxOf returns one that has launchers waiting, or none.
func (l *lab) boxOf(standby bool) (*sandbox.Sandbox, error) {
	return sandbox.New(sandbox.Options{Dir: l.scratch, Mode: sandbox.Required, Standby: standby})
}

// limits are those that a plugin has where the configuration names no others.
var limits = sandbox.Limits{Memory: 1 << 30, Scratch: 256 << 20, FileSize: 256 << 20, Processes: 256, OpenFiles: 1024}

// ---- S1: starting ----

// A spawner starts a program that ends at once, and waits for its end.
type spawner struct {
	name   string
	spawn  func(ctx context.Context) error
	target target
}

// spawns has the spawners take turns, and rests before each start.
func (l *lab) spawns(ctx context.Context, title string, rest time.Duration) (t table, err error) {
	all, closeAll, err := l.spawners()
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	n, turn := 25, 20
	if rest > 0 {
		n, turn = 15, 10
	}
	if l.quick {
		n, turn = 2, 2
	}
	var r rounds
	for i := range n + 1 {
		var round []float64
		for _, s := range all {
			var took []time.Duration
			for range turn {
				time.Sleep(rest)
				begin := time.Now()
				if err := s.spawn(ctx); err != nil {
					return t, fmt.Errorf("%s: %w", s.name, err)
				}
				took = append(took, time.Since(begin))
			}
			round = append(round, p50(took, time.Millisecond))
		}
		if i > 0 { // the first reads files
			r = append(r, round)
		}
	}
	t = table{Title: title, Unit: "p50 ms"}
	for i, s := range all {
		figure, ratio := r.median(i)
		t.Rows = append(t.Rows, judged(s.name, figure, ratio, s.target))
	}
	return t, nil
}

// spawners are the contestants of table S1, the floor first.
func (l *lab) spawners() (all []spawner, closeAll func() error, err error) {
	program, err := l.nothing()
	if err != nil {
		return nil, nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	full, err := l.box()
	if err != nil {
		return nil, nil, errors.Join(err, null.Close())
	}
	ahead, err := l.boxOf(true)
	if err != nil {
		return nil, nil, errors.Join(err, null.Close(), full.Close())
	}
	none := sandbox.Uncaged()
	within := func(box *sandbox.Sandbox) func(context.Context) error {
		return func(ctx context.Context) error { return l.within(ctx, box, program, null) }
	}
	all = []spawner{
		{name: "floor: fork + exec", spawn: func(ctx context.Context) error {
			return exec.CommandContext(ctx, program).Run()
		}},
		{name: "internal/runtime/sandbox, level none", spawn: within(none)},
		{name: "internal/runtime/sandbox, level full", spawn: within(full), target: atMostAdded(15)},
		{name: "internal/runtime/sandbox, level full, launchers ahead", spawn: within(ahead), target: atMostAdded(4)},
	}
	if bwrap, err := exec.LookPath("bwrap"); err == nil {
		all = append(all, spawner{name: "bubblewrap with the same namespaces, no more walls", spawn: func(ctx context.Context) error {
			return bubblewrap(ctx, bwrap, program)
		}})
	} else {
		fmt.Println("\nbubblewrap: not run: bwrap is not installed (apt-get install bubblewrap)")
	}
	return all, func() error { return errors.Join(none.Close(), full.Close(), ahead.Close(), null.Close()) }, nil
}

// within starts the program through a sandbox, with a scratch directory of its
// own as the runner gives it one.
func (l *lab) within(ctx context.Context, box *sandbox.Sandbox, program string, null *os.File) error {
	scratch, err := os.MkdirTemp(l.scratch, "s-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	p, err := box.Start(ctx, sandbox.Spec{
		Argv: []string{program}, Env: []string{"HOME=" + scratch}, Read: []string{program}, Scratch: scratch, Limits: limits,
	}, sandbox.Files{Stdin: null, Stdout: null, Stderr: null})
	if err != nil {
		return err
	}
	state := p.Wait()
	p.Release()
	if !state.OK() {
		return fmt.Errorf("the program ended with %s", state)
	}
	return nil
}

// bubblewrap starts the program in namespaces of its own, with a root that has
// little else. It has no filter of system calls, no Landlock and no limits,
// and tries nothing.
func bubblewrap(ctx context.Context, bwrap, program string) error {
	return exec.CommandContext(ctx, bwrap,
		"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session",
		"--cap-drop", "ALL", "--clearenv", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--ro-bind", program, program,
		program).Run()
}

func atMostAdded(ms float64) target {
	return target{fmt.Sprintf("<= +%g ms", ms), func(figure, ratio float64) bool { return figure-figure/ratio <= ms }}
}

// exits are the instructions that end a process well, by architecture.
var exits = map[string]struct {
	machine uint16
	code    []byte
}{
	"amd64": {62, []byte{0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05}},                         // mov eax, 60; xor edi, edi; syscall
	"arm64": {183, []byte{0xa8, 0x0b, 0x80, 0xd2, 0, 0, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4}}, // mov x8, 93; mov x0, 0; svc 0
}

// nothing writes a static program that ends at once, so that what is measured
// is its start alone: a program in Go takes longer to begin than to be caged.
func (l *lab) nothing() (path string, err error) {
	exit, known := exits[runtime.GOARCH]
	if !known {
		return "", fmt.Errorf("not run: there is no program for %s", runtime.GOARCH)
	}
	const base, head = 0x400000, 64 + 56
	size := uint64(head + len(exit.code))
	file := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	le := binary.LittleEndian
	file = le.AppendUint16(file, 2) // an executable
	file = le.AppendUint16(file, exit.machine)
	file = le.AppendUint32(file, 1)
	for _, address := range []uint64{base + head, 64, 0} { // where it begins, its program header, no sections
		file = le.AppendUint64(file, address)
	}
	file = le.AppendUint32(file, 0)
	for _, n := range []uint16{64, 56, 1, 64, 0, 0} {
		file = le.AppendUint16(file, n)
	}
	file = le.AppendUint32(file, 1)   // loaded
	file = le.AppendUint32(file, 4|1) // to be read and run
	for _, n := range []uint64{0, base, base, size, size, 0x10000} {
		file = le.AppendUint64(file, n)
	}
	path = l.program("nothing")
	return path, os.WriteFile(path, append(file, exit.code...), 0o755)
}

// ---- S2: calling ----

// cagedRounds is the copy of this program that is bound to one core, and calls
// a caged plugin beside an uncaged one. Which is first alternates from round
// to round, and both processes are new a few times, since where their memory
// lies is chance. It writes the table to its standard output.
func cagedRounds(args []string) error {
	ctx := context.Background()
	l, err := openLab(ctx, args[0], args[1] == "true")
	if err != nil {
		return err
	}
	box, err := l.box()
	if err != nil {
		return err
	}
	defer box.Close()
	pairs, n, turn := 6, 12, 100*time.Millisecond
	if l.quick {
		pairs, n, turn = 1, 2, 30*time.Millisecond
	}
	openers := []opener{
		func(ctx context.Context, l *lab) (*contestant, error) {
			return l.throughRunner(ctx, "floor: Go plugin, level none", l.program("echo"), process.Options{})
		},
		func(ctx context.Context, l *lab) (*contestant, error) {
			return l.throughRunner(ctx, "Go plugin, level full", l.program("echo"), process.Options{Sandbox: box, Limits: limits})
		},
	}
	var r rounds
	var names []string
	for range pairs {
		one, those, err := l.alternate(ctx, openers, n, turn)
		if err != nil {
			return err
		}
		r, names = append(r, one...), those
	}
	t := table{Title: "S2. Warm call, 1 KB echo, one caller, host and plugin pinned to one core", Unit: "p50 us"}
	for i, name := range names {
		figure, ratio := r.median(i)
		t.Rows = append(t.Rows, judged(name, figure, ratio, []target{{}, atMostRatio(1.02)}[i]))
	}
	return json.NewEncoder(os.Stdout).Encode(t)
}

// alternate measures newly opened contestants for n rounds, in an order that
// turns round each time, and names them.
func (l *lab) alternate(ctx context.Context, openers []opener, n int, turn time.Duration) (r rounds, names []string, err error) {
	all, closeAll, err := openAll(ctx, l, openers)
	defer closeAll()
	if err != nil {
		return nil, nil, err
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
		names = append(names, all[i].name)
	}
	for range n {
		round := make([]float64, len(all))
		for _, i := range order {
			took, err := latencies(ctx, all[i], turn)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", all[i].name, err)
			}
			round[i] = p50(took, time.Microsecond)
		}
		r = append(r, round)
		slices.Reverse(order)
	}
	return r, names, nil
}
