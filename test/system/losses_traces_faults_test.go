//go:build faults

package system_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/ops/history"
	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
	"seckill/test/model"
)

const (
	tradedSales = 30
	tradedStock = 2
	tradedKills = 1500 * time.Millisecond // between two kills
	// tradedOrders is how many orders a buyer makes; all but the last are cancelled. More would count against the
	// buyer, and the model has no clock for it.
	tradedOrders = 3
	// tradedAsks bounds how often a buyer asks for a path token.
	tradedAsks = 40
)

// Buyers of many small sales ask, place, repeat, look and cancel while the API, the worker and the scheduler are
// killed again and again. What they saw of an item has an order, and the model of its gate gives the same replies in
// one.
func TestTheModelAcceptsWhatBuyersSawWhileAllProcessesAreKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	public, workerPort := "SECKILL_HTTP_ADDR="+testenv.ReserveAddr(t), ownPort(t)
	start := []func() *process{
		func() *process { return s.launch("api", public) },
		func() *process { return s.launch("worker,scheduler", workerPort) },
	}
	processes := []*process{start[0](), start[1]()}
	sales := make([]*tradedSale, tradedSales)
	for i := range sales {
		sales[i] = &tradedSale{site: s, made: s.seed(seed.Input{Users: model.Buyers, Stock: tradedStock, PermitRatio: 10})}
	}
	began := time.Now()
	over := make(chan struct{})
	var all sync.WaitGroup
	for _, sale := range sales {
		for buyer := range model.Buyers {
			all.Go(func() { sale.trade(int8(buyer)) })
		}
	}
	go func() { all.Wait(); close(over) }()
	kills := 0
	for tick := time.Tick(tradedKills); ; kills++ {
		select {
		case <-tick:
		case <-over:
		}
		select {
		case <-over:
		default:
			processes[kills%2].kill()
			processes[kills%2] = start[kills%2]()
			continue
		}
		break
	}
	ended := time.Now()
	dir, err := os.MkdirTemp("", "seckill-trace-") //nolint:usetesting // a picture outlives the test
	if err != nil {
		t.Fatal(err)
	}
	row := testenv.FaultRow{Fault: fmt.Sprintf("all processes killed %d times, %d sales", kills, tradedSales)}
	calls, operations := 0, 0
	for i, sale := range sales {
		report := s.drained(sale.made.SaleID, 0)
		row.Stored, row.LostUnits = row.Stored+report.Postgres.Orders, row.LostUnits+lostUnits(report)
		row.Accepted += int(sale.kept.Load())
		if wrong := sale.trace.Explain(tradedStock, filepath.Join(dir, fmt.Sprintf("trace-%d.html", i))); wrong != "" {
			t.Errorf("sale %d: %s", i, wrong)
		}
		result := sale.seen.Check(tradedStock, dir)
		if !result.OK {
			t.Errorf("sale %d: I6: %s", i, result)
		}
		calls, operations = calls+len(sale.trace), operations+result.Operations
	}
	row.Recovery = time.Since(ended)
	t.Logf("%d kills in %s, %d calls in traces, %d operations in histories", kills, ended.Sub(began).Round(time.Second), calls, operations)
	if kills < 5 || calls < 40*tradedSales {
		t.Errorf("%d kills, %d calls and operations: too few", kills, calls+operations)
	}
	if !t.Failed() {
		_ = os.Remove(dir) // it is empty
	}
	testenv.RecordFault(t, row)
}

// tradedSale is a sale with what its buyers did and saw.
type tradedSale struct {
	*site
	made *seed.Result
	seen witness
	kept atomic.Int64 // orders that were not cancelled

	mu     sync.Mutex
	trace  model.Trace // guarded by mu
	tokens int16       // guarded by mu; path tokens so far
	tasks  []string    // guarded by mu; by model.Task, from 1
}

func (s *tradedSale) note(c model.Call) {
	c.Over = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = append(s.trace, c)
}

// number returns the number of a task in the trace.
func (s *tradedSale) number(task string) model.Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, known := range s.tasks {
		if known == task {
			return model.Task(i + 1)
		}
	}
	s.tasks = append(s.tasks, task)
	return model.Task(len(s.tasks))
}

var tradedCodes = map[string]model.Code{
	"": model.Accepted, "SOLD_OUT": model.SoldOut, "ALREADY_ORDERED": model.AlreadyHolding, "PATH_INVALID": model.PathInvalid,
}

// trade makes orders and cancels all but the last.
func (s *tradedSale) trade(buyer int8) {
	of := ofBuyer{buyer: int(buyer), token: s.made.Users[buyer].AccessToken}
	for orders, asks := 0, 0; asks < tradedAsks; asks++ {
		of.task = ""
		<-time.After(rand.N(500 * time.Millisecond)) // as people do
		path, token := s.asks(of)
		if path == "" {
			continue
		}
		in := order(s.made.ItemID, path)
		if of.task = s.places(of, in, int8(orders+1), token); of.task == "" {
			continue
		}
		orders++
		s.places(of, in, int8(orders), token) // again
		for began := time.Now(); s.lookUp(&s.seen, of) != "SUCCEEDED"; <-time.After(50 * time.Millisecond) {
			if time.Since(began) > testenv.Wait {
				s.t.Errorf("buyer %d: task %s does not end", buyer, of.task)
				return
			}
		}
		if orders == tradedOrders || asks == tradedAsks-1 {
			s.kept.Add(1)
			return
		}
		s.cancels(of)
	}
}

// asks asks for a path token, and returns it with its number; "" = none.
func (s *tradedSale) asks(of ofBuyer) (path string, token int16) {
	s.mu.Lock()
	s.tokens++
	c := model.Call{Op: model.Look, Buyer: int8(of.buyer), Token: s.tokens, Began: time.Now()}
	s.mu.Unlock()
	out, err := s.try(of.token, `mutation($s: ID!) { createCaptcha(input: {purpose: SECKILL, saleId: $s, kind: PROOF_OF_WORK}) { challenge { id parameters } userErrors { code } } }`,
		map[string]any{"s": s.made.SaleID})
	var captcha struct {
		CreateCaptcha struct {
			Challenge *struct{ ID, Parameters string }
			UserErrors
		}
	}
	if err != nil || json.Unmarshal(out.Data, &captcha) != nil {
		return "", 0
	}
	challenge := captcha.CreateCaptcha.Challenge
	if challenge == nil {
		if c.Code = tradedCodes[captcha.CreateCaptcha.why()]; c.Code == model.SoldOut {
			s.note(c)
		}
		return "", 0
	}
	solved := solve(s.t, challenge.Parameters)
	c.Op, c.Began = model.Ask, time.Now()
	out, err = s.try(of.token, `mutation($i: ID!, $c: ID!, $a: String!) {
		issueSeckillPath(input: {itemId: $i, captcha: {challengeId: $c, answer: $a}}) { path { token } userErrors { code } } }`,
		map[string]any{"i": s.made.ItemID, "c": challenge.ID, "a": solved})
	var issued struct {
		IssueSeckillPath struct {
			Path *struct{ Token string }
			UserErrors
		}
	}
	if err != nil || json.Unmarshal(out.Data, &issued) != nil || out.code() != "" {
		s.note(c) // it may have given a token
		return "", 0
	}
	why := issued.IssueSeckillPath.why()
	switch code, known := tradedCodes[why]; {
	case issued.IssueSeckillPath.Path != nil:
		c.Code, path = model.Accepted, issued.IssueSeckillPath.Path.Token
	case why == "CAPTCHA_INVALID": // decided before the gate
		return "", 0
	case !known || why == "":
		s.t.Errorf("buyer %d asks for a path: %q", of.buyer, why)
		return "", 0
	default:
		c.Code = code
	}
	s.note(c)
	return path, c.Token
}

// places places an order until there is a reply, and returns its task; "" = it was refused.
func (s *tradedSale) places(of ofBuyer, in map[string]any, key int8, token int16) string {
	again := of.task != ""
	of.began = time.Now()
	c := model.Call{Op: model.Place, Buyer: int8(of.buyer), Key: key, Token: token, Began: of.began}
	for time.Since(of.began) < testenv.Wait {
		out, err := s.try(of.token, placeOrder, map[string]any{"in": in})
		if err != nil || out.code() != "" {
			c.Repeated = !again
			<-time.After(20 * time.Millisecond)
			continue
		}
		p, err := out.placed()
		code, known := tradedCodes[p.why()]
		if err != nil || !known {
			s.t.Errorf("buyer %d: %v %s", of.buyer, err, p.why())
			return ""
		}
		if c.Code = code; p.OrderTask != nil {
			c.Task = s.number(p.OrderTask.ID)
			if p.Replayed {
				c.Code = model.Replayed
			}
		}
		s.note(c)
		if !again {
			s.seen.placed(of, p, nil)
		}
		if p.OrderTask == nil || code != model.Accepted {
			return ""
		}
		return p.OrderTask.ID
	}
	s.t.Errorf("buyer %d has no reply", of.buyer)
	return ""
}

// cancels cancels an order until there is a reply.
func (s *tradedSale) cancels(of ofBuyer) {
	c := model.Call{Op: model.Cancel, Buyer: int8(of.buyer), Task: s.number(of.task), Began: time.Now()}
	in := map[string]any{"o": "ord_" + strings.TrimPrefix(of.task, "tsk_")}
	for time.Since(c.Began) < testenv.Wait {
		out, err := s.try(of.token, `mutation($o: ID!) { cancelOrder(input: {orderId: $o}) { userErrors { code } } }`, in)
		if err != nil || out.code() != "" {
			<-time.After(20 * time.Millisecond)
			continue
		}
		s.note(c)
		s.seen.note(history.Released, of, c.Began)
		return
	}
	s.t.Errorf("buyer %d has no reply to a cancel", of.buyer)
}
