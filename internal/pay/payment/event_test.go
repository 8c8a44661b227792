package payment_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seckill/ent"
	"seckill/ent/webhookevent"
	"seckill/internal/platform/id"
)

// kinds returns the kinds of the events that were written, in their order.
func (s *shop) kinds() string {
	s.t.Helper()
	rows, err := s.db.Ent.WebhookEvent.Query().Order(ent.Asc(webhookevent.FieldID)).All(s.t.Context())
	s.must(err)
	var kinds []string
	for _, row := range rows {
		kinds = append(kinds, row.Kind)
	}
	return strings.Join(kinds, " ")
}

func (s *shop) subscribe() {
	s.t.Helper()
	s.must(s.db.WithTx(s.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.WebhookEndpoint.Create().SetID(id.New[id.Endpoint]()).SetURL("https://shop.example.com/").SetSecret([]byte("sealed")).
			SetCreatedAt(opening).SetUpdatedAt(opening).Exec(ctx)
	}))
}

func TestTheEndOfAnOrderIsAnEventForOtherSystems(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		s.subscribe()
		refunded := s.buy()
		s.payNow(refunded)
		s.approveRefund(s.askRefund(refunded), false)
		s.work()
		cancelled := s.buy()
		_, err := s.pay.Cancel(t.Context(), cancelled.ID, cancelled.User, "")
		s.must(err)
		s.buy()
		s.clock.Advance(window + 2*time.Second)
		s.step(s.pay.ExpireOverdue)
		if got := s.kinds(); got != "order.paid order.refunded order.cancelled order.expired" {
			t.Errorf("events %q", got)
		}
	})
}

func TestMoneyThatFitsNothingIsAnEventForOtherSystems(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		s.subscribe()
		o := s.buy()
		p := s.begin(o, "key-1")
		s.money(p, "tx-1", p.AmountMinor-1)
		if got := s.kinds(); got != "payment.unmatched" {
			t.Errorf("events %q", got)
		}
	})
}

// An order that is moved by order.Apply itself would lack its event.
func TestEveryMoveOfAnOrderGoesThroughApply(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if file != "event.go" && !strings.HasSuffix(file, "_test.go") && strings.Contains(string(text), "order.Apply(") {
			t.Errorf("%s calls order.Apply: call Service.apply", file)
		}
	}
}
