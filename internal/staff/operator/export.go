package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	entpayment "seckill/ent/payment"
	"seckill/ent/refund"
	entuser "seckill/ent/user"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/account"
	"seckill/internal/identity/recipient"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
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

// moneyOf is the money of the payment that paid an order, and what went back of it.
// Without such a payment it is that of the last one whose money came late.
type moneyOf struct {
	payment    *ent.Payment // nil = none
	refund     *ent.Refund  // the newest; nil = none
	refunded   money.Amount // the sum of finished refunds
	refundedAt *time.Time   // when the last of them finished; nil = none
}

// money reads the payments and refunds of a page of orders.
func (e *Export) money(ctx context.Context, rows []*ent.Order) (map[id.Order]*moneyOf, error) {
	found := make(map[id.Order]*moneyOf, len(rows))
	ids := make([]id.Order, len(rows))
	for i, row := range rows {
		ids[i], found[row.ID] = row.ID, &moneyOf{refunded: money.Amount{Currency: row.Currency}}
	}
	payments, err := e.s.cfg.DB.Ent.Payment.Query().
		Where(entpayment.OrderIDIn(ids...), entpayment.StatusIn(entpayment.StatusSUCCEEDED, entpayment.StatusREFUNDED)).
		Order(ent.Asc(entpayment.FieldID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("export payments: %w", err)
	}
	refunds, err := e.s.cfg.DB.Ent.Refund.Query().Where(refund.OrderIDIn(ids...), refund.Transaction("")).
		Order(ent.Asc(refund.FieldID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("export refunds: %w", err)
	}
	unused := make(map[id.Payment]bool) // their money went back by itself
	for _, r := range refunds {
		if (r.Cause == refund.CauseLATE || r.Cause == refund.CauseDOUBLE) && r.Status != refund.StatusREJECTED {
			unused[r.PaymentID] = true
		}
	}
	for _, p := range payments {
		if m := found[p.OrderID]; m.payment == nil || unused[m.payment.ID] {
			m.payment = p
		}
	}
	for _, r := range refunds {
		m := found[r.OrderID]
		if m.payment == nil || m.payment.ID != r.PaymentID {
			continue
		}
		m.refund = r
		if r.Status == refund.StatusSUCCEEDED || r.Status == refund.StatusSETTLED {
			m.refunded.Minor += r.AmountMinor
			m.refundedAt = &r.UpdatedAt
		}
	}
	return found, nil
}

// columns returns the columns of the money of exportHeader.
func (m *moneyOf) columns() []string {
	columns := make([]string, 5)
	if m.payment != nil {
		columns[0], columns[1] = spreadsheet.Safe(m.payment.Provider), spreadsheet.Safe(m.payment.Transaction)
	}
	if m.refund != nil {
		columns[2] = string(m.refund.Status)
		columns[3] = m.refunded.Decimal()
		columns[4] = stamp(m.refundedAt)
	}
	return columns
}

// ExportPath is the download URL of a sale's orders: ?sale=<public id>.
const ExportPath = "/exports/orders.csv"

// writeDeadline is the timeout of one write of a download.
const writeDeadline = 30 * time.Second

// Downloads serves exports to operators. authenticate returns the user of a request; its
// error is a fault.
func (s *Service) Downloads(authenticate func(*http.Request) (sale.Actor, error)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ExportPath, func(w http.ResponseWriter, r *http.Request) {
		by, err := authenticate(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		saleID, err := id.ParseSale(r.URL.Query().Get("sale"))
		if err != nil {
			http.Error(w, "There is no such sale.", http.StatusNotFound)
			return
		}
		export, err := s.ExportOrders(r.Context(), by, saleID)
		switch {
		case fault.ReasonOf(err) == fault.Unknown:
			http.Error(w, "There is no such sale.", http.StatusNotFound)
		case err != nil:
			s.refuse(w, r, err)
		default:
			s.send(w, r, export)
		}
	})
	mux.HandleFunc("GET "+CodesExportPath, func(w http.ResponseWriter, r *http.Request) {
		by, err := authenticate(r)
		if err == nil {
			err = s.downloadCodes(w, r, by)
		}
		switch {
		case fault.ReasonOf(err) == fault.Unknown:
			http.Error(w, "There are no such codes.", http.StatusNotFound)
		case err != nil:
			s.refuse(w, r, err)
		}
	})
	return mux
}

// send streams an export. After an error the connection is aborted, so that a partial
// file is not taken for a complete one.
func (s *Service) send(w http.ResponseWriter, r *http.Request, export *Export) {
	headers(w, export.Name())
	_, err := export.CSV(r.Context(), deadlineWriter{w})
	s.brokeOff(r.Context(), err)
}

// headers makes a response the download of a CSV file.
func headers(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	w.Header().Set("Cache-Control", "no-store")
}

// brokeOff aborts a download after an error.
func (s *Service) brokeOff(ctx context.Context, err error) {
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "export broke off", slog.Any("error", err))
		panic(http.ErrAbortHandler)
	}
}

// deadlineWriter sets a deadline for each write, independent of the total duration.
type deadlineWriter struct{ w http.ResponseWriter }

func (p deadlineWriter) Write(b []byte) (int, error) {
	err := http.NewResponseController(p.w).SetWriteDeadline(time.Now().Add(writeDeadline))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return p.w.Write(b)
}

func (s *Service) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch fault.CodeOf(err) {
	case fault.Unauthenticated:
		http.Error(w, "Please sign in first.", http.StatusUnauthorized)
	case fault.Forbidden:
		http.Error(w, "Your role may not do this.", http.StatusForbidden)
	default:
		s.cfg.Log.ErrorContext(r.Context(), "export", slog.Any("error", err))
		http.Error(w, "The orders cannot be read now.", http.StatusServiceUnavailable)
	}
}
