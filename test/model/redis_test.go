package model_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/person"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/platform/stream"
	"seckill/internal/testenv"
	"seckill/test/model"
)

// TestMain runs half the usual checks: they take seconds of Redis. make prove runs 1,000.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "50"); err != nil { // a flag of the command line replaces it
		panic(err)
	}
	testenv.Main(m)
}

const (
	pathLife = time.Minute
	short    = time.Millisecond // life of a path token that expires at once
)

var secrets = [][]byte{[]byte(strings.Repeat("path", 8))}

// pair is a sale in Redis beside the model of it.
type pair struct {
	t      *testing.T
	client redis.UniversalClient
	keys   reservation.Keys
	gate   *reservation.Gate
	guard  *captcha.Service

	sale  id.Sale
	items []id.Item
	users [model.Buyers]id.User
	keyOf [model.Buyers]person.Keys

	model    model.Sale
	persons  [model.Buyers]model.Persons
	tasks    []id.Task // by model.Task; 0 = Nil
	accepted []id.Task // in the order of the model
	tokens   []token
	serials  map[string]model.Permit
	offers   map[model.Task]bool // reservations for the waitlist, which have no idempotency key
	epoch    int8
	revision int16
	acts     [17]id.Act
}

// token is a path token that was given to a buyer.
type token struct {
	text        string
	buyer, item int8
	permit      model.Permit
}

func newPair(t *testing.T, conn *redisconn.Conn, prefix string) *pair {
	p := &pair{t: t, client: conn.Script, keys: reservation.Keys{Prefix: prefix}, sale: id.New[id.Sale](),
		tasks: []id.Task{{}}, serials: map[string]model.Permit{}, offers: map[model.Task]bool{}, revision: 1}
	log := slog.New(slog.DiscardHandler)
	p.gate = reservation.NewGate(reservation.GateConfig{Client: p.client, Keys: p.keys, Timeout: testenv.Wait, Log: log})
	for b := range p.users {
		p.users[b] = id.New[id.User]()
	}
	for act := range p.acts {
		p.acts[act] = id.New[id.Act]()
	}
	var err error
	p.guard, err = captcha.New(captcha.Config{
		Client: p.client, Keys: p.keys, Clock: clock.System{}, Secret: []byte(strings.Repeat("captcha!", 4)), PowMax: 20,
		Wait: testenv.Wait,
	})
	p.must(err)
	return p
}

func (p *pair) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// draw chooses the rules of the sale and builds its gates.
func (p *pair) draw(rt *rapid.T) {
	for range rapid.IntRange(1, model.Items).Draw(rt, "items") {
		p.items = append(p.items, id.New[id.Item]())
	}
	p.model.Limit = rapid.SampledFrom([]int8{0, 2, 3}).Draw(rt, "limit of the sale")
	hasher := person.NewHasher(secrets)
	shares := rapid.Bool().Draw(rt, "shares")
	for b := range p.persons {
		of := model.Persons{
			Contact: rapid.Int8Range(0, 2).Draw(rt, "contact"), Address: rapid.Int8Range(0, 2).Draw(rt, "address"),
		}
		if shares {
			if of.Share = rapid.Int8Range(0, model.Shares).Draw(rt, "share"); of.Share > 0 {
				p.keyOf[b].Share = person.ShareOf(int(of.Share))
			}
		}
		if of.Code = rapid.SampledFrom([]int8{0, 0, 0, 1, 2}).Draw(rt, "code"); of.Code > 0 {
			p.keyOf[b].Code = person.CodeOf(uint32(of.Code), int(of.Code))
		}
		if of.Contact > 0 {
			p.keyOf[b].Contact = hasher.Contact(p.sale, fmt.Sprintf("buyer%d@example.com", of.Contact), true)
		}
		if of.Address > 0 {
			p.keyOf[b].Address = hasher.Address(p.sale, person.Place{Country: "CN", Street: fmt.Sprintf("%d Main", of.Address)})
		}
		p.persons[b] = of
	}
	p.begin(rt)
	p.open(rt)
}

// begin begins the gates of all items under the next epoch, or under a former one.
func (p *pair) begin(rt *rapid.T) {
	epoch := p.epoch + 1
	if p.epoch > 0 && rapid.IntRange(0, 3).Draw(rt, "again") == 0 {
		epoch = p.epoch
	}
	p.epoch = max(p.epoch, epoch)
	for i, item := range p.items {
		begun, err := p.gate.Begin(p.t.Context(), p.sale, item, int64(epoch))
		if want := p.model.Begin(int8(i), epoch); err != nil || begun != want {
			rt.Fatalf("begin item %d under epoch %d: %v %v, want %v", i, epoch, begun, err, want)
		}
	}
}

// open opens the gates that are being built, with some of their former reservations. All have
// their reservations before the first is opened.
func (p *pair) open(rt *rapid.T) {
	now, older := time.Now(), rapid.IntRange(0, 5).Draw(rt, "older build") == 0
	var all []reservation.Contents
	var wanted []model.Contents
	for i, item := range p.items {
		g := p.model.Gates[i]
		if g.State != model.Loading {
			return
		}
		c := model.Contents{
			State: model.Open, Epoch: g.Epoch, Limit: rapid.Int8Range(1, 3).Draw(rt, "limit"),
			Total: rapid.Int8Range(0, 6).Draw(rt, "units"), Revision: p.revision,
		}
		if older {
			c.Epoch--
		}
		contents := reservation.Contents{
			Sale: p.sale, Item: item, State: reservation.GateOpen, Epoch: int64(c.Epoch), Limit: int(c.Limit),
			SaleLimit: int(p.model.Limit), Revision: 1, SaleRevision: int64(c.Revision),
			Opens: now.Add(-time.Hour), Closes: now.Add(time.Hour),
		}
		c.Stock = c.Total
		for s := range c.Shares {
			c.Shares[s] = model.Share{Units: rapid.Int8Range(0, 3).Draw(rt, "kept"), Over: rapid.IntRange(0, 4).Draw(rt, "over") == 0}
			until := now.Add(time.Hour)
			if c.Shares[s].Over {
				until = now.Add(-time.Minute)
			}
			if c.Shares[s].Units > 0 || rapid.Bool().Draw(rt, "no units") {
				contents.Shares = append(contents.Shares, reservation.Share{
					Key: person.ShareOf(s + 1), Units: int(c.Shares[s].Units), Until: until})
			}
		}
		for b, held := range g.Held {
			if held.Task == 0 || rapid.IntRange(0, 3).Draw(rt, "lost") == 0 {
				continue
			}
			c.Held[b], c.Total = held, c.Total+held.Units
			contents.Reservations = append(contents.Reservations, reservation.Reservation{
				User: p.users[b], Task: p.tasks[held.Task], Quantity: int(held.Units), At: now, Persons: p.keyOf[b],
				IdempotencyKey: keyText(held.Key),
			})
		}
		contents.Total, contents.Stock = int(c.Total), int(c.Stock)
		all, wanted = append(all, contents), append(wanted, c)
	}
	for i := range all {
		written, err := p.gate.AddReservations(p.t.Context(), &all[i], all[i].Reservations)
		if err != nil || written != (wanted[i].Epoch == p.model.Gates[i].Epoch) {
			rt.Fatalf("write reservations: %v %v", written, err)
		}
		all[i].Reservations = nil
	}
	for i := range all {
		opened, err := p.gate.Open(p.t.Context(), all[i])
		if want := p.model.Open(int8(i), wanted[i]); err != nil || opened != want {
			rt.Fatalf("open item %d: %v %v, want %v", i, opened, err, want)
		}
	}
}

func keyText(key int8) string {
	if key == 0 {
		return ""
	}
	return fmt.Sprintf("idempotency-key-%d", key)
}

func (p *pair) item(rt *rapid.T) int8 {
	return rapid.Int8Range(0, int8(len(p.items)-1)).Draw(rt, "item")
}

func buyerOf(rt *rapid.T) int8 { return rapid.Int8Range(0, model.Buyers-1).Draw(rt, "buyer") }

// task returns a new task.
func (p *pair) task() model.Task {
	p.tasks = append(p.tasks, id.NewTask(id.ShardOf(p.sale)))
	return model.Task(len(p.tasks) - 1)
}

func (p *pair) taskOf(t id.Task) model.Task { return model.Task(slices.Index(p.tasks, t)) }

// issue asks for a path token, or for one that expires at once.
func (p *pair) issue(rt *rapid.T) {
	p.issueTo(rt, buyerOf(rt), p.item(rt), rapid.IntRange(0, 3).Draw(rt, "expires") == 0)
}

func (p *pair) issueTo(rt *rapid.T, buyer, item int8, expires bool) {
	life := pathLife
	if expires {
		life = short
	}
	paths := path.New(path.Config{
		Client: p.client, Keys: p.keys, Captchas: p.guard, Tokens: path.NewTokens(secrets), Life: life,
	})
	issued, err := paths.Issue(p.t.Context(), path.IssueInput{
		Sale: p.sale, Item: p.items[item], User: p.users[buyer], Persons: p.keyOf[buyer], Waived: true,
	})
	known, seen := p.serials[issued.Token]
	serial := known.Serial
	if !seen {
		serial = int16(len(p.serials) + 1)
	}
	want, permit := p.model.Issue(buyer, item, p.persons[buyer], serial, expires)
	got, task := outcomeOf(rt, err)
	if want.Code == model.NotLoaded {
		want.Code = model.GatePaused // package path does not tell them apart
	}
	if got != want.Code || p.taskOf(task) != want.Task {
		rt.Fatalf("issue for buyer %d, item %d: %d %s (%v), the model %+v", buyer, item, got, task, err, want)
	}
	if want.Code != model.Accepted {
		return
	}
	p.serials[issued.Token] = permit
	p.tokens = append(p.tokens, token{issued.Token, buyer, item, permit})
	for permit.Expired && !p.client.Time(p.t.Context()).Val().After(issued.ExpiresAt.Add(short)) {
	}
}

// outcomeOf returns the model's code of a refusal by package path.
func outcomeOf(rt *rapid.T, err error) (model.Code, id.Task) {
	if err == nil {
		return model.Accepted, id.Task{}
	}
	if closed, ok := errors.AsType[sale.NotOpen](err); ok {
		if closed.Reason() == fault.SaleClosed {
			return model.GateEnded, id.Task{}
		}
		return model.GatePaused, id.Task{}
	}
	if held, ok := errors.AsType[reservation.AlreadyOrdered](err); ok {
		return model.AlreadyHolding, held.Task
	}
	if limit, ok := errors.AsType[reservation.LimitReached](err); ok {
		switch {
		case limit.By == person.Contact:
			return model.OverContactLimit, id.Task{}
		case limit.By == person.Address:
			return model.OverAddressLimit, id.Task{}
		case limit.By == person.Code:
			return model.OverCode, id.Task{}
		case limit.WholeSale:
			return model.OverSaleLimit, id.Task{}
		}
		return model.OverLimit, id.Task{}
	}
	if _, ok := errors.AsType[reservation.NoneLeft](err); ok {
		return model.SoldOut, id.Task{}
	}
	if _, ok := errors.AsType[fault.Throttled](err); ok {
		return model.TooManyExpiries, id.Task{}
	}
	rt.Fatalf("issue: %v", err)
	return 0, id.Task{}
}

// attempt draws an attempt: with the buyer's last path token of the item, an older one, another
// buyer's, or none.
func (p *pair) attempt(rt *rapid.T) (model.Attempt, reservation.Attempt) {
	a := model.Attempt{
		Buyer: buyerOf(rt), Item: p.item(rt), Units: rapid.SampledFrom([]int8{1, 1, 1, 2, 2, 3}).Draw(rt, "units"),
		Task: p.task(), Key: rapid.Int8Range(1, model.Keys).Draw(rt, "key"),
	}
	if rapid.IntRange(0, 4).Draw(rt, "fresh token") > 0 {
		p.issueTo(rt, a.Buyer, a.Item, rapid.IntRange(0, 4).Draw(rt, "expires") == 0)
	}
	var of []token
	strange := rapid.IntRange(0, 9).Draw(rt, "of any buyer") == 0
	for _, t := range p.tokens {
		if strange || t.buyer == a.Buyer && t.item == a.Item {
			of = append(of, t)
		}
	}
	last := token{}
	if len(of) > 0 {
		last = of[len(of)-1]
		if rapid.IntRange(0, 7).Draw(rt, "older") == 0 {
			last = of[rapid.IntRange(0, len(of)-1).Draw(rt, "token")]
		}
	}
	own := last.text != "" && last.buyer == a.Buyer && last.item == a.Item
	if own {
		a.Permit, a.Persons = last.permit, p.persons[a.Buyer]
	}
	paths := path.NewTokens(secrets)
	request := reservation.Attempt{
		Task: p.tasks[a.Task], Sale: p.sale, Item: p.items[a.Item], User: p.users[a.Buyer], Quantity: int(a.Units),
		Permit:         paths.Permit(p.users[a.Buyer], p.items[a.Item], last.text),
		IdempotencyKey: keyText(a.Key), Terms: "1999|EUR|900", OnlyItem: len(p.items) == 1,
	}
	return a, request
}

// same reports whether an outcome is a reply of the model.
func (p *pair) same(o reservation.Outcome, r model.Reply) bool {
	return int(o.Code) == int(r.Code) && p.taskOf(o.Task) == r.Task && o.Remaining == int(r.Stock) &&
		o.LimitLeft == int(r.Left)
}

// reserve makes one attempt, and sometimes sends it again as after a lost reply.
func (p *pair) reserve(rt *rapid.T) {
	a, request := p.attempt(rt)
	for range rapid.IntRange(1, 2).Draw(rt, "times") {
		want := p.model.Reserve(a)
		got, err := p.gate.Reserve(p.t.Context(), request)
		if err != nil || !p.same(got, want) {
			rt.Fatalf("reserve %+v: %+v %v, the model %+v", a, got, err, want)
		}
		p.noteAccepted(want, a)
	}
}

func (p *pair) noteAccepted(r model.Reply, a model.Attempt) {
	if task := p.tasks[a.Task]; r.Code == model.Accepted && !slices.Contains(p.accepted, task) {
		p.accepted = append(p.accepted, task)
	}
}

// crowd makes several attempts at once, which share calls of the script. One order of them must
// explain all replies.
func (p *pair) crowd(rt *rapid.T) {
	n := rapid.IntRange(2, 6).Draw(rt, "attempts")
	attempts, outcomes := make([]model.Attempt, n), make([]reservation.Outcome, n)
	var all sync.WaitGroup
	errs := make([]error, n)
	requests := make([]reservation.Attempt, n)
	for i := range n {
		attempts[i], requests[i] = p.attempt(rt)
		if i > 0 && rapid.IntRange(0, 2).Draw(rt, "repeated") == 0 { // by a client that has no reply yet
			again := p.task()
			attempts[i], requests[i] = attempts[i-1], requests[i-1]
			attempts[i].Task, requests[i].Task = again, p.tasks[again]
		}
	}
	for i := range n {
		all.Go(func() { outcomes[i], errs[i] = p.gate.Reserve(context.WithoutCancel(p.t.Context()), requests[i]) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		rt.Fatal(err)
	}
	after, ok := p.explain(p.model, attempts, outcomes, 0)
	if !ok {
		rt.Fatalf("no order of %+v explains %+v", attempts, outcomes)
	}
	for i, o := range outcomes {
		p.noteAccepted(model.Reply{Code: model.Code(o.Code)}, attempts[i])
	}
	p.model = after
}

// explain returns the state after the attempts not in done, in an order that has the outcomes and
// ends in what Redis has.
func (p *pair) explain(s model.Sale, attempts []model.Attempt, outcomes []reservation.Outcome,
	done uint) (model.Sale, bool) {
	if done == 1<<len(attempts)-1 {
		return s, p.differs(s) == ""
	}
	for i, a := range attempts {
		if done&(1<<i) != 0 {
			continue
		}
		next := s
		if p.same(outcomes[i], next.Reserve(a)) {
			if end, ok := p.explain(next, attempts, outcomes, done|1<<i); ok {
				return end, true
			}
		}
	}
	return s, false
}

// holder draws a buyer and an item, most often with a reservation, and returns its task.
func (p *pair) holder(rt *rapid.T) (buyer, item int8, task model.Task) {
	buyer, item = buyerOf(rt), p.item(rt)
	if held := p.model.Gates[item].Held[buyer].Task; held != 0 && rapid.IntRange(0, 5).Draw(rt, "other task") > 0 {
		return buyer, item, held
	}
	return buyer, item, model.Task(rapid.IntRange(0, len(p.tasks)-1).Draw(rt, "task"))
}

func (p *pair) release(rt *rapid.T) {
	var r model.Release
	r.Buyer, r.Item, r.Task = p.holder(rt)
	r.Expired = rapid.IntRange(0, 3).Draw(rt, "expired") == 0
	ends := []model.End{model.Return, model.Return, model.Return, model.Oversold, model.Withdrawn}
	r.End = rapid.SampledFrom(ends).Draw(rt, "end")
	r.Keep = rapid.SampledFrom([]int8{0, 0, 0, 1, 2}).Draw(rt, "keep")
	for range rapid.IntRange(1, 2).Draw(rt, "times") {
		want := p.model.Release(r)
		got, err := p.gate.Release(p.t.Context(), reservation.Ref{
			Sale: p.sale, Item: p.items[r.Item], User: p.users[r.Buyer], Task: p.tasks[r.Task], Expired: r.Expired,
			Oversold: r.End == model.Oversold, Withdrawn: r.End == model.Withdrawn, Keep: int(r.Keep),
		})
		if err != nil || got.Done != (want == model.Released) || got.Building != (want == model.ReleaseLater) {
			rt.Fatalf("release %+v: %+v %v, the model %d", r, got, err, want)
		}
	}
}

// offer reserves units for a buyer without a path token, for an offer of the waitlist or for an order.
func (p *pair) offer(rt *rapid.T) {
	buyer, item, former := p.holder(rt)
	a := model.Attempt{
		Buyer: buyer, Item: item, Units: rapid.Int8Range(1, 2).Draw(rt, "units"), Task: p.task(),
		Key: rapid.SampledFrom([]int8{0, 0, 1, 2}).Draw(rt, "key"), Persons: p.persons[buyer],
	}
	p.offers[a.Task] = a.Key == 0
	for range rapid.IntRange(1, 2).Draw(rt, "times") {
		want := p.model.Reacquire(a, former)
		got, err := p.gate.Reacquire(p.t.Context(), reservation.Reacquire{
			Ref:    reservation.Ref{Sale: p.sale, Item: p.items[item], User: p.users[buyer], Task: p.tasks[a.Task]},
			Before: id.Order(p.tasks[former]), Quantity: int(a.Units), IdempotencyKey: keyText(a.Key), Persons: p.keyOf[buyer],
		})
		if err != nil || int(got.Code) != want {
			rt.Fatalf("reacquire %+v after task %d: %+v %v, the model %d", a, former, got, err, want)
		}
	}
}

func (p *pair) redeem(rt *rapid.T) {
	a, request := p.attempt(rt)
	var offer model.Task
	a.Buyer, a.Item, offer = p.holder(rt)
	if !p.offers[offer] {
		offer = p.task() // orders are not redeemed
	}
	request.User, request.Item = p.users[a.Buyer], p.items[a.Item]
	for range rapid.IntRange(1, 2).Draw(rt, "times") {
		want := p.model.Redeem(a, offer)
		got, err := p.gate.Redeem(p.t.Context(), request, id.Waitlist(p.tasks[offer]))
		if err != nil || !p.same(got, want) {
			rt.Fatalf("redeem %+v for %d: %+v %v, the model %+v", a, offer, got, err, want)
		}
		p.noteAccepted(want, a)
	}
}

func (p *pair) adjust(rt *rapid.T) {
	item, act := p.item(rt), rapid.Int8Range(1, 16).Draw(rt, "act")
	units := rapid.Int8Range(-2, 2).Draw(rt, "units")
	undoes := rapid.SampledFrom([]int8{0, 0, 0, act%16 + 1}).Draw(rt, "undoes")
	in := reservation.Adjustment{Sale: p.sale, Item: p.items[item], Act: p.acts[act], Units: int(units)}
	if undoes > 0 {
		in.Undoes = p.acts[undoes]
	}
	want := p.model.Adjust(item, act, units, undoes)
	got, err := p.gate.Adjust(p.t.Context(), in)
	if err != nil || int(got.Code) != want {
		rt.Fatalf("adjust %+v: %+v %v, the model %d", in, got, err, want)
	}
}

var stateNames = map[model.State]string{
	model.Open: reservation.GateOpen, model.Paused: reservation.GatePaused, model.Ended: reservation.GateEnded,
}

func (p *pair) state(rt *rapid.T) {
	p.revision++
	item := p.item(rt)
	states := []model.State{model.Open, model.Open, model.Open, model.Open, model.Paused, model.Ended}
	state := rapid.SampledFrom(states).Draw(rt, "state")
	revision, epoch := p.revision, p.epoch
	if rapid.IntRange(0, 5).Draw(rt, "late") == 0 {
		revision -= 2
	}
	if rapid.IntRange(0, 5).Draw(rt, "other epoch") == 0 {
		epoch--
	}
	want := p.model.SetState(item, epoch, revision, state)
	got, err := p.gate.SetState(p.t.Context(), reservation.StateChange{
		Sale: p.sale, Item: p.items[item], Epoch: int64(epoch), Revision: int64(revision), State: stateNames[state],
		Opens: time.Now().Add(-time.Hour), Closes: time.Now().Add(time.Hour),
	})
	if err != nil || got.Done != want {
		rt.Fatalf("set item %d to %d: %+v %v, the model %v", item, state, got, err, want)
	}
}

// wait says whether buyers wait for an item.
func (p *pair) wait(rt *rapid.T) {
	item, waiting := p.item(rt), reservation.NoBuyerWaits
	if rapid.IntRange(0, 2).Draw(rt, "buyers wait") == 0 {
		waiting = reservation.BuyersWait
	}
	p.status(rt, item, waiting)
	if g := &p.model.Gates[item]; g.State != model.Absent && g.State != model.Loading && g.Built {
		g.Waiting = waiting == reservation.BuyersWait
	}
}

func (p *pair) status(rt *rapid.T, item int8, waiting reservation.Waiting) {
	if _, err := p.gate.Status(p.t.Context(), p.sale, p.items[item], waiting); err != nil {
		rt.Fatal(err)
	}
}

// renew renews what expires after seconds, as the waitlist does.
func (p *pair) renew(rt *rapid.T) {
	for i := range p.items {
		if p.model.Gates[i].Waiting {
			p.status(rt, int8(i), reservation.BuyersWait)
		}
	}
}

// lose removes all that Redis has of the sale, but the stream.
func (p *pair) lose(*rapid.T) {
	shard := id.ShardOf(p.sale)
	lost := []string{p.keys.Units(shard, p.sale), p.keys.IdempotencyKeys(shard, p.sale),
		p.keys.ExpiriesPrefix(shard, p.sale) + "persons"}
	for _, item := range p.items {
		lost = append(lost, p.keys.Item(shard, item), p.keys.Reservations(shard, item), p.keys.Permits(shard, item),
			p.keys.FormerReservations(shard, item))
	}
	for b, user := range p.users {
		lost = append(lost, p.keys.Expiries(shard, p.sale, user))
		for _, key := range []person.Key{p.keyOf[b].Contact, p.keyOf[b].Address} {
			lost = append(lost, p.keys.ExpiriesPrefix(shard, p.sale)+string(key))
		}
	}
	p.must(p.client.Del(p.t.Context(), lost...).Err())
	p.model = model.Sale{Limit: p.model.Limit}
}

// rebuild builds the gates under the next epoch, or completes their build.
func (p *pair) rebuild(rt *rapid.T) {
	if p.model.Gates[0].State != model.Loading {
		p.begin(rt)
	}
	for range 3 {
		p.open(rt)
	}
}

// disaster removes the gates of the sale, now and then, and most often builds them again.
func (p *pair) disaster(rt *rapid.T) {
	switch rapid.IntRange(0, 5).Draw(rt, "disaster") {
	case 0:
		p.lose(rt)
	case 1:
		p.unload(rt)
	case 2:
		return
	}
	if rapid.IntRange(0, 4).Draw(rt, "rebuilt") > 0 {
		p.rebuild(rt)
	}
}

// unload removes the gates of the sale, unless they are of a later epoch.
func (p *pair) unload(rt *rapid.T) {
	epoch := p.epoch - rapid.Int8Range(0, 1).Draw(rt, "older")
	for _, item := range p.items {
		if _, err := p.gate.Unload(p.t.Context(), p.sale, item, int64(epoch)); err != nil {
			rt.Fatal(err)
		}
	}
	p.model.Unload(epoch)
}

// differs compares what Redis has with a state of the model.
func (p *pair) differs(s model.Sale) string {
	ctx, shard := context.WithoutCancel(p.t.Context()), id.ShardOf(p.sale)
	for i, item := range p.items {
		hash := p.client.HGetAll(ctx, p.keys.Item(shard, item)).Val()
		number := func(field string) int8 {
			n, _ := strconv.Atoi(hash[field]) // 0 = not there
			return int8(n)
		}
		g := s.Gates[i]
		if got, want := [4]int8{number("stock"), number("reserved"), number("total"), number("epoch")},
			[4]int8{g.Stock, g.Reserved, g.Total, g.Epoch}; got != want {
			return fmt.Sprintf("item %d: stock, reserved, total and epoch %v, the model %v", i, got, want)
		}
		if g.State == model.Loading {
			continue
		}
		kept, err := reservation.ParseShares(hash["kept"])
		p.must(err)
		for _, s := range kept {
			if want := g.Shares[s.Key[1]-'1']; s.Units != int(want.Units) || s.Taken != int(want.Taken) {
				return fmt.Sprintf("item %d: share %+v, the model %+v", i, s, want)
			}
		}
		held, err := p.gate.ReservationTasks(ctx, p.sale, item, p.users[:])
		p.must(err)
		for b, user := range p.users {
			if p.taskOf(held[user]) != g.Held[b].Task {
				return fmt.Sprintf("item %d, buyer %d: reservation %s, the model %+v", i, b, held[user], g.Held[b])
			}
		}
	}
	return ""
}

// check compares Redis with the model after each command.
func (p *pair) check(rt *rapid.T) {
	if differs := p.differs(p.model); differs != "" {
		rt.Fatal(differs)
	}
	for i, g := range p.model.Gates {
		if g.Stock+g.Reserved != g.Total {
			rt.Fatalf("the model breaks I2: item %d %+v", i, g)
		}
	}
	var sent []id.Task
	orders := p.keys.Orders(id.ShardOf(p.sale))
	p.must(stream.Backlog(p.t.Context(), p.client, orders, func(msg *stream.Message) {
		decoded, err := order.Decode(msg)
		p.must(err)
		for _, r := range decoded {
			sent = append(sent, r.Task)
		}
	}))
	byTask := func(a, b id.Task) int { return strings.Compare(uuid.UUID(a).String(), uuid.UUID(b).String()) }
	slices.SortFunc(sent, byTask)
	accepted := slices.SortedFunc(slices.Values(p.accepted), byTask)
	if !slices.Equal(sent, accepted) {
		rt.Fatalf("orders %v in the stream, accepted %v", sent, accepted)
	}
}

// Random commands on a real Redis and on the model: the same replies, and the same stock, reservations
// and orders after each. Commands cover repeats, expired, foreign and void path tokens, wrong epochs,
// limits of items, sales and persons, shares, attempts that share a call, offers, rebuilds and losses.
func TestTheScriptsAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	agree(t, conn, prefix)
}

// The simulation and the demo run on miniredis: it answers the same seeds as Redis does.
func TestTheScriptsAgreeWithTheModelOnMiniredis(t *testing.T) {
	t.Parallel()
	conn, err := redisconn.Open(t.Context(), "redis://"+miniredis.RunT(t).Addr()+"?read_timeout=1m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	agree(t, conn, "t:")
}

func agree(t *testing.T, conn *redisconn.Conn, prefix string) {
	t.Helper()
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		p := newPair(t, conn, fmt.Sprintf("%s%d:", prefix, run))
		p.draw(rt)
		commands := map[string]func(*rapid.T){
			"issue": p.issue, "reserve": p.reserve, "reserve again": p.reserve, "reserve more": p.reserve, "crowd": p.crowd,
			"crowd again": p.crowd, "release": p.release, "release again": p.release, "offer": p.offer, "redeem": p.redeem,
			"adjust": p.adjust, "state": p.state, "wait": p.wait, "begin": p.begin, "rebuild": p.rebuild, "disaster": p.disaster,
		}
		for name, command := range commands {
			commands[name] = func(rt *rapid.T) { p.renew(rt); command(rt) }
		}
		commands[""] = p.check
		rt.Repeat(commands)
	})
}
