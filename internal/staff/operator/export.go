package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	entuser "seckill/ent/user"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/account"
	"seckill/internal/identity/recipient"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/platform/spreadsheet"
)

// exportPage is the number of orders per read: the maximum that an export holds in
// memory.
const exportPage = 1000

// exportHeader contains the column names of an export.
var exportHeader = []string{
	"order_id", "number", "status", "sale_id", "item_id", "goods", "buyer_id", "buyer_account", "quantity",
	"unit_price", "total", "currency", "reserved_at", "created_at", "payment_deadline", "paid_at", "updated_at",
	"payment_provider", "payment_transaction", "refund_status", "refunded_amount", "refunded_at",
	"recipient_name", "recipient_phone", "recipient_country", "recipient_region", "recipient_city", "recipient_street",
	"recipient_postal_code",
	"metadata", "refunded_quantity", "type",
}

// Export is the table of a sale's orders.
type Export struct {
	s    *Service
	sale *sale.Sale
}

// ExportOrders prepares the export of a sale's orders.
func (s *Service) ExportOrders(ctx context.Context, by sale.Actor, saleID id.Sale) (*Export, error) {
	if err := requireStaff(by); err != nil {
		return nil, err
	}
	export, err := s.OpenExport(ctx, by.ID, saleID)
	if export == nil && err == nil {
		return nil, unknown("saleId")
	}
	return export, err
}

// OpenExport is ExportOrders without a check of the role, by Nil from the command line.
// It returns nil if the sale does not exist.
func (s *Service) OpenExport(ctx context.Context, by id.User, saleID id.Sale) (*Export, error) {
	v, err := s.cfg.Sales.ByID(ctx, saleID)
	if v == nil || err != nil {
		return nil, err
	}
	s.audit(ctx, by, account.EventExport, saleID.Public())
	return &Export{s: s, sale: v}, nil
}

// Name returns the file name of the export.
func (e *Export) Name() string { return e.sale.Slug + "-orders.csv" }

// CSV writes the orders as CSV for spreadsheets, oldest first, page by page, and returns
// their number.
func (e *Export) CSV(ctx context.Context, out io.Writer) (orders int, err error) {
	w, err := spreadsheet.NewWriter(out)
	if err != nil {
		return 0, fmt.Errorf("export orders: %w", err)
	}
	if err := w.Write(exportHeader); err != nil {
		return 0, fmt.Errorf("export orders: %w", err)
	}
	goods := make(map[id.Item]string, len(e.sale.Items))
	for _, item := range e.sale.Items {
		goods[item.ID] = item.Goods.Name
	}
	for last := (id.Order{}); ; {
		rows, accounts, err := e.page(ctx, last)
		if err != nil {
			return orders, err
		}
		money, err := e.money(ctx, rows)
		if err != nil {
			return orders, err
		}
		ids := collect.Map(rows, func(row *ent.Order) id.Order { return row.ID })
		recipients, err := recipient.Of(ctx, e.s.cfg.DB.Ent.OrderRecipient, ids...)
		if err != nil {
			return orders, err
		}
		metadata, err := order.MetadataOf(ctx, e.s.cfg.DB.Ent.OrderMetadata, ids...)
		if err != nil {
			return orders, err
		}
		for _, row := range rows {
			columns := append(exportRow(row, goods[row.ItemID], accounts[row.UserID]), money[row.ID].columns()...)
			if err := w.Write(append(append(columns, recipientColumns(recipients[row.ID])...), metadataColumn(metadata[row.ID]),
				strconv.Itoa(order.FromRow(row).RefundedUnits()), string(row.Kind))); err != nil {
				return orders, fmt.Errorf("export orders: %w", err)
			}
			last = row.ID
		}
		orders += len(rows)
		w.Flush()
		if err := w.Error(); err != nil {
			return orders, fmt.Errorf("export orders: %w", err)
		}
		if len(rows) < exportPage {
			return orders, nil
		}
	}
}

// page reads the orders after an id, with the accounts of their buyers. Ids are ordered
// by time.
func (e *Export) page(ctx context.Context, last id.Order) ([]*ent.Order, map[id.User]string, error) {
	rows, err := e.s.cfg.DB.Ent.Order.Query().Where(entorder.SaleID(e.sale.ID), entorder.IDGT(last)).
		Order(ent.Asc(entorder.FieldID)).Limit(exportPage).All(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("export orders: %w", err)
	}
	ids := collect.Map(rows, func(row *ent.Order) id.User { return row.UserID })
	users, err := e.s.cfg.DB.Ent.User.Query().Where(entuser.IDIn(ids...)).Select(entuser.FieldID, entuser.FieldAccount).
		All(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("export buyers: %w", err)
	}
	accounts := make(map[id.User]string, len(users))
	for _, u := range users {
		accounts[u.ID] = u.Account
	}
	return rows, accounts, nil
}

func exportRow(r *ent.Order, goods, account string) []string {
	unit := money.Amount{Minor: r.UnitPriceMinor, Currency: r.Currency}
	return []string{
		r.ID.Public(), r.Number, string(r.Status), r.SaleID.Public(), r.ItemID.Public(),
		spreadsheet.Safe(goods), r.UserID.Public(), spreadsheet.Safe(account), strconv.Itoa(r.Quantity),
		unit.Decimal(), unit.Times(r.Quantity).Decimal(), r.Currency,
		stamp(&r.ReservedAt), stamp(&r.CreatedAt), stamp(r.PaymentDeadline), stamp(r.PaidAt), stamp(&r.UpdatedAt),
	}
}

// metadataColumn returns the metadata of an order as JSON; "" = none.
func metadataColumn(m order.Metadata) string {
	if len(m) == 0 {
		return ""
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "" // not for a map of texts
	}
	return string(text)
}

// recipientColumns returns the columns of a recipient; empty where an order has no
// recipient.
func recipientColumns(r recipient.Recipient) []string {
	return []string{spreadsheet.Safe(r.Name), spreadsheet.Safe(r.Phone), r.Country, spreadsheet.Safe(r.Region),
		spreadsheet.Safe(r.City), spreadsheet.Safe(r.Street), spreadsheet.Safe(r.PostalCode)}
}

func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
