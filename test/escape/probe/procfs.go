//go:build linux && amd64

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// procfs are attempts through /proc: on the processes of the host, on the init of
// the cage, and on the settings of the kernel. Settings are opened for writing
// and never written.
var procfs = []probe{
	{"proc.host_listed", func(c canary.Config) result {
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return judge(err)
		}
		for _, entry := range entries {
			text, err := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
			if err == nil && bytes.Contains(text, []byte("victim\x00"+c.Mark)) {
				return allowed("the victim is process %s", entry.Name())
			}
		}
		return denied("the victim is not in the list")
	}},
	{"proc.host_status", ofHost("status")},
	{"proc.host_cmdline", func(c canary.Config) result { return contains(victim(c, "cmdline"), c.Mark) }},
	{"proc.host_environ", func(c canary.Config) result { return contains(victim(c, "environ"), c.Secret) }},
	{"proc.host_maps", ofHost("maps")},
	{"proc.host_auxv", ofHost("auxv")},
	{"proc.host_stat", ofHost("stat")},
	{"proc.host_limits", ofHost("limits")},
	{"proc.host_mountinfo", ofHost("mountinfo")},
	{"proc.host_descriptors", func(c canary.Config) result { return lists(victim(c, "fd"))(c) }},
	{"proc.host_root", func(c canary.Config) result { return lists(victim(c, "root"))(c) }},
	{"proc.host_directory", func(c canary.Config) result { return lists(victim(c, "cwd"))(c) }},
	{"proc.host_program", func(c canary.Config) result {
		_, err := os.Readlink(victim(c, "exe"))
		return judge(err)
	}},
	{"proc.host_namespaces", func(c canary.Config) result {
		_, err := os.Readlink(victim(c, "ns/mnt"))
		return judge(err)
	}},
	{"proc.host_memory", func(c canary.Config) result {
		f, err := os.Open(victim(c, "mem"))
		if err != nil {
			return judge(err)
		}
		defer f.Close()
		buffer := make([]byte, len(c.Secret))
		if _, err := f.ReadAt(buffer, int64(c.VictimAddr)); err != nil {
			return judge(err)
		}
		return allowed("read %q", buffer)
	}},
	{"proc.host_memory_write", opensForWriting(func(c canary.Config) string { return victim(c, "mem") })},
	{"proc.host_oom_score", opensForWriting(func(c canary.Config) string { return victim(c, "oom_score_adj") })},
	{"proc.host_timerslack", opensForWriting(func(c canary.Config) string { return victim(c, "timerslack_ns") })},
	{"proc.host_coredump_filter", opensForWriting(func(c canary.Config) string { return victim(c, "coredump_filter") })},
	{"proc.parent_of_parent_environ", func(c canary.Config) result {
		return contains(fmt.Sprintf("/proc/%d/environ", c.HostPID), c.Secret)
	}},
	{"proc.init_environ", func(c canary.Config) result {
		text, err := os.ReadFile("/proc/1/environ")
		if err != nil {
			return judge(err)
		}
		if len(text) > 0 {
			return allowed("%d bytes", len(text))
		}
		return denied("empty")
	}},
	{"proc.init_memory", opensForWriting(func(canary.Config) string { return "/proc/1/mem" })},
	{"proc.init_descriptors", lists("/proc/1/fd")},
	{"proc.init_root", lists("/proc/1/root")},
	{"proc.init_program", func(canary.Config) result {
		_, err := os.Readlink("/proc/1/exe")
		return judge(err)
	}},
	{"proc.own_oom_score", func(canary.Config) result {
		return judge(os.WriteFile("/proc/self/oom_score_adj", []byte("-900"), 0))
	}},
	{"proc.own_id_map", func(canary.Config) result {
		f, err := os.OpenFile("/proc/self/uid_map", os.O_WRONLY, 0)
		if err != nil {
			return judge(err)
		}
		defer f.Close()
		_, err = f.WriteString("0 0 1\n")
		return judge(err)
	}},
	{"proc.sysrq_trigger", setting("/proc/sysrq-trigger")},
	{"proc.core_pattern", setting("/proc/sys/kernel/core_pattern")},
	{"proc.modprobe", setting("/proc/sys/kernel/modprobe")},
	{"proc.hotplug", setting("/proc/sys/kernel/hotplug")},
	{"proc.randomize_va_space", setting("/proc/sys/kernel/randomize_va_space")},
	{"proc.hostname", setting("/proc/sys/kernel/hostname")},
	{"proc.pid_max", setting("/proc/sys/kernel/pid_max")},
	{"proc.ns_last_pid", setting("/proc/sys/kernel/ns_last_pid")},
	{"proc.shmmax", setting("/proc/sys/kernel/shmmax")},
	{"proc.drop_caches", setting("/proc/sys/vm/drop_caches")},
	{"proc.overcommit", setting("/proc/sys/vm/overcommit_memory")},
	{"proc.suid_dumpable", setting("/proc/sys/fs/suid_dumpable")},
	{"proc.ip_forward", setting("/proc/sys/net/ipv4/ip_forward")},
	{"proc.user_namespaces", setting("/proc/sys/user/max_user_namespaces")},
	{"proc.binfmt_register", setting("/proc/sys/fs/binfmt_misc/register")},
	{"proc.irq_affinity", setting("/proc/irq/default_smp_affinity")},
	{"proc.kcore", reads("/proc/kcore")},
	{"proc.kmsg", func(canary.Config) result {
		return judge(closing(unix.Open("/proc/kmsg", unix.O_RDONLY|unix.O_NONBLOCK, 0)))
	}},
	{"proc.keys", func(canary.Config) result { return listing("/proc/keys") }},
	{"proc.timer_list", reads("/proc/timer_list")},
	{"proc.vmallocinfo", reads("/proc/vmallocinfo")},
	{"proc.slabinfo", reads("/proc/slabinfo")},
	{"proc.pagetypeinfo", reads("/proc/pagetypeinfo")},
	{"proc.iomem_addresses", addresses("/proc/iomem")},
	{"proc.kernel_addresses", addresses("/proc/kallsyms")},
	{"proc.sched_debug", reads("/proc/sched_debug")},
	{"proc.own_physical_pages", func(canary.Config) result {
		f, err := os.Open("/proc/self/pagemap")
		if err != nil {
			return judge(err)
		}
		defer f.Close()
		page := make([]byte, 8)
		if _, err := f.ReadAt(page, int64(addressOf(&page[0]))/4096*8); err != nil {
			return judge(err)
		}
		if bytes.Equal(page[:6], make([]byte, 6)) {
			return denied("frame numbers are zero")
		}
		return allowed("frame %x", page)
	}},
}

func victim(c canary.Config, file string) string {
	return fmt.Sprintf("/proc/%d/%s", c.VictimPID, file)
}

// ofHost tries to read a file about the victim.
func ofHost(file string) func(canary.Config) result {
	return func(c canary.Config) result {
		text, err := os.ReadFile(victim(c, file))
		if err != nil {
			return judge(err)
		}
		return allowed("%d bytes", len(text))
	}
}

// setting tries to open a setting of the kernel for writing.
func setting(path string) func(canary.Config) result {
	return func(canary.Config) result {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return missing(path, err)
		}
		f.Close()
		return allowed("opened for writing")
	}
}

func opensForWriting(path func(canary.Config) string) func(canary.Config) result {
	return func(c canary.Config) result {
		f, err := os.OpenFile(path(c), os.O_WRONLY, 0)
		if err != nil {
			return judge(err)
		}
		f.Close()
		return allowed("opened for writing")
	}
}

// listing tries to read a file whose lines are things of the host.
func listing(path string) result {
	text, err := os.ReadFile(path)
	if err != nil {
		return missing(path, err)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return denied("empty")
	}
	return allowed("%d lines", bytes.Count(text, []byte("\n")))
}

// addresses tries to read addresses that are zeros for those without privilege.
func addresses(path string) func(canary.Config) result {
	return func(canary.Config) result {
		f, err := os.Open(path)
		if err != nil {
			return missing(path, err)
		}
		defer f.Close()
		buffer := make([]byte, 8192)
		n, err := f.Read(buffer)
		if err != nil {
			return judge(err)
		}
		for entry := range strings.Lines(string(buffer[:n])) {
			if address, _, ok := strings.Cut(entry, " "); ok && strings.ContainsAny(address, "123456789abcdef") {
				return allowed("%s", address)
			}
		}
		return denied("zeros alone")
	}
}
