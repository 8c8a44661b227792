package system_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// shown are the times and the title of a sale on an open page.
type shown struct {
	StartsAt, EndsAt time.Time
	Title            string
}

// openPage follows the status of a sale. The function that it returns waits until the page
// shows what it is asked for.
func (s *site) openPage(token, saleID string) (shows func(what string, is func(shown) bool)) {
	s.t.Helper()
	k := s.dial(token)
	k.send(frame{ID: "page", Type: "subscribe", Payload: subscription(s.t, `subscription($id: ID!) { saleStatus(saleId: $id) { sale { startsAt endsAt title } } }`, saleID)})
	return func(what string, is func(shown) bool) {
		s.t.Helper()
		for {
			var event struct {
				Data struct{ SaleStatus struct{ Sale shown } }
			}
			f := k.read()
			if err := json.Unmarshal(f.Payload, &event); err != nil || f.Type != "next" {
				s.t.Fatalf("waiting for %s: %+v %s %v", what, f, f.Payload, err)
			}
			if is(event.Data.SaleStatus.Sale) {
				return
			}
		}
	}
}

func TestOpenPagesShowNewTimesAndTextsAndBuyersBuyByThem(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *config.Config) { cfg.PreloadEvery = 200 * time.Millisecond })
	s.start("api", "worker", "scheduler")
	ann, carla, bob := s.staff("ann@example.com", "OPERATOR"), s.staff("carla@example.com", "ADMIN"), s.staff("bob@example.com", "OPERATOR")
	buyer := s.staff("buyer@example.com", "CUSTOMER")
	saleID := s.draft(ann)
	s.onSale(ann, "submitSale", saleID, "", "PENDING_APPROVAL")
	s.onSale(carla, "approveSale", saleID, "fine", "APPROVED")
	s.onSale(ann, "scheduleSale", saleID, "", "SCHEDULED")
	v := s.onSale(ann, "preheatSale", saleID, "", "PREHEATED")
	if p := s.byTwo(ann, "setSaleSwitches", saleParts, map[string]any{"saleId": saleID, "captchaRequired": false}); p.why() != "" {
		t.Fatalf("setSaleSwitches: %+v", p.UserErrors)
	}
	shows := s.openPage(buyer, saleID)
	var opens, closes time.Time
	for soon := 10 * time.Second; ; soon *= 3 { // later if the time has passed when it is scheduled
		opens = time.Now().UTC().Add(soon).Truncate(time.Millisecond)
		closes = opens.Add(3 * time.Hour)
		p := s.byTwo(ann, "scheduleSale", saleParts, map[string]any{
			"saleId": saleID, "startsAt": opens.Format(time.RFC3339Nano), "endsAt": closes.Format(time.RFC3339Nano),
		})
		if p.why() == "" && p.Sale["status"] == "PREHEATED" {
			break
		}
		if p.why() != "INVALID_INPUT" || 3*soon > testenv.Wait {
			t.Fatalf("scheduleSale: %+v", p)
		}
	}
	shows("the new times", func(v shown) bool { return v.StartsAt.Equal(opens) && v.EndsAt.Equal(closes) })
	if p := s.byTwo(bob, "updateSale", saleParts, map[string]any{"saleId": saleID, "title": "Winter"}); p.why() != "" {
		t.Fatalf("updateSale: %+v", p.UserErrors)
	}
	shows("the new title", func(v shown) bool { return v.Title == "Winter" })
	l := limited{site: s, sale: saleID, items: []string{v["items"].([]any)[0].(map[string]any)["id"].(string)}}
	testenv.Eventually(t, testenv.Wait, func() bool { return s.statusOf(ann, saleID) == "LIVE" }, "the sale opens")
	if task, why := l.buy(buyer, 0, 1); task == "" {
		t.Errorf("after the new opening: %+v", why)
	}
	longer := closes.Add(time.Hour)
	in := map[string]any{"saleId": saleID, "endsAt": longer.Format(time.RFC3339Nano), "note": "many are still buying"}
	p := s.mutate(ann, "extendSale", "intervention { id state kind endsAt } "+saleParts, in)
	if p.why() != "" || p.Intervention["state"] != "REQUESTED" || p.Intervention["kind"] != "EXTEND_SALE" {
		t.Fatalf("extendSale: %+v", p)
	}
	entries, _, _ := s.inbox(bob, "")
	if len(entries) != 1 || entries[0].Kind != "SALE_EXTENSION" || !entries[0].Decidable {
		t.Errorf("the inbox has %+v", entries)
	}
	if p := s.mutate(bob, "decideIntervention", "intervention { state }", map[string]any{"interventionId": p.Intervention["id"], "confirm": true}); p.why() != "" {
		t.Fatalf("decideIntervention: %+v", p.UserErrors)
	}
	shows("the new end", func(v shown) bool { return v.EndsAt.Equal(longer) })
	s.says(ann, saleID, "OPERATOR: extended it (Live)")
	s.audit(saleID)
}

// A scheduler that has not recorded the opening or the end of a sale yet does not change what
// is shown.
func TestStatusOfASaleOfTwoSecondsFollowsTheClock(t *testing.T) {
	t.Parallel()
	const atMost = time.Second
	s := newSite(t)
	s.start("api")
	ann := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 1, Stock: 1, OpensIn: time.Hour})
	saleID, err := id.ParseSale(made.SaleID)
	if err != nil {
		t.Fatal(err)
	}
	k := s.dial(ann)
	k.send(frame{ID: "page", Type: "subscribe", Payload: subscription(t, `subscription($id: ID!) { saleStatus(saleId: $id) { sale { status } } }`, made.SaleID)})
	db, redis := s.database(), s.conn()
	var opens, ends time.Time
	err = sale.NewVersions(redis.Cmd, s.cfg.RedisPrefix, slog.New(slog.DiscardHandler)).Write(t.Context(), func(ctx context.Context) error {
		opens = time.Now().Add(2 * time.Second) // the catalogue in memory is at most a second old
		ends = opens.Add(2 * time.Second)
		return db.Ent.Sale.UpdateOneID(saleID).SetStartsAt(opens).SetEndsAt(ends).AddRevision(1).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []struct {
		status string
		at     time.Time
	}{{"LIVE", opens}, {"ENDED", ends}} {
		for status := ""; status != change.status; {
			var event struct {
				Data struct {
					SaleStatus struct{ Sale struct{ Status string } }
				}
			}
			f := k.read()
			if err := json.Unmarshal(f.Payload, &event); err != nil || f.Type != "next" {
				t.Fatalf("waiting for %s: %+v %s %v", change.status, f, f.Payload, err)
			}
			status = event.Data.SaleStatus.Sale.Status
		}
		if late := time.Since(change.at); late < 0 || late > atMost {
			t.Errorf("%s is pushed %s after its time", change.status, late)
		}
		var read struct {
			Sale  struct{ Status string }
			Sales struct{ TotalCount int }
		}
		s.ask(ann, `query($id: ID!, $status: SaleStatus!) { sale(by: {id: $id}) { status } sales(first: 1, filter: {statuses: [$status]}) { totalCount } }`,
			map[string]any{"id": made.SaleID, "status": change.status}).into(t, &read)
		if read.Sale.Status != change.status || read.Sales.TotalCount != 1 {
			t.Errorf("while %s is pushed, queries show %+v", change.status, read)
		}
	}
}
