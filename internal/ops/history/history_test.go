package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// at is a time in a made-up history, in seconds.
func at(seconds float64) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func op(k Kind, buyer int, task string, began, over time.Time) Operation {
	return Operation{Kind: k, Buyer: buyer, Task: task, Began: began, Over: over}
}

func TestAHistoryWithoutAnOrderIsAViolation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stock int
		wrong bool
		all   []Operation
	}{
		"two units, two buyers": {stock: 2, all: []Operation{
			op(Took, 1, "t1", at(0), at(2)), op(Took, 2, "t2", at(1), at(3)), op(SoldOut, 3, "", at(0), at(3)),
			op(SawOpen, 1, "t1", at(2), at(3)), op(SawOrder, 1, "t1", at(3), at(4)), op(SawOrder, 1, "t1", at(5), at(6)),
		}},
		"oversold": {stock: 1, wrong: true, all: []Operation{
			op(Took, 1, "t1", at(0), at(2)), op(Took, 2, "t2", at(1), at(3)),
		}},
		"sold again after its task failed": {stock: 1, all: []Operation{
			op(Took, 1, "t1", at(0), at(1)), op(Took, 2, "t2", at(2), at(3)), op(SawFailed, 1, "t1", at(4), at(5)),
			op(Ended, 1, "t1", at(0), at(5)),
		}},
		"a returned unit given twice": {stock: 1, wrong: true, all: []Operation{
			op(Took, 1, "t1", at(0), at(1)), op(Ended, 1, "t1", at(0), at(5)), op(Took, 2, "t2", at(2), at(3)),
			op(Took, 3, "t3", at(2), at(3)),
		}},
		"released and sold again, to the same buyer too": {stock: 1, all: []Operation{
			op(Took, 1, "t1", at(0), at(1)), op(SawOrder, 1, "t1", at(1), at(2)), op(Released, 1, "t1", at(2), at(3)),
			op(SawOrder, 1, "t1", at(3), at(4)), op(Took, 2, "t2", at(5), at(6)), op(Released, 2, "t2", at(6), at(7)),
			op(Took, 1, "t3", at(8), at(9)),
		}},
		"a released unit given twice": {stock: 1, wrong: true, all: []Operation{
			op(Took, 1, "t1", at(0), at(1)), op(Released, 1, "t1", at(2), at(3)), op(Took, 2, "t2", at(5), at(6)),
			op(Took, 3, "t3", at(5), at(6)),
		}},
		"sold before it was released": {stock: 1, wrong: true, all: []Operation{
			op(Took, 1, "t1", at(0), at(1)), op(Took, 2, "t2", at(1), at(2)), op(Released, 1, "t1", at(3), at(4)),
		}},
		"sold out while a unit is left": {stock: 2, wrong: true, all: []Operation{
			op(Took, 1, "t1", at(0), at(1)), op(SoldOut, 2, "", at(5), at(6)), op(Took, 3, "t3", at(7), at(8)),
		}},
		"sold out a second ago": {stock: 1, all: []Operation{
			op(Took, 1, "t1", at(0), at(1)), op(Ended, 1, "t1", at(0), at(1)), op(SoldOut, 2, "", at(1.9), at(2)),
		}},
		"sold out by a call without a reply": {stock: 1, all: []Operation{
			op(Unknown, 1, "", at(0), at(1)), op(SoldOut, 2, "", at(5), at(6)),
		}},
		"a call without a reply takes one unit": {stock: 2, wrong: true, all: []Operation{
			op(Unknown, 1, "", at(0), at(1)), op(SoldOut, 2, "", at(5), at(6)),
		}},
		"a unit that comes too late to be sold": {stock: 1, wrong: true, all: []Operation{
			op(Took, 2, "t2", at(0), at(1)), op(Took, 1, "t1", at(3), at(4)), op(Ended, 1, "t1", at(3), at(5)),
		}},
		"two tasks of a buyer": {stock: 5, wrong: true, all: []Operation{
			op(Took, 1, "t1", at(0), at(1)), op(Took, 1, "t2", at(2), at(3)),
		}},
		"a task with two ends": {stock: 5, wrong: true, all: []Operation{
			op(Took, 1, "t1", at(0), at(1)), op(SawOrder, 1, "t1", at(2), at(3)), op(SawFailed, 1, "t1", at(4), at(5)),
		}},
		"no order, before it is written and without one": {stock: 1, all: []Operation{
			op(SawNone, 1, "", at(0), at(1)), op(Took, 1, "t1", at(1), at(2)), op(SawNone, 1, "", at(2), at(3)),
			op(SawOrder, 1, "t1", at(3), at(4)), op(SoldOut, 2, "", at(3), at(4)), op(SawNone, 2, "", at(4), at(5)),
		}},
		"an order that is gone": {stock: 1, wrong: true, all: []Operation{
			op(Took, 1, "t1", at(0), at(1)), op(SawOrder, 1, "t1", at(1), at(2)), op(SawNone, 1, "", at(3), at(4)),
		}},
		"a task that is open again": {stock: 5, wrong: true, all: []Operation{
			op(Took, 1, "t1", at(0), at(1)), op(SawOrder, 1, "t1", at(2), at(3)), op(SawOpen, 1, "t1", at(4), at(5)),
		}},
		"another buyer's order": {stock: 5, wrong: true, all: []Operation{
			op(Took, 1, "t1", at(0), at(1)), op(Took, 2, "t2", at(0), at(1)), op(SawOrder, 1, "t2", at(2), at(3)),
		}},
		"others buy as well": {stock: -1, all: []Operation{
			op(Took, 1, "t1", at(0), at(2)), op(SoldOut, 3, "", at(8), at(9)), op(Took, 2, "t2", at(11), at(13)),
		}},
	} {
		dir := t.TempDir()
		h := History{all: c.all}
		got := h.Check(c.stock, dir)
		pictures, err := filepath.Glob(filepath.Join(dir, "*.html"))
		if err != nil || got.OK == c.wrong || (got.Violation != "") != c.wrong || (len(pictures) == 1) != c.wrong {
			t.Errorf("%s: %+v, pictures %v, %v", name, got, pictures, err)
		}
		for _, picture := range pictures {
			if info, err := os.Stat(picture); err != nil || info.Size() < 1000 {
				t.Errorf("%s: picture %v %v", name, info, err)
			}
		}
	}
}

// 12,000 buyers at once for 4,000 units, of which some return: the history that a right item produces
// has an order, found in seconds.
func TestALongConcurrentHistoryIsJudged(t *testing.T) {
	t.Parallel()
	const buyers, units = 12_000, 4_000
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a made-up history
	var h History
	left := units
	for buyer := range buyers {
		moment := float64(buyer) / 1000
		began, over := at(moment-random.Float64()*0.2), at(moment+random.Float64()*0.2)
		if left == 0 {
			h.Add(op(SoldOut, buyer, "", began, over))
			continue
		}
		left--
		task := fmt.Sprint("t", buyer)
		h.Add(op(Took, buyer, task, began, over))
		if buyer%50 == 0 {
			left++
			h.Add(op(Ended, buyer, task, began, over))
			h.Add(op(SawFailed, buyer, task, over, over.Add(time.Second)))
			continue
		}
		h.Add(op(SawOpen, buyer, task, over, over.Add(time.Second)))
		h.Add(op(SawOrder, buyer, task, over, over.Add(2*time.Second)))
	}
	if got := h.Check(units, t.TempDir()); !got.OK || got.Operations < 10_000 {
		t.Errorf("%+v", got)
	}
}

func TestAHistoryIsBounded(t *testing.T) {
	t.Parallel()
	h := History{all: make([]Operation, maxOperations)}
	h.Add(Operation{})
	if got := h.Check(1, t.TempDir()); got.OK || len(h.all) != maxOperations {
		t.Errorf("%+v", got)
	}
}
