package launcher

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// oldRoot is where the host's root is while ours is built; it is gone afterwards.
const oldRoot = "/.old"

// rootFlags are of everything that is mounted for the program.
const rootFlags = unix.MS_NOSUID | unix.MS_NODEV

// work is the file system of the program's scratch directory and /tmp, -1
// where there is none.
var work = -1

// base is where the new root is mounted before it is entered, and what the program may write until it has its place: some
// directory that every machine has.
const base = "/dev"

// workDir goes with the old root: each mount that is taken down by itself waits for the kernel.
const workDir = oldRoot + base

// newRoot makes an empty root and enters it. What every program finds in it does not depend on the spec, so a launcher
// that waits for one has this behind it.
func newRoot() error {
	defer unix.Umask(unix.Umask(0o022))         // the program may run as another user than the process that makes its directories
	_ = unix.Sethostname([]byte(wire.HostName)) // where the name is our own to set
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts to ourselves: %w", err)
	}
	if err := unix.Mount("tmpfs", base, "tmpfs", rootFlags, "mode=0755,size=4m,nr_inodes=8192"); err != nil {
		return fmt.Errorf("mounting a new root: %w", err)
	}
	if err := unix.Chdir(base); err != nil {
		return fmt.Errorf("entering the new root: %w", err)
	}
	if err := unix.Mkdir(oldRoot[1:], 0o700); err != nil {
		return fmt.Errorf("making a place for the old root: %w", err)
	}
	if err := unix.PivotRoot(".", oldRoot[1:]); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("entering the new root: %w", err)
	}
	if err := mountProc("/proc"); err != nil {
		return fmt.Errorf("placing /proc: %w", err)
	}
	if err := mountDev("/dev"); err != nil {
		return fmt.Errorf("placing /dev: %w", err)
	}
	return nil
}

// buildView puts what the spec names into the root, and closes it.
func buildView(spec *wire.Spec) error {
	defer unix.Umask(unix.Umask(0o022))
	if err := mountWork(spec); err != nil {
		return err
	}
	var closed []string // mounted for writing so far
	for _, n := range spec.Tree {
		if err := place(n); err != nil {
			return fmt.Errorf("placing %s: %w", n.Path, err)
		}
		if n.Kind == "empty" {
			closed = append(closed, n.Path)
		}
	}
	if err := unix.Unmount(oldRoot, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the old root: %w", err)
	}
	if err := unix.Rmdir(oldRoot); err != nil {
		return fmt.Errorf("leaving the old root: %w", err)
	}
	for _, dir := range append(closed, "/") {
		if err := setAttr(dir, 0, unix.MOUNT_ATTR_RDONLY); err != nil {
			return fmt.Errorf("closing %s to writes: %w", dir, err)
		}
	}
	return nil
}

// mountWork mounts what the program may write, at workDir.
func mountWork(spec *wire.Spec) error {
	options := "mode=0755,nr_inodes=65536"
	if spec.Limits.Scratch > 0 {
		options += fmt.Sprintf(",size=%d", spec.Limits.Scratch)
	}
	if err := unix.Mount("tmpfs", workDir, "tmpfs", rootFlags|unix.MS_NOEXEC, options); err != nil {
		return fmt.Errorf("mounting scratch: %w", err)
	}
	for _, name := range []string{"scratch", "tmp"} {
		dir := filepath.Join(workDir, name)
		if err := unix.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if spec.Switch {
			if err := unix.Chown(dir, spec.UID, spec.GID); err != nil {
				return err
			}
		}
	}
	fd, err := unix.Open(workDir, unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	work = fd
	return nil
}

// place puts one node into the new root.
func place(n wire.Node) error {
	if !filepath.IsAbs(n.Path) {
		return errors.New("the path is not absolute")
	}
	switch n.Kind {
	case "link":
		if err := makeDir(filepath.Dir(n.Path)); err != nil {
			return err
		}
		if err := os.Symlink(n.To, n.Path); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	case "text":
		if err := makeDir(filepath.Dir(n.Path)); err != nil {
			return err
		}
		return os.WriteFile(n.Path, []byte(n.To), 0o644)
	case "bind":
		if err := bindNode(n); err != nil {
			return err
		}
		if err := isNode(n); err != nil {
			return err
		}
		return setAttr(n.Path, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	case "work":
		return bind(filepath.Join(workDir, n.To), n.Path, true)
	case "empty":
		if err := makeDir(n.Path); err != nil {
			return err
		}
		return unix.Mount("tmpfs", n.Path, "tmpfs", rootFlags|unix.MS_NOEXEC, "mode=0755,size=64k,nr_inodes=1024")
	case "proc", "dev": // in every root
		return nil
	default:
		return fmt.Errorf("there is no node of kind %q", n.Kind)
	}
}

// bindNode mounts a file or directory of the host at the same place.
func bindNode(n wire.Node) error {
	if n.FD == 0 {
		return bind(oldRoot+n.Path, n.Path, n.Dir)
	}
	defer unix.Close(n.FD)
	if err := mountpoint(n.Path, n.Dir); err != nil {
		return err
	}
	return unix.MoveMount(n.FD, "", unix.AT_FDCWD, n.Path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// isNode refuses a file that took the place of the one that was meant. What is
// mounted cannot change any more.
func isNode(n wire.Node) error {
	if n.Inode == 0 {
		return nil
	}
	var stat unix.Stat_t
	if err := unix.Stat(n.Path, &stat); err != nil {
		return err
	}
	if stat.Dev != n.Device || stat.Ino != n.Inode {
		return fmt.Errorf("%s is not the file any more that was handed on", n.Path)
	}
	return nil
}

// bind mounts what is at from at to.
func bind(from, to string, dir bool) error {
	if err := mountpoint(to, dir); err != nil {
		return err
	}
	return unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, "")
}

// mountpoint makes something to mount a directory or a file on.
func mountpoint(to string, dir bool) error {
	if dir {
		if err := makeDir(to); err != nil {
			return err
		}
	} else {
		if err := makeDir(filepath.Dir(to)); err != nil {
			return err
		}
		if _, err := os.Lstat(to); err != nil {
			file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o444)
			if err != nil {
				return err
			}
			_ = file.Close()
		}
	}
	return nil
}

func makeDir(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	return os.MkdirAll(path, 0o755)
}

// setAttr sets attributes of a mount, and of those below it where asked.
func setAttr(path string, flags uint, set uint64) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: set})
}

// mountProc mounts what there is to know of our own processes, and nothing of the
// machine. Where even that is forbidden (containers hide parts of /proc, and the kernel
// then refuses another mount), there is no /proc.
func mountProc(path string) error {
	if err := makeDir(path); err != nil {
		return err
	}
	const flags = rootFlags | unix.MS_NOEXEC
	if unix.Mount("proc", path, "proc", flags, "subset=pid") == nil {
		return nil
	}
	return nil
}

// The devices that a program finds: none that keeps or knows anything.
var devices = []string{"null", "zero", "full", "random", "urandom"}

func mountDev(path string) error {
	for _, name := range devices {
		to, from := filepath.Join(path, name), name
		if name == "zero" { // it reads alike, and cannot be mapped: that would be memory that no process has
			from = "full"
		}
		if err := bind(oldRoot+"/dev/"+from, to, false); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := setAttr(to, 0, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "shm": "/tmp"} {
		if err := os.Symlink(to, filepath.Join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// viewLayer tries the root: it is ours, closed to writes, and what is of the
// host alone is not in it.
func viewLayer(spec *wire.Spec) wire.Layer {
	layer := wire.Layer{Name: "mount namespace", Why: "the launcher was started in the host's own"}
	if !spec.Mounts {
		return layer
	}
	var st unix.Statfs_t
	_, hidden := os.Lstat(spec.Hidden)
	written := os.WriteFile("/written", nil, 0o600)
	switch err := unix.Statfs("/", &st); {
	case err != nil || st.Type != unix.TMPFS_MAGIC:
		layer.Why = "the root is not the one that was made"
	case !errors.Is(written, unix.EROFS):
		layer.Why = fmt.Sprintf("the root can be written: %v", written)
	case spec.Hidden != "" && !errors.Is(hidden, fs.ErrNotExist):
		layer.Why = "files of the host are still in sight"
	case mounted(oldRoot):
		layer.Why = "the old root is still mounted"
	default:
		layer.On, layer.Why = true, ""
	}
	return layer
}

// mounted reports whether something is mounted at path, or in it. Where there is no /proc, nothing is seen.
func mounted(path string) bool {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	defer file.Close()
	mounts, _ := io.ReadAll(bufio.NewReaderSize(file, 64<<10)) // in few reads, which cost more than the lines
	return bytes.Contains(mounts, []byte(" "+path))
}
