package queue_test

import (
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"seckill/internal/buy/admission/queue"
	"seckill/internal/platform/id"
)

var crowdSize = flag.Int("crowd", 1500, "people in the waiting room of the crowd's test")

func TestACrowdIsServedInOrderUntilAllIsSold(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		people := *crowdSize
		if f.keys.Prefix == "t:" { // in memory: the same rules, a smaller crowd
			people = min(people, 600)
		}
		newCrowd(f, people, people/5).run()
	})
}

// crowd is many buyers for few units: a fifth of them came before the opening.
type crowd struct {
	*fixture
	stock    int
	early    []*queue.Ticket
	late     []*queue.Ticket
	tickets  map[string]*queue.Ticket
	reported map[string]int // the last positions of the sample
}

func newCrowd(f *fixture, people, stock int) *crowd {
	f.t.Helper()
	c := &crowd{fixture: f, stock: stock, tickets: map[string]*queue.Ticket{}, reported: map[string]int{}}
	f.rules.Store(&queue.Rules{PerMille: 200})
	f.set("stock", stock, "total", stock, "opens", time.Now().Add(time.Hour).UnixMilli())
	c.early = make([]*queue.Ticket, people/5)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < len(c.early); i += 16 {
				t, err := f.queue.Enter(f.t.Context(), f.input(id.New[id.User]()))
				if err != nil || t.Position != nil {
					f.t.Errorf("enter early: %+v, %v", t, err)
				}
				c.early[i] = t
			}
		})
	}
	wg.Wait()
	if n := f.step()["admitted"]; n != 0 {
		f.t.Errorf("%d admitted before the opening", n)
	}
	f.set("opens", time.Now().Add(-time.Second).UnixMilli())
	for range people - len(c.early) {
		c.late = append(c.late, f.enter(id.New[id.User]()))
	}
	for _, t := range append(append([]*queue.Ticket{}, c.early...), c.late...) {
		c.tickets[t.ID.String()] = t
	}
	return c
}

// run processes the crowd: admitted buyers buy or leave, and some waiting buyers leave.
func (c *crowd) run() {
	line := c.line()
	c.checkDraw(line)
	sold, rounds := 0, 0
	for ; sold < c.stock; rounds++ {
		if rounds > 2000 {
			c.t.Fatalf("sold %d of %d after %d rounds", sold, c.stock, rounds)
		}
		admitted := c.step()["admitted"]
		if admitted == 0 {
			c.t.Fatalf("no user is admitted though %d units are left and %d wait", c.stock-sold, len(line))
		}
		left := c.line()
		for i, ticket := range left { // all admitted buyers were ahead of all others
			if line[admitted+i] != ticket {
				c.t.Fatalf("round %d: place %d was overtaken", rounds, i)
			}
		}
		for _, ticket := range line[:admitted] {
			sold += c.act(ticket)
		}
		if len(left) > 1 && rounds%3 == 0 {
			c.leave(left[len(left)/2])
		}
		line = c.line()
		c.look(line)
	}
	c.t.Logf("%d people, %d units sold in %d rounds, %d still wait", len(c.tickets), sold, rounds, len(line))
	if left := c.redis.HGet(c.t.Context(), c.keys.Item(c.shard, c.item), "stock").Val(); left != "0" {
		c.t.Errorf("%s units are left", left)
	}
}

// checkDraw requires early buyers before late ones, the early ones in random order and
// the late ones in order of arrival.
func (c *crowd) checkDraw(line []string) {
	came := map[string]int{}
	for i, t := range c.early {
		came[t.ID.String()] = i
	}
	inverted, pairs := 0, 0
	for i := range c.early {
		for j := i + 1; j < min(i+50, len(c.early)); j++ {
			pairs++
			a, first := came[line[i]]
			b, second := came[line[j]]
			if !first || !second {
				c.t.Fatal("a user who came late stands among the early")
			}
			if a > b {
				inverted++
			}
		}
	}
	if share := float64(inverted) / float64(pairs); share < 0.4 || share > 0.6 {
		c.t.Errorf("%.2f of the pairs of the draw are inverted: that is no random order", share)
	}
	for i, t := range c.late {
		if line[len(c.early)+i] != t.ID.String() {
			c.t.Fatalf("late comer %d is not at its place", i)
		}
	}
}

// act lets an admitted buyer buy or leave; it returns the units sold.
func (c *crowd) act(ticket string) int {
	t := c.ticket(c.tickets[ticket])
	if t.Status != queue.Admitted || t.Path == nil {
		c.t.Fatalf("out of the line, but %+v", t)
	}
	if rand.IntN(10) > 0 && c.buy(t) { //nolint:gosec // a simulated choice
		return 1
	}
	c.leave(ticket)
	return 0
}

func (c *crowd) leave(ticket string) {
	t := c.tickets[ticket]
	if _, err := c.queue.Leave(c.t.Context(), t.ID, t.User); err != nil {
		c.t.Fatal(err)
	}
}

// look reads the positions of a sample of the waiting buyers: they are right, and the
// number ahead never grows.
func (c *crowd) look(line []string) {
	for i := 0; i < len(line); i += max(1, len(line)/20) {
		p := c.ticket(c.tickets[line[i]]).Position
		if p == nil || p.Ahead != i {
			c.t.Fatalf("place %d is reported as %+v", i, p)
		}
		if before, ok := c.reported[line[i]]; ok && p.Ahead > before {
			c.t.Fatalf("the place of %s grew from %d to %d", line[i], before, p.Ahead)
		}
		c.reported[line[i]] = p.Ahead
	}
}
