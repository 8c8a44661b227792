package order

import (
	"context"
	"fmt"
	"strconv"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
	"seckill/internal/identity/person"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// inserter writes fresh orders. A row with the same id or number, or a live order of
// the same user and item, violates a unique index; then nothing is written.
type inserter interface {
	insert(ctx context.Context, tx *ent.Tx, orders []*Order) error
	// anyFailed reports whether any of the tasks has ended as failed.
	anyFailed(ctx context.Context, tx *ent.Tx, tasks []id.Task) (bool, error)
}

// portable inserts with statements that every supported database accepts.
type portable struct{}

func (portable) insert(ctx context.Context, tx *ent.Tx, orders []*Order) error {
	rows := collect.Map(orders, func(o *Order) *ent.OrderCreate {
		return tx.Order.Create().SetID(o.ID).SetNumber(o.Number).SetSaleID(o.Sale).SetItemID(o.Item).
			SetUserID(o.User).SetKind(entorder.Kind(o.Kind)).SetStatus(entorder.Status(o.Status)).
			SetQuantity(o.Quantity).SetUnitPriceMinor(o.UnitPriceMinor).SetCurrency(o.Currency).SetVersion(o.Version).
			SetEpoch(o.Epoch).SetReservedAt(o.ReservedAt).SetCreatedAt(o.CreatedAt).SetUpdatedAt(o.UpdatedAt).
			SetNillablePaymentDeadline(o.PaymentDeadline).SetNillablePersonKeys(storedKeys(o.Persons)).
			SetNillableNetworkKey(storedKey(o.Origin.Network)).SetNillableDeviceKey(storedKey(o.Origin.Device))
	})
	if err := tx.Order.CreateBulk(rows...).Exec(ctx); err != nil {
		return fmt.Errorf("insert orders: %w", err)
	}
	return nil
}

func storedKeys(keys person.Keys) *string {
	if keys.IsZero() {
		return nil
	}
	text := keys.String()
	return &text
}

// storedKey returns the column of a key.
func storedKey(key person.Key) *string {
	if key == "" {
		return nil
	}
	text := string(key)
	return &text
}

func (portable) anyFailed(ctx context.Context, tx *ent.Tx, tasks []id.Task) (bool, error) {
	return tx.OrderFailure.Query().Where(orderfailure.IDIn(tasks...)).Exist(ctx)
}

// arrays inserts into Postgres with one statement whose text does not depend on the
// number of rows: columns are sent as arrays.
type arrays struct{}

// insertArrays writes the same rows as portable. Values that orders of a batch share
// are sent once, as a lot.
const insertArrays = `
WITH input AS (
  SELECT id, number, buyer, reserved, ($6::uuid[])[lot] AS sale, ($7::uuid[])[lot] AS item, ($8::int8[])[lot] AS quantity,
         ($9::int8[])[lot] AS price, ($10::text[])[lot] AS currency, ($11::int8[])[lot] AS epoch, ($12::timestamptz[])[lot] AS deadline, persons, network, device
  FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::timestamptz[], $5::int4[], $14::text[], $15::text[], $16::text[])
       AS t (id, number, buyer, reserved, lot, persons, network, device)
)
INSERT INTO orders (id, number, sale_id, item_id, user_id, kind, status, quantity, unit_price_minor, currency,
                    version, epoch, reserved_at, created_at, updated_at, payment_deadline, person_keys, network_key, device_key)
SELECT id, number, sale, item, buyer, 'SECKILL', 'PENDING_PAYMENT', quantity, price, currency,
       1, epoch, reserved, $13, $13, deadline, NULLIF(persons, ''), NULLIF(network, ''), NULLIF(device, '') FROM input`

// lot is the values that orders of a batch share. Orders of one item have the same
// price and the same payment window.
type lot struct {
	item     id.Item
	quantity int
	epoch    int64
}

func (arrays) insert(ctx context.Context, tx *ent.Tx, orders []*Order) error {
	lots, lotOf := lotsOf(orders)
	_, err := tx.ExecContext(ctx, insertArrays,
		postgres.Array(orders, func(dst []byte, o *Order) []byte { return postgres.AppendUUID(dst, o.ID) }),
		postgres.Array(orders, func(dst []byte, o *Order) []byte { return postgres.AppendText(dst, o.Number) }),
		postgres.Array(orders, func(dst []byte, o *Order) []byte { return postgres.AppendUUID(dst, o.User) }),
		postgres.Array(orders, func(dst []byte, o *Order) []byte { return postgres.AppendTime(dst, o.ReservedAt) }),
		postgres.Array(lotOf, func(dst []byte, lot int) []byte { return strconv.AppendInt(dst, int64(lot), 10) }),
		postgres.Array(lots, func(dst []byte, o *Order) []byte { return postgres.AppendUUID(dst, o.Sale) }),
		postgres.Array(lots, func(dst []byte, o *Order) []byte { return postgres.AppendUUID(dst, o.Item) }),
		postgres.Array(lots, func(dst []byte, o *Order) []byte { return strconv.AppendInt(dst, int64(o.Quantity), 10) }),
		postgres.Array(lots, func(dst []byte, o *Order) []byte { return strconv.AppendInt(dst, o.UnitPriceMinor, 10) }),
		postgres.Array(lots, func(dst []byte, o *Order) []byte { return postgres.AppendText(dst, o.Currency) }),
		postgres.Array(lots, func(dst []byte, o *Order) []byte { return strconv.AppendInt(dst, o.Epoch, 10) }),
		postgres.Array(lots, func(dst []byte, o *Order) []byte { return postgres.AppendTime(dst, *o.PaymentDeadline) }),
		orders[0].CreatedAt,
		postgres.Array(orders, func(dst []byte, o *Order) []byte { return postgres.AppendText(dst, o.Persons.String()) }),
		postgres.Array(orders, func(dst []byte, o *Order) []byte {
			return postgres.AppendText(dst,
				string(o.Origin.Network))
		}),
		postgres.Array(orders, func(dst []byte, o *Order) []byte {
			return postgres.AppendText(dst,
				string(o.Origin.Device))
		}),
	)
	if err != nil {
		return fmt.Errorf("insert orders: %w", err)
	}
	return nil
}

// lotsOf returns the first order of each lot, and for each order the number of its lot,
// from 1.
func lotsOf(orders []*Order) (lots []*Order, lotOf []int) {
	lotOf = make([]int, len(orders))
	numbers := make(map[lot]int, 1)
	for i, o := range orders {
		l := lot{o.Item, o.Quantity, o.Epoch}
		if numbers[l] == 0 {
			lots = append(lots, o)
			numbers[l] = len(lots)
		}
		lotOf[i] = numbers[l]
	}
	return lots, lotOf
}

func (arrays) anyFailed(ctx context.Context, tx *ent.Tx, tasks []id.Task) (failed bool, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT EXISTS (SELECT FROM order_failures WHERE id = ANY ($1::uuid[]))`,
		postgres.Array(tasks, postgres.AppendUUID[id.Task]))
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&failed); err != nil {
			return false, err
		}
	}
	return failed, rows.Err()
}
