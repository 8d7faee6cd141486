package launcher

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// judge runs a filter as the kernel does, for a system call whose arguments are all 0, and
// returns its answer and how many instructions that took.
func judge(t *testing.T, code []unix.SockFilter, arch, call uint32) (answer uint32, steps int) {
	t.Helper()
	var loaded uint32
	for pc := 0; pc < len(code); pc++ {
		steps++
		c := code[pc]
		holds := false
		switch c.Code {
		case unix.BPF_RET | unix.BPF_K:
			return c.K, steps
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			loaded = map[uint32]uint32{atCall: call, atArch: arch}[c.K]
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			loaded &= c.K
			continue
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(c.K)
			continue
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			holds = loaded == c.K
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			holds = loaded > c.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			holds = loaded&c.K != 0
		default:
			t.Fatalf("instruction %d is %+v", pc, c)
		}
		if holds {
			pc += int(c.Jt)
		} else {
			pc += int(c.Jf)
		}
	}
	t.Fatalf("system call %d leaves the filter", call)
	return 0, 0
}

// Each system call has the answer of the list that it is in, and all others are allowed.
func TestTheFilterAnswersWhatItsListsSay(t *testing.T) {
	for _, proxied := range []bool{false, true} {
		for _, counted := range []bool{false, true} {
			code := program(counted, proxied)
			if got, _ := judge(t, code, auditArch+1, unix.SYS_READ); got != answerKill {
				t.Errorf("another architecture has answer %x", got)
			}
			for call := range uint32(lastCall + 100) {
				want := uint32(answerAllow)
				switch {
				case call > lastCall, slices.Contains(absent, call):
					want = answerNone
				case proxied && slices.Contains(clientCalls, call):
					continue // judged by its arguments
				case call == unix.SYS_SOCKETPAIR, call == unix.SYS_IOPRIO_SET, proxied && call == unix.SYS_SETSOCKOPT: // by their arguments
					want = answerPerm
				case slices.Contains(denied, call), slices.Contains(deniedHere, call):
					want = answerPerm
				case slices.Contains(done, call):
					want = answerDone
				}
				got, steps := judge(t, code, auditArch, call)
				if got != want {
					t.Errorf("counted %t, proxied %t: system call %d has answer %x, want %x", counted, proxied, call, got, want)
				}
				if steps > 60 {
					t.Errorf("counted %t, proxied %t: system call %d takes %d steps", counted, proxied, call, steps)
				}
			}
		}
	}
}
