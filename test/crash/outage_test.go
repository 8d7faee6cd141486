package crash

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
)

// A trouble is one way in which a store refuses for a while.
type trouble struct {
	name  string
	at    []string                         // the points at which it begins
	kind  string                           // of the fault in the host; or, where the test makes it itself,
	makes func(lasts time.Duration) func() // begins it and returns what waits for its end
}

// An outageTrial is a host that lives on while its store has trouble.
type outageTrial struct {
	*trial
	host   *live
	listen net.Listener

	mu   sync.Mutex
	make func() // what is done when the host tells that the moment has come
	ends func() // waits for the end of that
	met  map[string]int
	not  int            // rounds in which the point was not come by
	said map[string]int // first answers, by status and code
}

// survive starts a host on a store and gives it so many rounds of trouble.
func survive(t *testing.T, database string, rounds int, of func(*outageTrial) []trouble, env ...string) *outageTrial {
	t.Helper()
	o := &outageTrial{trial: newCampaign(t, database, ""), met: map[string]int{}, said: map[string]int{}}
	if len(env) > 0 {
		o.small()
	}
	troubles := of(o)
	var err error
	if o.listen, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.listen.Close() })
	go o.told()
	o.host = start(t, exec.Command(host(t), "live", o.home, database), env...)
	for round := 0; round < rounds && len(o.faults) == 0; round++ {
		tr := troubles[round%len(troubles)]
		lasts := []time.Duration{time.Second, time.Second, time.Second, time.Second, 5 * time.Second}[round/len(troubles)%5]
		if kills() > 60 && rand.IntN(10) == 0 {
			lasts = 20 * time.Second
		}
		o.trouble(round, tr, lasts)
	}
	o.order("verify", "")
	if err := o.host.in.Close(); err != nil {
		o.fault("the host is gone: %v", err)
	}
	for o.host.out.Scan() {
	}
	if err := o.host.cmd.Wait(); err != nil {
		o.fault("the host ended with %v: %s", err, tail(o.host.errs.String()))
	}
	return o
}

func tail(text string) string { return text[max(0, len(text)-2000):] }

// small gives the host pools of one.
func (o *outageTrial) small() {
	path := filepath.Join(o.home, "mortise.yaml")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		o.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("workers: 1\nprocesses: {per_tenant: 1}\n"); err != nil {
		o.t.Fatal(err)
	}
}

// told makes the trouble that the host asks for.
func (o *outageTrial) told() {
	for {
		conn, err := o.listen.Accept()
		if err != nil {
			return
		}
		o.mu.Lock()
		begin := o.make
		o.mu.Unlock()
		if begin != nil {
			begin()
		}
		_, _ = io.WriteString(conn, "begun\n")
		_ = conn.Close()
	}
}

// order has the host do what is no call; false is a fault that is noted.
func (o *outageTrial) order(do, spec string) answer {
	return o.ask([]any{map[string]string{"do": do, "spec": spec}})[do]
}

// ask sends lines to the host and returns its answers, by key.
func (o *outageTrial) ask(lines []any) map[string]answer {
	o.t.Helper()
	for _, l := range lines {
		raw, _ := json.Marshal(l)
		if _, err := o.host.in.Write(append(raw, '\n')); err != nil {
			o.t.Fatalf("the host is gone: %v: %s", err, tail(o.host.errs.String()))
		}
	}
	answers := map[string]answer{}
	for len(answers) < len(lines) && o.host.out.Scan() {
		var a answer
		if json.Unmarshal(o.host.out.Bytes(), &a) == nil && a.Key != "" {
			answers[a.Key] = a
		}
	}
	if len(answers) < len(lines) {
		o.t.Fatalf("%d of %d lines were answered: %s", len(answers), len(lines), tail(o.host.errs.String()))
	}
	if a := answers["verify"]; a.Status == "failed" {
		o.fault("%s", a.Message)
	}
	return answers
}

// trouble makes ten calls while the store begins to refuse at one of its writes, and
// asks for them again under their keys once it works again.
func (o *outageTrial) trouble(round int, tr trouble, lasts time.Duration) {
	o.t.Helper()
	point := tr.at[rand.IntN(len(tr.at))]
	nth := 1 + rand.IntN(16)
	if tr.kind == "slow" {
		nth, lasts = 1, 50*time.Millisecond
	}
	when := fmt.Sprintf("round %d, %s for %s at %s %d", round, tr.name, lasts, point, nth)
	spec := ""
	switch {
	case tr.kind != "":
		spec = fmt.Sprintf("%s/%s:%d:%s", point, tr.kind, nth, lasts)
	case tr.makes != nil:
		spec = fmt.Sprintf("%s/tell:%d:%s", point, nth, o.listen.Addr())
		ends := make(chan func(), 1)
		o.mu.Lock()
		o.make = func() { ends <- tr.makes(lasts) }
		o.mu.Unlock()
		o.ends = func() {
			select {
			case wait := <-ends:
				wait()
			default:
			}
		}
	}
	o.order("arm", spec)
	var lines []line
	var calls, again []any
	for i := range 10 {
		l := line{Operation: []string{"deposit", "wire", "gated", "deposit", "raw"}[i%5], Key: fmt.Sprintf("o%d-%d", round, i), Times: 1 + i%2}
		lines = append(lines, l)
		calls = append(calls, l)
		again = append(again, map[string]any{"do": "again", "operation": l.Operation, "key": l.Key, "times": l.Times})
	}
	o.calls += len(lines)
	first := o.ask(calls)
	if o.order("over", "").Status == "failed" {
		o.not++
	} else {
		o.met[tr.name]++
	}
	if o.ends != nil {
		o.ends()
		o.ends = nil
	}
	if a := o.order("standing", ""); a.Status != "succeeded" {
		o.fault("%s: %s", when, a.Message)
		return
	}
	counted, err := o.counted()
	if err != nil {
		o.fault("asking the receiver: %v", err)
		return
	}
	for _, l := range lines {
		a := first[l.Key]
		o.said[strings.TrimSpace(a.Status+" "+a.Code)]++
		if a.Status != "failed" {
			o.acked[l.Key] = a
			continue
		}
		for n := range l.Times {
			if counted[fmt.Sprintf("%s/%d", l.Key, n)] > 0 {
				o.fault("%s: %s %s failed (%s: %s) and its effect %d happened", when, l.Operation, l.Key, a.Code, a.Message, n)
			}
		}
	}
	var answers []answer
	for _, a := range o.ask(again) {
		answers = append(answers, a)
	}
	before := len(o.faults)
	o.check(round, "", lines, answers)
	for _, a := range answers {
		if a.Status == "unknown" && len(o.faults) == before && (strings.HasPrefix(a.Key, "o") && (first[a.Key].Status == "succeeded")) {
			o.fault("%s succeeded, and is unknown now", a.Key)
		}
	}
	for i := before; i < len(o.faults); i++ {
		o.faults[i] = when + ": " + o.faults[i]
	}
	if a := o.order("standing", ""); a.Status != "succeeded" {
		o.fault("%s, and asked again: %s", when, a.Message)
	}
	if round%20 == 19 {
		o.order("verify", "")
	}
}

// sum says what came of trials, and fails where something was wrong.
func sum(t *testing.T, name string, trials ...*outageTrial) {
	t.Helper()
	met, said, ended, unknown := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	var calls, effects, not int
	for _, o := range trials {
		for _, m := range []struct{ to, from map[string]int }{{met, o.met}, {said, o.said}, {ended, o.ended}, {unknown, o.unknown}} {
			for k, n := range m.from {
				m.to[k] += n
			}
		}
		calls, effects, not = calls+o.calls, effects+o.effects, not+o.not
		for _, fault := range o.faults {
			t.Error(fault)
		}
	}
	t.Logf("%s: rounds %v (%d times a point was not come by), %d calls: first %v, then %v; %d effects; unknown by operation: %v", name, met, not, calls, said, ended, effects, unknown)
	if len(met) == 0 {
		t.Error("there was no trouble")
	}
	if n := unknown["deposit"] + unknown["gated"]; n > 0 {
		t.Errorf("%d deposits, whose receiver takes a key, ended unknown", n)
	}
}

// beside runs so many trials beside each other, with a share of the rounds each.
func beside(n, rounds int, run func(i, rounds int) *outageTrial) []*outageTrial {
	trials := make([]*outageTrial, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { trials[i] = run(i, (rounds+n-1)/n) })
	}
	all.Wait()
	return trials
}

// ofSQLite are the troubles of a file: busy, full, and really locked by another process.
func ofSQLite(o *outageTrial) []trouble {
	return []trouble{
		{name: "busy", at: []string{"begin"}, kind: "busy"},
		{name: "full", at: []string{"commit"}, kind: "full"},
		{name: "locked", at: []string{"begin"}, makes: func(lasts time.Duration) func() { return lockFile(filepath.Join(o.home, "mortise.db"), lasts) }},
	}
}

// lockFile holds the write lock of a database for so long.
func lockFile(path string, lasts time.Duration) func() {
	done := make(chan struct{})
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		close(done)
		return func() { <-done }
	}
	tx, err := db.Begin()
	if err != nil {
		_ = db.Close()
		close(done)
		return func() { <-done }
	}
	time.AfterFunc(lasts, func() {
		_ = tx.Rollback()
		_ = db.Close()
		close(done)
	})
	return func() { <-done }
}

// ofPostgreSQL are the troubles of a server: connections that are lost before a commit,
// after it and at any time, a full disk, backends that are really ended, and a server
// that really hangs.
func ofPostgreSQL(t *testing.T, server *pgtest.Server, url string) []trouble {
	all := []trouble{
		{name: "lost", at: []string{"begin", "commit", "committed"}, kind: "lost"},
		{name: "full", at: []string{"commit"}, kind: "full"},
		{name: "terminated", at: []string{"begin", "commit", "committed"}, makes: func(lasts time.Duration) func() { return terminate(url, lasts) }},
	}
	if server != nil {
		all = append(all, trouble{name: "hung", at: []string{"begin", "commit"}, makes: func(lasts time.Duration) func() {
			done := make(chan struct{})
			server.Pause(t)
			time.AfterFunc(lasts, func() { server.Resume(t); close(done) })
			return func() { <-done }
		}})
	}
	return all
}

// terminate ends the backends of a database again and again, for so long.
func terminate(url string, lasts time.Duration) func() {
	done := make(chan struct{})
	begun := make(chan struct{})
	go func() {
		defer close(done)
		once := sync.OnceFunc(func() { close(begun) })
		defer once()
		conn, err := pgx.Connect(context.Background(), url)
		if err != nil {
			return
		}
		defer conn.Close(context.Background())
		for until := time.Now().Add(lasts); time.Now().Before(until); <-time.After(30 * time.Millisecond) {
			_, _ = conn.Exec(context.Background(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
			once()
		}
	}()
	<-begun
	return func() { <-done }
}

// rounds is how many rounds of trouble a test makes on one store: a few, or so many
// percent of MORTISE_CRASH_ROUNDS where that is above 60.
func rounds(few, percent int) int {
	if kills() > 60 {
		return (kills()*percent + 99) / 100
	}
	return few
}

// shares is how many hosts have trouble beside each other.
func shares() int {
	if kills() > 60 {
		return 8
	}
	return 2
}

// A store that refuses for a while, whenever that begins and for whatever reason, costs
// no result and doubles no effect; and no key keeps the refusal.
func TestAStoreThatRefusesForAWhileCostsNothingOnSQLite(t *testing.T) {
	t.Parallel()
	sum(t, "SQLite, refusing", beside(shares(), rounds(6, 60), func(_, rounds int) *outageTrial {
		return survive(t, "", rounds, ofSQLite)
	})...)
}

func TestAStoreThatRefusesForAWhileCostsNothingOnPostgreSQL(t *testing.T) {
	t.Parallel()
	shared := pgtest.New(t)
	sum(t, "PostgreSQL, refusing", beside(shares(), rounds(6, 60), func(i, rounds int) *outageTrial {
		server, pauses := shared, (*pgtest.Server)(nil)
		if i == 0 { // a server that hangs does so for all
			server = pgtest.New(t)
			pauses = server
		}
		url := server.Open(t)
		return survive(t, url, rounds, func(*outageTrial) []trouble { return ofPostgreSQL(t, pauses, url) })
	})...)
}

// Pools of one, eight callers, and a store that refuses now and then: the same holds,
// and nothing waits for itself.
func TestPoolsOfOneLoseNothing(t *testing.T) {
	t.Parallel()
	one := "MORTISE_FAULT_POOL=1"
	sum(t, "SQLite, pools of one", beside(shares()/2, rounds(2, 15), func(_, rounds int) *outageTrial {
		return survive(t, "", rounds, func(o *outageTrial) []trouble { return append(ofSQLite(o), slow) }, one)
	})...)
	sum(t, "PostgreSQL, pools of one", beside(shares()/2, rounds(2, 15), func(_, rounds int) *outageTrial {
		url := pgtest.Open(t)
		return survive(t, url, rounds, func(*outageTrial) []trouble { return append(ofPostgreSQL(t, nil, url), slow) }, one)
	})...)
}

// slow is a disk on which each commit takes 50 to 500 ms.
var slow = trouble{name: "slow", at: []string{"commit"}, kind: "slow"}

func TestSlowCommitsLoseNothing(t *testing.T) {
	t.Parallel()
	sum(t, "SQLite, slow", beside(shares()/2, rounds(1, 5), func(_, rounds int) *outageTrial {
		return survive(t, "", rounds, func(*outageTrial) []trouble { return []trouble{slow} })
	})...)
	sum(t, "PostgreSQL, slow", beside(shares()/2, rounds(1, 5), func(_, rounds int) *outageTrial {
		return survive(t, pgtest.Open(t), rounds, func(*outageTrial) []trouble { return []trouble{slow} })
	})...)
}

// A host that is stopped in the middle of a call, for longer than its lease, and goes
// on: another host may have taken its calls up meanwhile, and nothing happens twice.
func TestAHostThatIsPausedPastItsLeaseRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := ""
			if name == "PostgreSQL" {
				database = pgtest.Open(t)
			}
			c := newCampaign(t, database, "")
			c.how = "stop"
			c.round(0, "none", 0) // makes the database, and its key
			other := c
			if database != "" {
				other = newCampaign(t, database, "")
				c.shareWith(other)
			}
			other.node(t)
			for round := 1; round <= rounds(3, 10) && len(c.faults) == 0; round++ {
				p := points[rand.IntN(len(points))]
				if round == 1 {
					p = points[len(points)-1] // while it closes
				}
				c.round(round, p.name, 1+rand.IntN(p.times))
			}
			t.Log(c.table(name + ", paused"))
			for _, fault := range c.faults {
				t.Error(fault)
			}
		})
	}
}
