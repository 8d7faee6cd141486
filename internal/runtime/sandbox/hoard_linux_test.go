package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
)

// little is what a hoarder may take, and much is what it tries to hold.
var little = sandbox.Limits{Memory: 96 << 20, Scratch: 16 << 20, FileSize: 16 << 20, Processes: 64, OpenFiles: 1024}

const (
	much  = 320 << 20
	block = 8 << 20
)

// hoards are ways to hold memory. Each takes a block, and returns an error where
// it is refused.
var hoards = map[string]func(n int) error{
	"private": func(int) error {
		return populate(-1, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, unix.PROT_READ|unix.PROT_WRITE, false)
	},
	"shared": func(int) error {
		return populate(-1, unix.MAP_SHARED|unix.MAP_ANONYMOUS, unix.PROT_READ|unix.PROT_WRITE, false)
	},
	"not resident": func(int) error {
		return populate(-1, unix.MAP_SHARED|unix.MAP_ANONYMOUS, unix.PROT_READ|unix.PROT_WRITE, true)
	},
	"shared zeros":  func(int) error { return zeros(unix.O_RDWR, unix.PROT_READ|unix.PROT_WRITE) },
	"zeros to read": func(int) error { return zeros(unix.O_RDONLY, unix.PROT_READ) },
	"no file": func(int) error {
		fd, err := unix.MemfdCreate("hoard", 0)
		if err != nil {
			return err
		}
		_, err = unix.Write(fd, make([]byte, block))
		return err
	},
	"in scratch": func(n int) error { return os.WriteFile(fmt.Sprintf("/tmp/%d", n), make([]byte, block), 0o600) },
	"page tables": func(int) error { // 2048 of them, for as many MiB that hold nothing
		const each, count = 2 << 20, block / 4096
		area, err := unix.Mmap(-1, 0, each*count, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err != nil {
			return err
		}
		_ = unix.Madvise(area, unix.MADV_NOHUGEPAGE)
		var sum byte
		for at := 0; at < len(area); at += each {
			sum += area[at]
		}
		if sum != 0 { // or the reads would be left out
			return errors.New("what was never written is not zero")
		}
		return nil
	},
	"sockets": func(int) error {
		for range 20 { // 416 KiB each
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return err
			}
			for _, end := range pair {
				for err = nil; err == nil; {
					_, err = unix.Write(end, make([]byte, 32<<10))
				}
			}
		}
		return nil
	},
}

func populate(fd, flags, protection int, drop bool) error {
	area, err := unix.Mmap(fd, 0, block, protection, flags|unix.MAP_POPULATE)
	if err == nil && drop {
		err = unix.Madvise(area, unix.MADV_DONTNEED)
	}
	return err
}

func zeros(how, protection int) error {
	fd, err := unix.Open("/dev/zero", how, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return populate(fd, unix.MAP_SHARED, protection, false)
}

// hoarder takes memory in one way until it is refused, or has too much.
func hoarder(args []string) {
	take := hoards[strings.Join(args, " ")]
	for n := range much / block {
		err := take(n)
		if err != nil && int64(n)*block <= little.Memory*2 {
			fmt.Println("refused:", err)
			os.Exit(3)
		}
		if err != nil { // it ran out of something else
			break
		}
	}
	time.Sleep(time.Minute) // without a cgroup the launcher counts 50 times a second and then ends this program
	fmt.Println("held")
}

// However it is taken, memory counts, or is refused: under a host with a cgroup
// and under one that counts by itself.
func TestMemoryIsBoundedHoweverItIsTaken(t *testing.T) {
	t.Parallel()
	s := full(t)
	hosts := map[string]func(t *testing.T, way string) string{
		"this user": func(t *testing.T, way string) string {
			spec := self(t, "hoarder", strings.Fields(way)...)
			spec.Limits = little
			got := run(t, s, spec)
			return got.out + got.String()
		},
	}
	if os.Geteuid() == 0 {
		ordinary := ordinaryHost(t)
		hosts["ordinary user"] = func(_ *testing.T, way string) string {
			return ordinary(append([]string{"hoarder"}, strings.Fields(way)...)...)
		}
	}
	for name, host := range hosts {
		for way := range hoards {
			t.Run(name+" "+way, func(t *testing.T) {
				said := host(t, way)
				counted, refused := strings.Contains(said, "limit exceeded: "+sandbox.LimitMemory), strings.Contains(said, "refused: ")
				if strings.Contains(said, "held") || !counted && !refused || way == "private" && !counted {
					t.Errorf("it came to %s", said[max(0, len(said)-600):])
				}
			})
		}
	}
}
