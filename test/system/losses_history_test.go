package system_test

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/internal/ops/history"
)

// witness records what buyers did and saw of an item, each call with its interval. It is safe for concurrent
// use.
type witness struct {
	history.History

	mu    sync.Mutex
	tasks []ofBuyer // guarded by mu; all that took a unit
}

// ofBuyer is an order task of a buyer.
type ofBuyer struct {
	buyer       int // from 0
	token, task string
	began       time.Time // of the call that took the unit
}

// note records an operation that is over now.
func (w *witness) note(k history.Kind, of ofBuyer, began time.Time) {
	common := of.task[strings.LastIndexByte(of.task, '_')+1:] // to a task and its order
	w.Add(history.Operation{Kind: k, Buyer: of.buyer, Task: common, Began: began, Over: time.Now()})
}

// placed records what became of a call for a unit, with all its repetitions, which are over now.
func (w *witness) placed(of ofBuyer, p placed, err error) {
	switch {
	case err != nil:
		w.note(history.Unknown, of, of.began)
	case p.OrderTask != nil:
		of.task = p.OrderTask.ID
		w.took(of)
	default:
		w.refused(of, p.why(), of.began)
	}
}

// took records that a task took a unit.
func (w *witness) took(of ofBuyer) {
	w.note(history.Took, of, of.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks = append(w.tasks, of)
}

// refused records a refusal because no unit is left.
func (w *witness) refused(of ofBuyer, why string, began time.Time) {
	if why == "SOLD_OUT" {
		w.note(history.SoldOut, of, began)
	}
}

// lookUp asks for the status of a task; "" = no reply.
func (s *site) lookUp(w *witness, of ofBuyer) (status string) {
	began := time.Now()
	out, err := s.try(of.token, `query($i: ID!) { orderTask(id: $i) { status } }`, map[string]any{"i": of.task})
	var data struct{ OrderTask *struct{ Status string } }
	if err != nil || json.Unmarshal(out.Data, &data) != nil || data.OrderTask == nil {
		return ""
	}
	switch status = data.OrderTask.Status; status {
	case "SUCCEEDED":
		w.note(history.SawOrder, of, began)
	case "FAILED":
		w.note(history.SawFailed, of, began)
		w.note(history.Ended, of, of.began)
	default:
		w.note(history.SawOpen, of, began)
	}
	return status
}

// oneOrder looks up all tasks once more, and requires that all replies since the start have one order in time
// (I6). stock is what was on sale; least is how many operations there have to be.
func (s *site) oneOrder(w *witness, stock, least int) {
	s.t.Helper()
	w.mu.Lock()
	tasks := w.tasks
	w.mu.Unlock()
	slots := make(chan struct{}, 16)
	var all sync.WaitGroup
	for _, of := range tasks {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if s.lookUp(w, of) == "" {
				s.t.Errorf("buyer %d: no status of task %s", of.buyer, of.task)
			}
		})
	}
	all.Wait()
	requireOneOrder(s.t, &w.History, stock, least)
}

// requireOneOrder draws a violation into a folder that stays.
func requireOneOrder(t testing.TB, h *history.History, stock, least int) {
	t.Helper()
	dir, err := os.MkdirTemp("", "seckill-history-") //nolint:usetesting // the picture outlives the test
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	result := h.Check(stock, dir)
	t.Logf("one order: %s, searched for %s", result, time.Since(began).Round(time.Millisecond))
	if !result.OK || result.Operations < least {
		t.Errorf("I6: %s, want at least %d with one order", result, least)
		return
	}
	_ = os.Remove(dir) // it is empty
}
