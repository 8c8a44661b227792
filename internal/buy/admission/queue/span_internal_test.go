package queue

import (
	"testing"
	"time"

	"seckill/internal/buy/admission/path"
)

// position reads the position of a reply.
func position(t *testing.T, wait, chance int64) *Position {
	t.Helper()
	reply := []any{"WAITING", "1000", int64(7), wait, chance, "0", "0", "", "", ""}
	ticket, err := Ticket{}.seen(reply, path.Tokens{})
	if err != nil || ticket == nil || ticket.Position == nil {
		t.Fatalf("%+v %v", ticket, err)
	}
	return ticket.Position
}

func TestAPlaceWithoutAChanceNamesNoTime(t *testing.T) {
	t.Parallel()
	if p := position(t, 30, 0); p.Wait != nil || p.Span != nil {
		t.Errorf("position %+v", p)
	}
	if p := position(t, 30, 1); p.Wait == nil || p.Span == nil {
		t.Errorf("position %+v", p)
	}
	if p := position(t, -1, 50); p.Wait != nil || p.Span != nil {
		t.Errorf("position %+v", p)
	}
}

func TestTheSpanOfAWaitIsRoundAndSteady(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]Span{
		0:                {0, 0},
		2 * time.Second:  {0, 5 * time.Second},
		30 * time.Second: {20 * time.Second, 45 * time.Second},
		4 * time.Minute:  {3 * time.Minute, 6 * time.Minute},
		30 * time.Minute: {20 * time.Minute, 45 * time.Minute},
	} {
		if got := spanOf(wait); got != want {
			t.Errorf("%s: %v, want %v", wait, got, want)
		}
	}
	before := position(t, 30, 50)
	near, far := position(t, 24, 50), position(t, 10, 50)
	near.steady(before)
	far.steady(before)
	if *near.Span != *before.Span {
		t.Errorf("a small change moves the span to %v", *near.Span)
	}
	if *far.Span != spanOf(10*time.Second) {
		t.Errorf("a large change leaves the span at %v", *far.Span)
	}
	far.steady(nil)
	var none *Position
	none.steady(before)
}
