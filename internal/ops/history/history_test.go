package drill

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

func op(k kind, buyer int, task string, began, over time.Time) operation {
	return operation{kind: k, buyer: buyer, task: task, began: began, over: over}
}

func TestAHistoryWithoutAnOrderIsAViolation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stock int
		wrong bool
		all   []operation
	}{
		"two units, two buyers": {stock: 2, all: []operation{
			op(took, 1, "t1", at(0), at(2)), op(took, 2, "t2", at(1), at(3)), op(soldOut, 3, "", at(0), at(3)),
			op(sawOpen, 1, "t1", at(2), at(3)), op(sawOrder, 1, "t1", at(3), at(4)), op(sawOrder, 1, "t1", at(5), at(6)),
		}},
		"oversold": {stock: 1, wrong: true, all: []operation{
			op(took, 1, "t1", at(0), at(2)), op(took, 2, "t2", at(1), at(3)),
		}},
		"sold again after its task failed": {stock: 1, all: []operation{
			op(took, 1, "t1", at(0), at(1)), op(took, 2, "t2", at(2), at(3)), op(sawFailed, 1, "t1", at(4), at(5)),
			op(ended, 1, "t1", at(0), at(5)),
		}},
		"a returned unit given twice": {stock: 1, wrong: true, all: []operation{
			op(took, 1, "t1", at(0), at(1)), op(ended, 1, "t1", at(0), at(5)), op(took, 2, "t2", at(2), at(3)),
			op(took, 3, "t3", at(2), at(3)),
		}},
		"sold out while a unit is left": {stock: 2, wrong: true, all: []operation{
			op(took, 1, "t1", at(0), at(1)), op(soldOut, 2, "", at(5), at(6)), op(took, 3, "t3", at(7), at(8)),
		}},
		"sold out a second ago": {stock: 1, all: []operation{
			op(took, 1, "t1", at(0), at(1)), op(ended, 1, "t1", at(0), at(1)), op(soldOut, 2, "", at(1.9), at(2)),
		}},
		"sold out by a call without a reply": {stock: 1, all: []operation{
			op(unknown, 1, "", at(0), at(1)), op(soldOut, 2, "", at(5), at(6)),
		}},
		"a call without a reply takes one unit": {stock: 2, wrong: true, all: []operation{
			op(unknown, 1, "", at(0), at(1)), op(soldOut, 2, "", at(5), at(6)),
		}},
		"a unit that comes too late to be sold": {stock: 1, wrong: true, all: []operation{
			op(took, 2, "t2", at(0), at(1)), op(took, 1, "t1", at(3), at(4)), op(ended, 1, "t1", at(3), at(5)),
		}},
		"two tasks of a buyer": {stock: 5, wrong: true, all: []operation{
			op(took, 1, "t1", at(0), at(1)), op(took, 1, "t2", at(2), at(3)),
		}},
		"a task with two ends": {stock: 5, wrong: true, all: []operation{
			op(took, 1, "t1", at(0), at(1)), op(sawOrder, 1, "t1", at(2), at(3)), op(sawFailed, 1, "t1", at(4), at(5)),
		}},
		"a task that is open again": {stock: 5, wrong: true, all: []operation{
			op(took, 1, "t1", at(0), at(1)), op(sawOrder, 1, "t1", at(2), at(3)), op(sawOpen, 1, "t1", at(4), at(5)),
		}},
		"another buyer's order": {stock: 5, wrong: true, all: []operation{
			op(took, 1, "t1", at(0), at(1)), op(took, 2, "t2", at(0), at(1)), op(sawOrder, 1, "t2", at(2), at(3)),
		}},
		"others buy as well": {stock: -1, all: []operation{
			op(took, 1, "t1", at(0), at(2)), op(soldOut, 3, "", at(8), at(9)), op(took, 2, "t2", at(11), at(13)),
		}},
	} {
		dir := t.TempDir()
		h := history{all: c.all}
		got := h.judge(c.stock, dir)
		pictures, err := filepath.Glob(filepath.Join(dir, "*.html"))
		if err != nil || got.ok == c.wrong || (got.violation != "") != c.wrong || (len(pictures) == 1) != c.wrong {
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
	var h history
	left := units
	for buyer := range buyers {
		moment := float64(buyer) / 1000
		began, over := at(moment-random.Float64()*0.2), at(moment+random.Float64()*0.2)
		if left == 0 {
			h.add(op(soldOut, buyer, "", began, over))
			continue
		}
		left--
		task := fmt.Sprint("t", buyer)
		h.add(op(took, buyer, task, began, over))
		if buyer%50 == 0 {
			left++
			h.add(op(ended, buyer, task, began, over))
			h.add(op(sawFailed, buyer, task, over, over.Add(time.Second)))
			continue
		}
		h.add(op(sawOpen, buyer, task, over, over.Add(time.Second)))
		h.add(op(sawOrder, buyer, task, over, over.Add(2*time.Second)))
	}
	if got := h.judge(units, t.TempDir()); !got.ok || got.operations < 10_000 {
		t.Errorf("%+v", got)
	}
}

func TestAHistoryIsBounded(t *testing.T) {
	t.Parallel()
	h := history{all: make([]operation, maxOperations)}
	h.add(operation{})
	if got := h.judge(1, t.TempDir()); got.ok || len(h.all) != maxOperations {
		t.Errorf("%+v", got)
	}
}
