package operator_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/refund"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/staff/operator"
)

func (e *env) user(userID id.User, account, name string) {
	e.t.Helper()
	e.must(e.db.Ent.User.Create().SetID(userID).SetAccount(account).SetDisplayName(name).SetPasswordHash("x").
		SetCreatedAt(e.clock.Now()).Exec(e.t.Context()))
}

// ordersBy returns the orders that ann finds by a text, newest first.
func (e *env) ordersBy(text string) ([]*ent.Order, error) {
	e.t.Helper()
	match, err := e.ops.OrderMatch(e.t.Context(), ann, text)
	if err != nil {
		return nil, err
	}
	return e.db.Ent.Order.Query().Where(match).Order(ent.Desc(entorder.FieldCreatedAt, entorder.FieldID)).All(e.t.Context())
}

func TestSupportFindsPeopleAndTheirOrders(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 10)
		o, other := e.order(v), e.order(v)
		e.user(o.User, "li.lei@example.com", "Li Lei")
		e.user(other.User, "+8613800000000", "Han Meimei")
		for text, want := range map[string]id.User{
			"li.lei": o.User, "LI.LEI@example.com": o.User, "+86138": other.User, "meimei": other.User, o.User.Public(): o.User,
		} {
			people, err := e.ops.FindUsers(t.Context(), ann, text)
			if err != nil || len(people) != 1 || people[0].ID != want {
				t.Errorf("people by %q: %+v %v", text, people, err)
			}
		}
		for text, want := range map[string][]*order.Order{
			o.Number: {o}, other.ID.Public(): {other}, "li.lei@example.com": {o}, "Meimei": {other},
			v.ID.Public(): {other, o}, v.Items[0].ID.Public(): {other, o}, "unknown to all": {},
			o.User.Public(): {o}, "100%": {}, "__": {},
		} {
			found, err := e.ordersBy(text)
			if err != nil || len(found) != len(want) {
				t.Errorf("orders by %q: %d, want %d; %v", text, len(found), len(want), err)
				continue
			}
			for i := range want {
				if found[i].ID != want[i].ID {
					t.Errorf("orders by %q: %s at %d", text, found[i].ID, i)
				}
			}
		}
		for text, want := range map[string]id.User{
			"(138) 0000–0000": other.User, "0138.0000.0000": other.User, "tel:+86-138-0000-0000": other.User, "＋８６１３８": other.User,
			"mailto:Li.Lei@Example.com": o.User, "Li Lei <li.lei@example.com>": o.User, "\u202aLI LEI\u202c": o.User, "Ｈａｎ": other.User,
			strings.ToUpper(o.User.Public()): o.User, "https://shop.example/admin/people/" + o.User.Public() + "?x=1": o.User,
		} {
			people, err := e.ops.FindUsers(t.Context(), ann, text)
			if err != nil || len(people) != 1 || people[0].ID != want {
				t.Errorf("people by %q: %+v %v", text, people, err)
			}
		}
		day, rest, _ := strings.Cut(o.Number, "-")
		for _, text := range []string{
			"#" + o.Number, " # " + o.Number, strings.ToLower(o.Number), day + rest, day + "–" + rest, day + " " + strings.ToLower(rest), "＃" + o.Number, "№ " + o.Number,
			"Order #" + o.Number, "订单号：" + o.Number, strings.ToUpper(o.ID.Public()), "https://shop.example/orders/" + o.ID.Public(),
			"shop.example/admin/orders/" + o.ID.Public() + "/refund#x", "\u200b" + o.Number + "\u202c", "mailto:li.lei@example.com", o.Number[:len(day)+4],
		} {
			found, err := e.ordersBy(text)
			if err != nil || len(found) != 1 || found[0].ID != o.ID {
				t.Errorf("orders by %q: %+v %v", text, found, err)
			}
		}
		if _, err := e.ops.FindUsers(t.Context(), ann, " x "); fault.ReasonOf(err) != fault.InvalidInput {
			t.Errorf("too short: %v", err)
		}
		if _, err := e.ops.FindUsers(t.Context(), buyer, "li.lei"); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("by a customer: %v", err)
		}
	})
}

// pages counts how often an export was written.
type pages struct {
	bytes.Buffer
	writes int
}

func (p *pages) Write(b []byte) (int, error) {
	p.writes++
	return p.Buffer.Write(b)
}

func TestAnExportIsStreamedWholeAndInOrder(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 10)
	const n = 2500
	e.manyOrders(v, n)
	last := e.pay(e.order(v))
	e.user(last.User, "+8613800000000", "x") // a spreadsheet would calculate it
	export, err := e.ops.ExportOrders(t.Context(), ann, v.ID)
	if err != nil {
		t.Fatal(err)
	}
	var out pages
	count, err := export.CSV(t.Context(), &out)
	if err != nil || count != n+1 || out.writes < 3 || export.Name() != v.Slug+"-orders.csv" {
		t.Fatalf("%d orders in %d writes, error %v", count, out.writes, err)
	}
	if !strings.HasPrefix(out.String(), "\ufefforder_id,") {
		t.Errorf("the export begins %q: Excel reads it in the code page of the machine", out.String()[:8])
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != n+2 {
		t.Fatalf("%d rows, error %v", len(rows), err)
	}
	for i := 2; i < len(rows); i++ {
		if rows[i][0] <= rows[i-1][0] {
			t.Fatalf("row %d is not after the one before", i)
		}
	}
	got := rows[len(rows)-1]
	if want := last.ID.Public(); got[0] != want || got[2] != "PAID" || got[5] != "Kettle" || got[7] != "'+8613800000000" ||
		got[9] != "49.00" || got[10] != "49.00" || got[11] != "CNY" || !strings.HasSuffix(got[15], "Z") {
		t.Errorf("last row %q", got)
	}
	if _, err := e.ops.ExportOrders(t.Context(), ann, id.Sale(uuid.New())); fault.ReasonOf(err) != fault.Unknown {
		t.Errorf("unknown sale: %v", err)
	}
	if _, err := e.ops.ExportOrders(t.Context(), buyer, v.ID); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("by a customer: %v", err)
	}
}

// manyOrders writes cancelled orders, which hold no units.
func (e *env) manyOrders(v *sale.Sale, n int) {
	e.t.Helper()
	now := e.clock.Now()
	e.must(e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		rows := make([]*ent.OrderCreate, n)
		for i := range rows {
			rows[i] = tx.Order.Create().SetID(id.NewIn[id.Order](id.ShardOf(v.ID))).SetNumber(fmt.Sprintf("N-%d", i)).SetSaleID(v.ID).
				SetItemID(v.Items[0].ID).SetUserID(id.New[id.User]()).SetStatus("CANCELLED").SetQuantity(1).
				SetUnitPriceMinor(4900).SetCurrency("CNY").SetEpoch(1).SetReservedAt(now).SetCreatedAt(now).SetUpdatedAt(now)
		}
		return tx.Order.CreateBulk(rows...).Exec(ctx)
	}))
}

func TestExportsAreDownloadedByStaff(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 10)
	e.manyOrders(v, 3)
	server := httptest.NewServer(e.ops.Downloads(func(r *http.Request) (sale.Actor, error) {
		switch r.Header.Get("Authorization") {
		case "ann":
			return ann, nil
		case "buyer":
			return buyer, nil
		}
		return sale.Actor{}, fault.New(fault.Unauthenticated, "no")
	}))
	t.Cleanup(server.Close)
	client := server.Client()
	t.Cleanup(client.CloseIdleConnections)
	for who, want := range map[string]int{"ann": 200, "buyer": 403, "": 401} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+operator.ExportPath+"?sale="+v.ID.Public(), nil)
		e.must(err)
		r.Header.Set("Authorization", who)
		answer, err := client.Do(r)
		e.must(err)
		body, err := io.ReadAll(answer.Body)
		e.must(errors.Join(err, answer.Body.Close()))
		if answer.StatusCode != want || (want == 200) != strings.Contains(string(body), "N-2,CANCELLED") {
			t.Errorf("%q: %d %s", who, answer.StatusCode, body)
		}
	}
	for _, saleID := range []string{"", "sal_x", id.Sale(uuid.New()).Public()} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+operator.ExportPath+"?sale="+saleID, nil)
		e.must(err)
		r.Header.Set("Authorization", "ann")
		answer, err := client.Do(r)
		e.must(err)
		e.must(answer.Body.Close())
		if answer.StatusCode != http.StatusNotFound {
			t.Errorf("sale %q: %d", saleID, answer.StatusCode)
		}
	}
}

func TestPaymentsAreFoundByTheirNumbersWithoutReadingAll(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.must(execSQL(t, e, `INSERT INTO payments (id, order_id, user_id, provider, idempotency_key, status, amount_minor, currency, transaction, provider_ref,
		expires_at, check_at, created_at, updated_at)
		SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'sandbox', 'k', 'CLOSED', 1, 'CNY', 'tx' || n, 'ref' || n, now(), now(), now(), now()
		FROM generate_series(1, 5000) n`))
	e.must(execSQL(t, e, "ANALYZE payments"))
	rows, err := e.db.SQL.QueryContext(t.Context(), "EXPLAIN SELECT order_id FROM payments WHERE transaction = 'tx7' OR provider_ref = 'tx7' LIMIT 100")
	e.must(err)
	defer rows.Close()
	plan := ""
	for rows.Next() {
		var line string
		e.must(rows.Scan(&line))
		plan += line + "\n"
	}
	e.must(rows.Err())
	if strings.Contains(plan, "Seq Scan") || !strings.Contains(plan, "payment_transaction") || !strings.Contains(plan, "payment_provider_ref") {
		t.Errorf("plan:\n%s", plan)
	}
}

func execSQL(t *testing.T, e *env, statement string) error {
	t.Helper()
	_, err := e.db.SQL.ExecContext(t.Context(), statement)
	return err
}

// The second payment paid the order first; the money of the other one went back.
func TestAnExportHasThePaymentThatPaidTheOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 10)
		o := e.order(v)
		now := e.clock.Now()
		double, paid, part := id.New[id.Payment](), id.New[id.Payment](), id.New[id.Payment]()
		for i, p := range []id.Payment{part, paid, double} {
			e.must(e.db.Ent.Payment.Create().SetID(p).SetOrderID(o.ID).SetUserID(o.User).SetProvider("SANDBOX").SetTransaction(fmt.Sprint("tx-", i)).
				SetIdempotencyKey(uuid.NewString()).SetStatus("SUCCEEDED").SetAmountMinor(o.TotalMinor()).SetCurrency(o.Currency).
				SetExpiresAt(now).SetCheckAt(now).SetCreatedAt(now).SetUpdatedAt(now).SetPaidAt(now).Exec(t.Context()))
		}
		for p, cause := range map[id.Payment]refund.Cause{part: refund.CauseLATE, double: refund.CauseDOUBLE} {
			e.must(e.db.Ent.Refund.Create().SetID(id.New[id.Refund]()).SetOrderID(o.ID).SetPaymentID(p).SetIdempotencyKey(uuid.NewString()).
				SetCause(cause).SetStatus(refund.StatusSUCCEEDED).SetAmountMinor(o.TotalMinor()).SetCurrency(o.Currency).SetReason("").
				SetTryAt(now).SetCreatedAt(now).SetUpdatedAt(now).Exec(t.Context()))
		}
		export, err := e.ops.ExportOrders(t.Context(), ann, v.ID)
		e.must(err)
		var out bytes.Buffer
		_, err = export.CSV(t.Context(), &out)
		e.must(err)
		rows, err := csv.NewReader(&out).ReadAll()
		e.must(err)
		column := func(name string) string { return rows[1][slices.Index(rows[0], name)] }
		if column("payment_transaction") != "tx-1" || column("refund_status") != "" || column("refunded_amount") != "" {
			t.Errorf("the row %q", rows[1])
		}
	})
}
