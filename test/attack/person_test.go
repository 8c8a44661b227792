//go:build attack

package attack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testenv"
)

// limited seeds a sale whose limits count more than accounts; more are further columns of it.
func (s *target) limited(by sale.LimitBy, in seed.Input, more ...string) (*seed.Result, error) {
	made, err := s.sale(in)
	if err != nil {
		return nil, err
	}
	db, err := postgres.Open(context.Background(), postgres.Options{URL: s.cfg.DatabaseURL.Reveal()})
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	saleID, err := id.ParseSale(made.SaleID)
	if err != nil {
		return nil, err
	}
	err = db.WithTx(context.Background(), func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE sales SET `+strings.Join(append(more, "limit_by = $2", "requires_address = $3", "revision = revision + 1"), ", ")+` WHERE id = $1`, saleID.UUID(), by.String(), by.Address)
		return err
	})
	if err != nil {
		return nil, err
	}
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		data, _ := s.ask("", `query($id: ID!) { sale(by: {id: $id}) { limitBy } }`, map[string]any{"id": made.SaleID})
		return string(data) == fmt.Sprintf(`{"sale":{"limitBy":%s}}`, kinds(by))
	}, "the server knows the limits")
	return made, nil
}

// few is the seed of a sale in which permits are not scarce.
func few(stock int) seed.Input { return seed.Input{Users: 1, Stock: stock, PermitRatio: 1000} }

func kinds(by sale.LimitBy) string {
	text := "["
	for i, kind := range by.Kinds() {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf("%q", kind)
	}
	return text + "]"
}

// buy registers an account and buys one unit. taken reports a unit; code is the refusal.
func (s *target) buy(made *seed.Result, token string) (task, code string) {
	o, code := s.path(made, token)
	if o.Path == nil {
		return "", code
	}
	return s.place(made, token, o.Path.Token)
}

func (s *target) place(made *seed.Result, token, path string) (task, code string) {
	p, code := s.act(token, "placeOrder", "orderTask { id }", map[string]any{
		"itemId": made.ItemID, "quantity": 1, "pathToken": path, "idempotencyKey": uuid.NewString(),
	})
	if p.OrderTask == nil {
		return "", code
	}
	return p.OrderTask.ID, ""
}

// person registers an account from a network of its own.
func (s *target) person(n int, account string) (token string, err error) {
	in, _ := s.register(fmt.Sprintf("2a0a:%x::1", 0x100+n), account)
	if in.Tokens == nil {
		return "", fmt.Errorf("%s was not registered: %s", account, in.code())
	}
	return in.Tokens.AccessToken, nil
}

// oneMailbox buys with twenty addresses of one mailbox.
func oneMailbox(s *target) error {
	made, err := s.limited(sale.LimitBy{Contact: true}, few(20))
	if err != nil {
		return err
	}
	taken := 0
	for n := range 20 {
		token, err := s.person(n, fmt.Sprintf("f.armer+%d@gmail.com", n))
		if err != nil {
			return err
		}
		if task, code := s.buy(made, token); task != "" {
			taken++
		} else if code != "PURCHASE_LIMIT_REACHED" {
			return fmt.Errorf("address %d: %s", n, code)
		}
	}
	return exactly(1, taken)
}

// oneHome buys with six accounts whose parcels go to one door.
func oneHome(s *target) error {
	made, err := s.limited(sale.LimitBy{Contact: true, Address: true}, few(6))
	if err != nil {
		return err
	}
	taken := 0
	for n, street := range []string{"1 Main Street, Apt 4", "1 Main St. apt #4", "１　ＭＡＩＮ　ＳＴ　ＡＰＴ　４", "1, Main Street Apartment 4", "1 MAIN ST APT 4", "1 main street - apt 4"} {
		token, err := s.person(100+n, fmt.Sprintf("home%d@example.com", n))
		if err != nil {
			return err
		}
		_, code := s.act(token, "saveAddress", "address { id }", map[string]any{
			"name": fmt.Sprintf("Name %d", n), "phone": fmt.Sprintf("+8613800138%03d", n), "country": "US", "city": "Springfield", "street": street, "postalCode": "62701",
		})
		if code != "" {
			return fmt.Errorf("address %d: %s", n, code)
		}
		if task, code := s.buy(made, token); task != "" {
			taken++
		} else if code != "PURCHASE_LIMIT_REACHED" {
			return fmt.Errorf("account %d: %s", n, code)
		}
	}
	return exactly(1, taken)
}

func exactly(want, taken int) error {
	if taken != want {
		return fmt.Errorf("%d units, want %d", taken, want)
	}
	return nil
}

// deletedAndBack registers, buys, cancels or pays, deletes the account and registers again.
func deletedAndBack(s *target) error {
	made, err := s.limited(sale.LimitBy{Contact: true}, few(5))
	if err != nil {
		return err
	}
	taken := 0
	for n := range 3 {
		token, err := s.person(200+n, "again@example.com")
		if err != nil {
			return err
		}
		task, code := s.buy(made, token)
		if task == "" {
			if code != "PURCHASE_LIMIT_REACHED" {
				return fmt.Errorf("account %d: %s", n, code)
			}
		} else {
			taken++
			if err := s.pay(task); err != nil {
				return err
			}
		}
		if _, code := s.act(token, "deleteAccount", "", map[string]any{"currentPassword": password}); code != "" {
			return fmt.Errorf("account %d was not deleted: %s", n, code)
		}
	}
	return exactly(1, taken)
}

// pay waits for the order of a task and marks it as paid, as a provider would.
func (s *target) pay(task string) error {
	taskID, err := id.ParseTask(task)
	if err != nil {
		return err
	}
	db, err := postgres.Open(context.Background(), postgres.Options{URL: s.cfg.DatabaseURL.Reveal()})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		row, err := db.Ent.Order.Get(context.Background(), id.Order(taskID))
		if err != nil {
			return false
		}
		err = db.WithTx(context.Background(), func(ctx context.Context, tx *ent.Tx) error {
			_, err := order.Apply(ctx, tx, order.Move{Order: order.FromRow(row), To: order.Paid, At: time.Now(), Entry: order.Entry{By: order.Actor{Kind: order.Provider}, Code: order.CodePaid}})
			return err
		})
		return err == nil
	}, "the order is paid")
	return nil
}

// byTurns holds one unit with the accounts of one mailbox, one after the other, and cancels each
// order at once so that the next account takes it.
func byTurns(s *target) error {
	made, err := s.limited(sale.LimitBy{Contact: true}, few(1))
	if err != nil {
		return err
	}
	for n := range 8 {
		token, err := s.person(300+n, fmt.Sprintf("turns+%d@example.com", n))
		if err != nil {
			return err
		}
		var task string
		waits := false
		testenv.Eventually(s.t, testenv.Wait, func() bool {
			o, _ := s.act(token, "issueSeckillPath", "path { token } waits: userErrors { ... on RateLimitedError { cause } }",
				map[string]any{"itemId": made.ItemID, "captcha": s.work(token, made.SaleID)})
			waits = len(o.Waits) > 0 && o.Waits[0].Cause == "EXPIRED_RESERVATIONS"
			if o.Path != nil {
				task, _ = s.place(made, token, o.Path.Token)
			}
			return task != "" || waits
		}, "the unit returns, or the person waits")
		if waits {
			if n <= 2 {
				return fmt.Errorf("turn %d waits", n)
			}
			return nil // whatever the account
		}
		testenv.Eventually(s.t, testenv.Wait, func() bool {
			data, _ := s.ask(token, `query { myOrders(first: 1) { edges { node { id } } } }`, nil)
			var out struct {
				MyOrders struct {
					Edges []struct{ Node struct{ ID string } }
				}
			}
			if json.Unmarshal(data, &out) != nil || len(out.MyOrders.Edges) == 0 {
				return false
			}
			_, code := s.act(token, "cancelOrder", "order { id }", map[string]any{"orderId": out.MyOrders.Edges[0].Node.ID})
			return code == ""
		}, "the order is cancelled")
	}
	return errors.New("eight accounts of one mailbox held the unit")
}
