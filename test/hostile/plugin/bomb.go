package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// What only a cage stops. Where the system refuses something, the answer is
// what it said; the cage may as well end the process.
func init() {
	add(map[string]behaviour{
		"memory bomb": func(p *peer) {
			p.begin()
			var held [][]byte
			for {
				b := make([]byte, p.num(0)<<10)
				for i := 0; i < len(b); i += 4096 {
					b[i] = 1
				}
				held = append(held, b)
				_ = held
			}
		},
		"memory bomb in a child": func(p *peer) {
			p.begin()
			if child := start("memory"); child != nil {
				_ = child.Wait()
			}
			p.quote("the child is gone")
			p.serve()
		},
		"address bomb": func(p *peer) {
			p.begin()
			for n := 0; ; n++ {
				if _, err := syscall.Mmap(-1, 0, 64<<30, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE); err != nil || n == 1000 {
					p.rest(`"` + denied(err) + `"`)
				}
			}
		},
		"fork bomb": func(p *peer) {
			p.begin()
			for {
				start(pick(p.num(0), "fork", "sleep"))
			}
		},
		"thread bomb": func(p *peer) {
			p.begin()
			for range 8000 {
				go func() {
					runtime.LockOSThread()
					for {
						_ = syscall.Pause()
					}
				}()
			}
			forever()
		},
		"file bomb": func(p *peer) {
			p.begin()
			for n := range 100_000 {
				if _, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0); err != nil {
					p.rest(fmt.Sprintf(`"%s after %d"`, denied(err), n))
				}
			}
			os.Exit(98)
		},
		"pipe bomb": func(p *peer) {
			p.begin()
			for n := range 50_000 {
				var ends [2]int
				if err := syscall.Pipe(ends[:]); err != nil {
					p.rest(fmt.Sprintf(`"%s after %d"`, denied(err), n))
				}
				_ = syscall.SetNonblock(ends[1], true)
				_, _ = syscall.Write(ends[1], make([]byte, 64<<10))
			}
			os.Exit(98)
		},
	})
}

// What only a cage stops, of disks.
func init() {
	add(map[string]behaviour{
		"disk bomb": func(p *peer) {
			p.begin()
			for n := 0; ; n++ {
				if err := fill(filepath.Join(os.Getenv("HOME"), fmt.Sprint(n)), p.num(0)<<10); err != nil {
					p.quote("%s", denied(err))
					p.serve()
				}
			}
		},
		"file too large": func(p *peer) {
			p.begin()
			f, err := os.Create(filepath.Join(os.Getenv("HOME"), "one"))
			for n := 0; err == nil && n < 64<<10; n++ {
				_, err = f.Write(make([]byte, 1<<20))
			}
			p.quote("%s", denied(err))
			p.serve()
		},
		"inode bomb": func(p *peer) {
			p.begin()
			for n := range 10_000_000 {
				name := filepath.Join(os.Getenv("HOME"), fmt.Sprint(n))
				var err error
				if p.arg(0) == "directories" {
					err = os.Mkdir(name, 0o700)
				} else {
					err = os.WriteFile(name, nil, 0o600)
				}
				if err != nil {
					p.quote("%s after %d", denied(err), n)
					p.serve()
				}
			}
		},
		"sparse file": func(p *peer) {
			p.begin()
			name := filepath.Join(os.Getenv("HOME"), "sparse")
			err := os.WriteFile(name, nil, 0o600)
			if err == nil {
				err = os.Truncate(name, int64(p.num(0))<<30)
			}
			p.quote("%s", denied(err))
			p.serve()
		},
		"deep directories": func(p *peer) {
			p.begin()
			if err := os.Chdir(os.Getenv("HOME")); err != nil {
				os.Exit(98)
			}
			for range p.num(0) {
				if os.Mkdir("d", 0o700) != nil || os.Chdir("d") != nil {
					break
				}
			}
			p.rest("1")
		},
	})
}

// What must be refused.
func init() {
	add(map[string]behaviour{
		"changes its program": func(p *peer) { p.begin(); p.forbidden(change(os.Args[0])) },
		"changes its package": func(p *peer) {
			p.begin()
			p.forbidden(os.WriteFile(filepath.Join(filepath.Dir(os.Args[0]), "more"), nil, 0o600))
		},
		"removes its package": func(p *peer) {
			p.begin()
			p.forbidden(os.Remove(filepath.Join(filepath.Dir(os.Args[0]), "manifest.yaml")))
		},
		"moves its program": func(p *peer) { p.begin(); p.forbidden(os.Rename(os.Args[0], os.Args[0]+".old")) },
		"writes elsewhere": func(p *peer) {
			p.begin()
			p.forbidden(os.WriteFile(pick(p.num(0), "/etc/hostile", "/usr/lib/hostile", "/hostile", "/root/.profile", "/proc/sys/kernel/core_pattern"), []byte("x"), 0o600))
		},
		"signals the host": func(p *peer) { p.begin(); p.forbidden(signalOthers()) },
	})
}

// fill writes n bytes into a new file.
func fill(name string, n int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(make([]byte, n))
	return err
}

// change writes into a file.
func change(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("x")
	return err
}

// signalOthers looks for a process outside the plugin that it can signal. It succeeds if
// there is one; a sandbox must show it none.
func signalOthers() error {
	for pid := 2; pid < 1<<16; pid++ {
		if pid != os.Getpid() && pid != os.Getppid() && syscall.Kill(pid, 0) == nil {
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && !strings.Contains(os.Args[0], strings.TrimSpace(string(text))) {
				return nil
			}
		}
	}
	return syscall.ESRCH
}

// forbidden answers the call if err says that something was refused.
func (p *peer) forbidden(err error) {
	if err == nil {
		fmt.Fprintln(os.Stderr, "it was not refused")
		os.Exit(98)
	}
	time.Sleep(time.Millisecond)
	p.quote("%s", denied(err))
	p.serve()
}
