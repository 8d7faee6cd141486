// Package crash kills a host again and again while it makes calls with effects,
// and counts what reached the other side.
//
// Nothing is simulated: the host is a process that gets SIGKILL, at one of 18
// named points of a call or at any moment; the other side is a process of its
// own that counts; the stores are a SQLite file and a PostgreSQL server. Whatever
// happens, no effect happens twice, nothing that was answered is lost, and every
// call ends. With a guard lifted the same campaign finds what it is there for.
package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "receiver" {
		receive()
		return
	}
	status := m.Run()
	if hostBin != "" {
		_ = os.RemoveAll(filepath.Dir(hostBin))
	}
	os.Exit(status)
}

// points are the places where a host is killed, in the order of a call
// (RELIABILITY 5), and how often a process comes by in one round at most.
var points = []struct {
	name  string
	times int
}{
	{"accept", 8}, {"validate", 8}, {"policy", 8}, {"approval", 2}, {"claim", 8}, {"spawn", 1}, {"handshake", 1}, {"request", 8},
	{"intent", 8}, {"sent", 8}, {"response", 8}, {"journalled", 8}, {"answer", 8}, {"checked", 8}, {"settled", 8}, {"ack", 8}, {"told", 8}, {"cleanup", 1},
}

// kills is how many rounds a campaign has on one store: MORTISE_CRASH_ROUNDS,
// or 60.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("MORTISE_CRASH_ROUNDS")); err == nil && n > 0 {
		return n
	}
	return 60
}

func TestNoEffectIsRepeatedOnSQLite(t *testing.T) {
	t.Parallel()
	judge(t, "SQLite", []*trial{campaign(newCampaign(t, "", ""), kills(), 0)})
}

// A host that is asked to end, at every named point of a call, answers no call with
// what is not so: what had its effect is not called failed, and under the key of
// what had none the call is made by the next host.
func TestAHostThatClosesRepeatsAndBurnsNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database, few := "", 20
			if name == "PostgreSQL" {
				database, few = pgtest.Open(t), 8
			}
			c := newCampaign(t, database, "")
			c.how = "close"
			for round := 0; round < rounds(few, 10) && len(c.faults) == 0; round++ {
				p := points[(round*7)%len(points)] // a few are of all parts of a call
				c.round(round, p.name, 1+rand.IntN(p.times))
			}
			t.Log(c.table(name + ", closed"))
			for _, fault := range c.faults {
				t.Error(fault)
			}
			if c.killed() == 0 {
				t.Error("no host was closed")
			}
		})
	}
}

// A silent node is taken for dead after two seconds here, so that a round is
// mostly waiting: several campaigns go on beside each other.
func TestNoEffectIsRepeatedOnPostgreSQL(t *testing.T) {
	t.Parallel()
	const beside = 6
	server := pgtest.New(t)
	trials := make([]*trial, beside)
	for i := range trials {
		trials[i] = newCampaign(t, server.Open(t), "")
	}
	var all sync.WaitGroup
	for i, c := range trials {
		all.Go(func() { campaign(c, (kills()+beside-1)/beside, i*len(points)/beside) })
	}
	all.Wait()
	judge(t, "PostgreSQL", trials)
}

// With the guard lifted that keeps the unknown from being tried again, the
// campaign must find an effect that happened twice.
func TestTheCampaignFindsWhatItIsThereFor(t *testing.T) {
	t.Parallel()
	for _, guard := range []string{"unknown", "replay"} {
		t.Run(guard, func(t *testing.T) {
			t.Parallel()
			c := newCampaign(t, "", guard)
			for round := range 200 {
				c.round(round, []string{"sent", "response", "journalled", "intent"}[round%4], 1+rand.IntN(4))
				if len(c.faults) > 0 {
					t.Logf("round %d: %s", round, c.faults[0])
					return
				}
			}
			t.Errorf("without the guard %q nothing was found in 200 kills", guard)
		})
	}
}

// campaign kills hosts in so many rounds, beginning with that point, unless it
// finds a fault before.
func campaign(c *trial, rounds, first int) *trial {
	for round := 0; round < rounds && len(c.faults) == 0; round++ {
		if round%4 == 3 {
			c.round(round, "", 0)
		} else {
			p := points[(first+round-round/4)%len(points)]
			c.round(round, p.name, 1+rand.IntN(p.times))
		}
	}
	return c
}

// judge prints what came of some campaigns, and says what was wrong.
func judge(t *testing.T, name string, trials []*trial) {
	t.Helper()
	sum := &trial{hit: map[string]int{}, ended: map[string]int{}, unknown: map[string]int{}}
	for _, c := range trials {
		add := func(to, from map[string]int) {
			for key, n := range from {
				to[key] += n
			}
		}
		add(sum.hit, c.hit)
		add(sum.ended, c.ended)
		add(sum.unknown, c.unknown)
		sum.calls, sum.missed, sum.effects = sum.calls+c.calls, sum.missed+c.missed, sum.effects+c.effects
		sum.faults = append(sum.faults, c.faults...)
	}
	t.Log(sum.table(name))
	for _, fault := range sum.faults {
		t.Error(fault)
	}
	if n := sum.unknown["deposit"] + sum.unknown["gated"]; n > 0 {
		t.Errorf("%d deposits, whose receiver takes a key, ended unknown", n)
	}
	if within := sum.within(); 10*within < 6*sum.killed() {
		t.Errorf("%d of %d kills fell between accept and answer; 60%% are to", within, sum.killed())
	}
	for _, p := range points {
		if sum.killed() >= 500 && sum.hit[p.name] < 5 {
			t.Errorf("the point %q was hit %d times, and is to be hit 5 times", p.name, sum.hit[p.name])
		}
	}
}

// A trial is one data directory, with its receiver, over many rounds.
type trial struct {
	t                    *testing.T
	home, database, lift string
	how                  string // what hosts are done to in place of being killed: close, stop
	receiver             string // address
	calls                int    // made so far

	hit     map[string]int // kills by point; "" for those at any moment
	missed  int            // rounds in which the point was not come by
	acked   map[string]answer
	ended   map[string]int // calls by how they ended
	unknown map[string]int // by operation
	effects int
	faults  []string
}

type line struct {
	Operation string `json:"operation"`
	Key       string `json:"key"`
	Times     int    `json:"times"`
}

type answer struct {
	Key     string          `json:"key"`
	Status  string          `json:"status"`
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

var (
	buildOnce sync.Once
	hostBin   string
	buildErr  error
)

// host builds the host that is killed, once.
func host(t *testing.T) string {
	t.Helper()
	buildOnce.Do(func() {
		dir, err := os.MkdirTemp("", "mortise-crash")
		if err != nil {
			buildErr = err
			return
		}
		hostBin = filepath.Join(dir, "host")
		build := exec.Command("go", "build", "-tags", "fault", "-o", hostBin, "./host")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			buildErr = fmt.Errorf("%w: %s", err, out)
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return hostBin
}

func newCampaign(t *testing.T, database, lift string) *trial {
	t.Helper()
	bin := host(t)
	home := t.TempDir()
	c := &trial{
		t: t, home: home, database: database, lift: lift, receiver: startReceiver(t),
		hit: map[string]int{}, acked: map[string]answer{}, ended: map[string]int{}, unknown: map[string]int{},
	}
	write := func(name, text string) {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("bank/manifest.yaml", fmt.Sprintf(`name: bank
version: 1.0.0
owner: test
description: Sends orders.
runner: {kind: process, command: [%q, plugin]}
capabilities: [http]
http: {hosts: [keyed.example.com, plain.example.com], idempotency: {keyed.example.com: Idempotency-Key}}
operations:
  deposit: {kind: operator, description: Send., effects: [http_write], brokered: true}
  gated: {kind: operator, description: Send., effects: [http_write], brokered: true, policy_tags: [gated]}
  wire: {kind: operator, description: Send., effects: [http_write], brokered: true}
  raw: {kind: operator, description: Send., effects: [http_write]}
  planner: {kind: agent, description: Propose., allowed_actions: [bank/deposit]}
`, bin))
	write("mortise.yaml", fmt.Sprintf(`policy: {files: [test.cedar]}
approvals: {by: [bob], trust_as: true}
egress:
  loopback: [bank]
  map: {keyed.example.com: %q, plain.example.com: %q}
`, c.receiver, c.receiver))
	write("test.cedar", `@id("all") permit (principal, action == Action::"execute", resource);
@id("gated") @approval("it is gated") permit (principal, action == Action::"execute", resource) when { resource.tags.contains("gated") };
`)
	return c
}

// round makes ten calls in a host that is killed, and then again, under the
// same keys, in one that is not.
func (c *trial) round(round int, point string, times int) {
	c.t.Helper()
	var lines []line
	for i := range 10 {
		l := line{Operation: []string{"deposit", "wire", "gated", "deposit", "raw"}[i%5], Key: fmt.Sprintf("r%d-%d", round, i), Times: 1}
		if l.Operation == "deposit" || l.Operation == "gated" {
			l.Times = 2
		}
		lines = append(lines, l)
	}
	c.calls += len(lines)
	first, killed, err := c.run(lines, point, times)
	if err != nil {
		c.fault("round %d, killed at %q: %v", round, point, err)
		return
	}
	if killed {
		c.hit[point]++
	} else {
		c.missed++
	}
	for _, a := range first {
		c.acked[a.Key] = a
	}
	again, _, err := c.run(lines, "none", 0)
	if err != nil {
		c.fault("round %d, after it was killed at %q: %v", round, point, err)
		return
	}
	c.check(round, point, lines, again)
}

// run runs a host with these calls and returns what it answered.
func (c *trial) run(lines []line, point string, times int) (answers []answer, killed bool, err error) {
	cmd := exec.Command(host(c.t), "calls", c.home, c.database)
	cmd.Env = append(os.Environ(), fmt.Sprintf("MORTISE_FAULT_AT=%s:%d", point, times), "MORTISE_FAULT_LIFT="+c.lift, "MORTISE_FAULT_HOW="+c.how, "MORTISE_HOME=", "MORTISE_CONFIG=", "MORTISE_DATABASE=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, false, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, false, err
	}
	if err := cmd.Start(); err != nil {
		return nil, false, err
	}
	ended, stopped := make(chan struct{}), make(chan bool, 1)
	if c.how == "stop" {
		go func() { stopped <- goOn(cmd.Process, ended) }()
	} else {
		stopped <- false
	}
	timeout := time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timeout.Stop()
	if point == "" {
		moment := time.AfterFunc(10*time.Millisecond+time.Duration(rand.Int64N(int64(100*time.Millisecond))), func() { _ = cmd.Process.Kill() })
		defer moment.Stop()
	}
	go func() {
		defer stdin.Close()
		for _, l := range lines {
			raw, _ := json.Marshal(l)
			if _, err := stdin.Write(append(raw, '\n')); err != nil {
				return // it was killed
			}
		}
	}()
	for out := bufio.NewScanner(stdout); out.Scan(); {
		var a answer
		if json.Unmarshal(out.Bytes(), &a) == nil && a.Key != "" {
			answers = append(answers, a)
		}
	}
	err = cmd.Wait()
	close(ended)
	paused := <-stopped
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		if !timeout.Stop() {
			return nil, true, fmt.Errorf("it did not end within three minutes: %s", errs.String())
		}
		return answers, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: %s", err, errs.String())
	}
	return answers, paused || c.how == "close" && strings.Contains(errs.String(), "host: closing"), nil
}

// goOn lets a process that stopped itself go on after longer than its lease, and
// reports whether there was one.
func goOn(p *os.Process, ended <-chan struct{}) bool {
	for {
		select {
		case <-ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if err != nil {
			return false
		}
		if _, state, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(state, "T") {
			<-time.After(3 * time.Second) // the lease is 2 s
			testwait.RandomMoment(2 * time.Second)
			_ = p.Signal(syscall.SIGCONT)
			return true
		}
	}
}

// check holds what the hosts said against what the receiver counted.
func (c *trial) check(round int, point string, lines []line, again []answer) {
	counted, err := c.counted()
	if err != nil {
		c.fault("asking the receiver: %v", err)
		return
	}
	answers := map[string]answer{}
	for _, a := range again {
		answers[a.Key] = a
	}
	for _, l := range lines {
		a, ok := answers[l.Key]
		if !ok {
			c.fault("round %d, killed at %q: %s %s has no answer", round, point, l.Operation, l.Key)
			continue
		}
		c.ended[a.Status]++
		if a.Status == "unknown" {
			c.unknown[l.Operation]++
		}
		happened := 0
		for n := range l.Times {
			count := counted[fmt.Sprintf("%s/%d", l.Key, n)]
			happened += count
			c.effects += count
			if count > 1 {
				c.fault("round %d, killed at %q: effect %d of %s %s happened %d times", round, point, n, l.Operation, l.Key, count)
			}
		}
		switch {
		case a.Status == "succeeded" && happened < l.Times:
			c.fault("round %d, killed at %q: %s %s succeeded and %d of its effects happened", round, point, l.Operation, l.Key, happened)
		case a.Status == "failed" && happened > 0:
			c.fault("round %d, killed at %q: %s %s failed (%s) and %d of its effects happened", round, point, l.Operation, l.Key, a.Message, happened)
		case a.Status == "failed" || a.Status != "succeeded" && a.Status != "unknown":
			c.fault("round %d, killed at %q: %s %s is %s: %s %s", round, point, l.Operation, l.Key, a.Status, a.Code, a.Message)
		}
		if before, acked := c.acked[l.Key]; acked && before.Status == "succeeded" && string(before.Data) != string(a.Data) {
			c.fault("round %d, killed at %q: %s %s was answered with %s, and after the restart with %s", round, point, l.Operation, l.Key, before.Data, a.Data)
		}
	}
}

func (c *trial) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *trial) killed() (n int) {
	for _, times := range c.hit {
		n += times
	}
	return n
}

// within counts the kills between accept and answer. Those at any moment count
// as none.
func (c *trial) within() int { return c.killed() - c.hit[""] - c.hit["cleanup"] - c.hit["told"] }

func (c *trial) table(name string) string {
	var table strings.Builder
	fmt.Fprintf(&table, "%s: %d kills (%d times a point was not come by), %d calls: %v; %d effects counted; unknown by operation: %v\n",
		name, c.killed(), c.missed, c.calls, c.ended, c.effects, c.unknown)
	for _, p := range points {
		fmt.Fprintf(&table, "  %-12s %d\n", p.name, c.hit[p.name])
	}
	fmt.Fprintf(&table, "  %-12s %d", "any moment", c.hit[""])
	return table.String()
}

// counted asks the receiver how often each effect reached it.
func (c *trial) counted() (map[string]int, error) {
	resp, err := http.Get("http://" + c.receiver + "/counts")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var counts map[string]int
	return counts, json.NewDecoder(resp.Body).Decode(&counts)
}
