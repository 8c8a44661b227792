package simulate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"seckill/internal/app"
)

// slot is a process that a supervisor starts again whenever it ends.
type slot struct {
	in    *installation
	name  string
	roles []string
	addr  *machine // whose address each process has

	mu      sync.Mutex
	machine *machine      // guarded by mu; of the present process
	process *process      // guarded by mu; nil while it starts
	killed  chan struct{} // guarded by mu; closed by kill
}

// renew gives the next process a machine.
func (s *slot) renew() (*machine, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine, s.process, s.killed = &machine{name: s.name, addr: s.addr.addr}, nil, make(chan struct{})
	return s.machine, s.killed
}

// supervise runs the process until ctx ends.
func (s *slot) supervise(ctx context.Context) {
	for ctx.Err() == nil {
		m, killed := s.renew()
		p, err := s.in.start(m, s.roles...)
		if err != nil {
			s.in.network.kill(m)
			s.wait(ctx, 300*time.Millisecond)
			continue
		}
		s.mu.Lock()
		s.process = p
		s.mu.Unlock()
		select {
		case <-killed:
			s.in.kill(p)
		case <-p.ended:
			s.in.note(fmt.Sprintf("%s ended: %v", s.name, p.err))
		case <-ctx.Done():
			p.stop()
			<-p.ended
			if p.err != nil {
				s.in.fail("%s at its end: %v", s.name, p.err)
			}
			return
		}
		s.wait(ctx, 2*time.Second)
	}
}

func (s *slot) wait(ctx context.Context, longest time.Duration) {
	timer := time.NewTimer(100*time.Millisecond + s.in.random.upTo(longest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// kill ends the process at once.
func (s *slot) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in.network.kill(s.machine)
	select {
	case <-s.killed:
	default:
		close(s.killed)
	}
}

// drain ends the process as a rolling update does.
func (s *slot) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.stop()
	}
}

func (s *slot) now() *machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine
}

// fault is a kind of fault. It is over when do returns.
type fault struct {
	name string
	do   func(in *installation, r *source)
}

// faults are all kinds.
var faults = []fault{
	{"process killed", func(in *installation, r *source) { in.slots[r.intn(len(in.slots))].kill() }},
	{"all processes killed", func(in *installation, _ *source) {
		for _, s := range in.slots {
			s.kill()
		}
	}},
	{"process drained", func(in *installation, r *source) { in.slots[r.intn(len(in.slots))].drain() }},
	{"connections to Redis cut", func(in *installation, _ *source) {
		in.network.cut(func(_, server *machine) bool { return server == in.redis.machine })
	}},
	{"connections of buyers cut", func(in *installation, _ *source) {
		in.network.cut(func(client, _ *machine) bool { return strings.HasPrefix(client.name, "buyer") })
	}},
	{"replies of Redis lost", func(in *installation, r *source) {
		m := in.slots[r.intn(len(in.slots))].now()
		in.network.each(func(client, server *machine) bool { return server == in.redis.machine && client == m },
			func(k *link) { k.back.lose() })
	}},
	{"requests to Redis lost", func(in *installation, r *source) {
		m := in.slots[r.intn(len(in.slots))].now()
		in.network.each(func(client, server *machine) bool { return server == in.redis.machine && client == m },
			func(k *link) { k.there.lose() })
	}},
	{"replies to buyers lost", func(in *installation, _ *source) {
		in.network.each(func(client, _ *machine) bool { return strings.HasPrefix(client.name, "buyer") },
			func(k *link) { k.back.lose() })
	}},
	{"network slow", func(in *installation, r *source) {
		in.network.setSlowest(50*time.Millisecond + r.upTo(400*time.Millisecond))
		time.Sleep(r.upTo(4 * time.Second))
		in.network.setSlowest(in.usual)
	}},
	{"commits lost", func(in *installation, r *source) { in.failCommits(r, commitLost) }},
	{"replies of commits lost", func(in *installation, r *source) { in.failCommits(r, commitUnseen) }},
	{"database away", func(in *installation, r *source) {
		in.db.setAway(true)
		time.Sleep(r.upTo(6 * time.Second))
		in.db.setAway(false)
	}},
	{"Redis restarted", func(in *installation, _ *source) { in.redis.restart(in.redis.copy()) }},
	{"Redis set back", func(in *installation, r *source) {
		kept := in.redis.copy()
		time.Sleep(r.upTo(4 * time.Second))
		in.meet("Redis set back")
		in.lost()
		in.redis.restart(kept)
	}},
	{"Redis emptied", func(in *installation, _ *source) {
		in.lost()
		in.redis.restart(redisCopy{})
	}},
	{"database set back", func(in *installation, r *source) {
		if err := in.db.replace("before", "main"); err != nil {
			in.fail("copy the database: %v", err)
		}
		time.Sleep(r.upTo(3 * time.Second))
		in.meet("database set back")
		in.lost()
		in.mu.Lock()
		in.recordLost = true
		in.mu.Unlock()
		if err := in.db.replace("main", "before"); err != nil {
			in.fail("set the database back: %v", err)
		}
	}},
	{"clock of a process wrong", func(in *installation, r *source) {
		m := in.slots[r.intn(len(in.slots))].now()
		in.skew(m, r, 4*time.Second)
	}},
	{"clock of a process jumps", func(in *installation, r *source) {
		m := in.slots[r.intn(len(in.slots))].now()
		in.skew(m, r, time.Hour)
	}},
	{"clock of Redis wrong", func(in *installation, r *source) { in.skew(in.redis.machine, r, 4*time.Second) }},
	{"messages twice", func(in *installation, r *source) { in.repeatMessages(r) }},
	{"bank away", func(in *installation, r *source) { in.troubleBank(r, bankTrouble{away: true}) }},
	{"bank unseen", func(in *installation, r *source) { in.troubleBank(r, bankTrouble{unseen: true}) }},
	{"bank silent", func(in *installation, r *source) { in.troubleBank(r, bankTrouble{silent: true}) }},
	{"bank double", func(in *installation, r *source) { in.troubleBank(r, bankTrouble{double: true}) }},
	{"bank late", func(in *installation, r *source) { in.troubleBank(r, bankTrouble{late: true}) }},
}

// failCommits lets some commits of the next seconds fail.
func (in *installation) failCommits(r *source, kind dbFault) {
	in.db.set(func(*machine) dbFault {
		if r.chance(40) {
			return kind
		}
		return commits
	})
	time.Sleep(r.upTo(3 * time.Second))
	in.db.set(nil)
}

// skew sets the clock of a machine wrong for some seconds.
func (in *installation) skew(m *machine, r *source, most time.Duration) {
	ahead := r.upTo(2*most) - most
	in.network.mu.Lock()
	m.ahead = ahead
	in.network.mu.Unlock()
	time.Sleep(r.upTo(6 * time.Second))
	in.network.mu.Lock()
	m.ahead = 0
	in.network.mu.Unlock()
	if m == in.redis.machine {
		in.redis.redis.SetTime(time.Time{})
	}
}

// repeatMessages appends the messages of the streams of orders and payments again, each once.
func (in *installation) repeatMessages(r *source) {
	type message struct {
		stream string
		values []string
	}
	known := map[string]bool{} // the repeated ones, and their repetitions
	for range 8 {
		var found []message
		for _, key := range in.redis.redis.Keys() {
			if !strings.HasSuffix(key, "orders") && !strings.Contains(key, "payments") {
				continue
			}
			entries, err := in.redis.redis.Stream(key)
			if err != nil {
				continue
			}
			for _, e := range entries {
				if known[key+e.ID] {
					continue
				}
				known[key+e.ID] = true
				found = append(found, message{key, slices.Clone(e.Values)})
			}
		}
		time.Sleep(r.upTo(time.Second))
		for _, m := range found {
			if again, err := in.redis.redis.XAdd(m.stream, "*", m.values); err == nil {
				in.redis.wake(m.stream)
				known[m.stream+again] = true
				in.count("messages repeated")
			}
		}
	}
}

func (in *installation) troubleBank(r *source, t bankTrouble) {
	in.bank.set(t)
	time.Sleep(r.upTo(8 * time.Second))
	in.bank.set(bankTrouble{})
}

// lost notes that Redis or the database loses data now: a task that was accepted before may fail.
func (in *installation) lost() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.loss = time.Now()
}

// lostRecord reports whether the database was set back.
func (in *installation) lostRecord() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.recordLost
}

// meet counts in which states the buyers are while a fault comes.
func (in *installation) meet(name string) {
	for _, b := range in.buyers {
		in.coverage.add(name, b.now())
	}
}

// coverage counts which fault met which state of a buyer, over all stories.
type coverage struct {
	mu     sync.Mutex
	counts map[string]*[states]int // guarded by mu
}

func (c *coverage) add(name string, s state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts[name] == nil {
		c.counts[name] = new([states]int)
	}
	c.counts[name][s]++
}

// String returns the table.
func (c *coverage) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%-28s", "fault")
	for _, name := range stateNames {
		fmt.Fprintf(&b, "%10s", name)
	}
	for _, f := range faults {
		fmt.Fprintf(&b, "\n%-28s", f.name)
		for s := range states {
			n := 0
			if row := c.counts[f.name]; row != nil {
				n = row[s]
			}
			fmt.Fprintf(&b, "%10d", n)
		}
	}
	return b.String()
}

// topologies are the processes of an installation.
var topologies = [][][]string{
	{{"api", "worker", "scheduler"}},
	{{"api", "worker", "scheduler"}, {"api", "worker", "scheduler"}},
	{{"api"}, {"worker", "scheduler"}},
	{{"api"}, {"worker"}, {"worker", "scheduler"}},
}

// open starts the processes of the story.
func (in *installation) open(ctx context.Context) {
	for i, roles := range topologies[in.random.intn(len(topologies))] {
		s := &slot{in: in, name: fmt.Sprintf("process %d", i+1), roles: roles, addr: in.machine("")}
		s.renew() // faults may come before it starts
		in.slots = append(in.slots, s)
		in.supervised.Go(func() { s.supervise(ctx) })
	}
}

// disturb injects the faults of the story; it returns when all are over.
func (in *installation) disturb() {
	r := newSource(in.seed, 3)
	var running sync.WaitGroup
	for i := range r.intn(in.most + 1) {
		f, own := faults[r.intn(len(faults))], newSource(in.seed, 100+uint64(i))
		switch r.intn(4) {
		case 0: // with the one before
		case 1:
			time.Sleep(r.upTo(1500 * time.Millisecond))
		default:
			in.await(placing+state(r.intn(int(done-placing))), 2*time.Second)
			time.Sleep(r.upTo(60 * time.Millisecond))
		}
		in.note("fault: " + f.name)
		if !strings.HasSuffix(f.name, "set back") { // which begins with a copy
			in.meet(f.name)
		}
		running.Go(func() { f.do(in, own) })
	}
	running.Wait()
	in.note("no more faults")
}

// await waits until a buyer enters a state, for a time at most.
func (in *installation) await(s state, most time.Duration) {
	in.mu.Lock()
	entered := in.entered[s]
	in.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-entered:
	case <-timer.C:
	}
}

// tools opens what commands use, on a machine that no fault meets.
func (in *installation) tools(ctx context.Context) (*app.Tools, error) {
	m := in.machine("tools")
	return app.OpenTools(ctx, in.host(m), in.config(m), in.log)
}
