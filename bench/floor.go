package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// roles are what this program can be started as, by its first argument.
var roles = map[string]func(args []string) error{
	"role-bytes":   echoBytes,
	"role-frames":  echoFrames,
	"role-pinned":  pinnedRounds,
	"role-caged":   cagedRounds,
	"role-bus":     busRounds,
	"role-hooks":   hookRounds,
	"role-profile": profileRole,
	"role-http":    httpRole,
	"role-mcp":     mcpRole,
	"role-host":    hostRole,
}

// A pair is a child of this program in one of its roles.
type pair struct {
	cmd      *exec.Cmd
	to, from *os.File
}

func startPair(role string) (*pair, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	in, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	from, out, err := os.Pipe()
	if err != nil {
		to.Close()
		return nil, err
	}
	defer out.Close()
	p := &pair{cmd: exec.Command(self, role), to: to, from: from}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, os.Stderr
	if err := p.cmd.Start(); err != nil {
		to.Close()
		from.Close()
		return nil, err
	}
	return p, nil
}

func (p *pair) close() {
	p.to.Close()
	_ = p.cmd.Wait() // a child whose stdin ends ends too
	p.from.Close()
}

// rawBytes is the floor: two processes and two pipes, system calls that block
// at both ends, and nothing else.
func rawBytes(context.Context, *lab) (*contestant, error) {
	p, err := startPair("role-bytes")
	if err != nil {
		return nil, err
	}
	out, in := int(p.to.Fd()), int(p.from.Fd()) // Fd makes them blocking
	message := payload()
	answer := make([]byte, len(message))
	call := func(context.Context) error {
		if n, err := syscall.Write(out, message); n != len(message) {
			return fmt.Errorf("wrote %d bytes: %w", n, err)
		}
		for got := 0; got < len(answer); {
			n, err := syscall.Read(in, answer[got:])
			if n <= 0 {
				return fmt.Errorf("read %d bytes: %w", n, err)
			}
			got += n
		}
		return nil
	}
	return &contestant{name: "floor: raw bytes over two pipes", call: call, single: true, close: p.close}, nil
}

// echoBytes is the other end of rawBytes.
func echoBytes([]string) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := syscall.Read(0, buf)
		if n <= 0 {
			return err
		}
		if _, err := syscall.Write(1, buf[:n]); err != nil {
			return err
		}
	}
}

// Frames are a length of four bytes, an id of eight and the payload.
const frameHead = 12

// frames multiplexes calls over one pair: one goroutine writes what has
// collected, one reads and completes.
type frames struct {
	wake chan struct{}

	mu      sync.Mutex
	buf     []byte
	lastID  uint64
	pending map[uint64]chan []byte
	closed  bool
}

// rawFrames is the floor of anything that carries several calls at a time:
// ids, goroutines and the poller, and no look at the payload.
func rawFrames(context.Context, *lab) (*contestant, error) {
	p, err := startPair("role-frames")
	if err != nil {
		return nil, err
	}
	f := &frames{wake: make(chan struct{}, 1), pending: map[uint64]chan []byte{}}
	var ends sync.WaitGroup
	ends.Go(func() { f.write(p.to) })
	ends.Go(func() { f.read(p.from) })
	message := payload()
	return &contestant{
		name: "floor 2: raw frames with ids",
		call: func(context.Context) error { return f.call(message) },
		close: func() {
			f.mu.Lock()
			f.closed = true
			close(f.wake)
			f.mu.Unlock()
			p.close()
			ends.Wait()
		},
	}, nil
}

func (f *frames) call(message []byte) error {
	answer := make(chan []byte, 1)
	f.mu.Lock()
	f.lastID++
	f.pending[f.lastID] = answer
	f.buf = binary.LittleEndian.AppendUint32(f.buf, uint32(len(message)))
	f.buf = binary.LittleEndian.AppendUint64(f.buf, f.lastID)
	f.buf = append(f.buf, message...)
	select {
	case f.wake <- struct{}{}:
	default:
	}
	f.mu.Unlock()
	if got := <-answer; len(got) != len(message) {
		return fmt.Errorf("an answer of %d bytes to %d", len(got), len(message))
	}
	return nil
}

func (f *frames) write(w io.Writer) {
	var spare []byte
	for range f.wake {
		f.mu.Lock()
		buf := f.buf
		f.buf = spare[:0]
		f.mu.Unlock()
		if _, err := w.Write(buf); err != nil {
			return
		}
		spare = buf
	}
}

func (f *frames) read(r io.Reader) {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		id, message, err := readFrame(in)
		if err != nil {
			return
		}
		f.mu.Lock()
		answer := f.pending[id]
		delete(f.pending, id)
		f.mu.Unlock()
		answer <- message
	}
}

func readFrame(in *bufio.Reader) (id uint64, message []byte, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, nil, err
	}
	message = make([]byte, binary.LittleEndian.Uint32(head[:]))
	_, err = io.ReadFull(in, message)
	return binary.LittleEndian.Uint64(head[4:]), message, err
}

// echoFrames is the other end of rawFrames.
func echoFrames([]string) error {
	for _, fd := range []int{0, 1} {
		if err := syscall.SetNonblock(fd, true); err != nil {
			return err
		}
	}
	in, out := bufio.NewReaderSize(os.NewFile(0, "in"), 64<<10), os.NewFile(1, "out")
	var buf []byte
	for {
		id, message, err := readFrame(in)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		buf = binary.LittleEndian.AppendUint32(buf, uint32(len(message)))
		buf = binary.LittleEndian.AppendUint64(buf, id)
		buf = append(buf, message...)
		if in.Buffered() == 0 || len(buf) > 64<<10 {
			if _, err := out.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
}
