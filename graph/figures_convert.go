package graph

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/buy/salestats"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/staff/report"
)

func toStats(s *salestats.Stats) *model.SaleStats {
	if s == nil {
		return nil
	}
	out := &model.SaleStats{
		At: s.At, Gmv: toMoney(s.GMV), Captchas: int(s.Captchas), Paths: int(s.Paths), Requests: int(s.Requests),
		Accepted: int(s.Accepted), Replayed: int(s.Replayed), Faults: int(s.Faulted),
		RequestsPerSecond: s.RequestsPerSecond, OrdersPerSecond: s.OrdersPerSecond, P50Ms: toMs(s.P50), P99Ms: toMs(s.P99),
		QueueDepth: s.QueueDepth, QueueAgeSeconds: s.QueueAge.Seconds(),
		Orders: s.Orders, PaidOrders: s.Paid, ExpiredOrders: s.Expired, CancelledOrders: s.Cancelled,
		RefundedOrders: s.Refunded, FailedTasks: s.Failed,
		TotalUnits: s.Units.Total, RemainingUnits: s.Units.Remaining, PendingUnits: s.Units.Pending(),
		PaidUnits:     s.Units.Sold,
		InFlightUnits: s.Units.InFlight, Conserved: s.Units.Conserved,
		Rejections: toRejections(s.Refused), Series: make([]*model.SaleStatsPoint, len(s.Series)),
	}
	out.Gate, out.RecentOrders = toGates(s.Gate), s.Recent
	out.NetValue, out.RefundedValue = toMoney(s.Net), toMoney(s.RefundSum)
	out.UnpaidUnits, out.OfferedUnits, out.WaitingBuyers = s.Units.Held, s.Units.Offered, s.Waiting
	out.Items = make([]*model.ItemFigures, len(s.Items))
	for i, f := range s.Items {
		out.Items[i] = &model.ItemFigures{
			ItemID: f.Item, TotalUnits: f.Total, UnpaidUnits: f.Held, PaidUnits: f.Sold, OfferedUnits: f.Offered,
			WaitingBuyers: f.Waiting,
		}
	}
	if !s.CountedSince.IsZero() {
		out.CountedSince = &s.CountedSince
	}
	for i, p := range s.Series {
		out.Series[i] = &model.SaleStatsPoint{
			At: p.At, Requests: p.Requests, Accepted: p.Accepted, Orders: p.Orders, RemainingUnits: p.Remaining,
		}
	}
	return out
}

func (r *Resolver) orderTotals(ctx context.Context, of *model.Sale, since time.Time) (*model.OrderTotals, error) {
	currency := ""
	for _, item := range of.Source.Items {
		currency = item.Price.Currency
	}
	n, net, err := r.Figures.Totals(ctx, of.Source.ID, currency, since)
	return &model.OrderTotals{Orders: n, NetValue: toMoney(net)}, err
}

func toGates(list []salestats.Gate) []*model.GateStage {
	return collect.Map(list, func(g salestats.Gate) *model.GateStage {
		return &model.GateStage{
			Stage: g.Stage, Calls: int(g.Calls), Passed: int(g.Passed), Queued: int(g.Queued), Faults: int(g.Faulted),
			Rejections: toRejections(g.Refused),
		}
	})
}

func toRejections(list []salestats.Rejection) []*model.RejectionCount {
	return collect.Map(list, func(r salestats.Rejection) *model.RejectionCount {
		return &model.RejectionCount{Code: r.Reason, Count: int(r.Count)}
	})
}

func toMs(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// errNoEarlierSale refuses a comparison with a sale that does not exist.
var errNoEarlierSale = fault.New(fault.BadInput, "There is no sale to compare with.")

// report returns the report of a sale, or nil.
func (r *Resolver) report(ctx context.Context, saleID string, compareTo *string) (*model.SaleReport, error) {
	u, err := id.ParseSale(saleID)
	if err != nil {
		return nil, nil
	}
	made, err := r.Reports.Build(ctx, u)
	if errors.Is(err, report.ErrUnknownSale) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if compareTo != nil {
		earlier, err := id.ParseSale(*compareTo)
		if err == nil {
			err = r.Reports.Compare(ctx, made, earlier)
		} else {
			err = report.ErrUnknownSale
		}
		if errors.Is(err, report.ErrUnknownSale) {
			return nil, errNoEarlierSale
		}
		if err != nil {
			return nil, err
		}
	}
	out := &model.SaleReport{Conserved: made.Conserved, Final: made.Final, Findings: make([]string, len(made.Findings)),
		Source: made}
	for i, f := range made.Findings {
		out.Findings[i] = f.In(report.Reader{Language: languageOf(ctx)})
	}
	return out, nil
}

// reader returns the language and the time zone in which a report is written; nil = UTC.
func reader(ctx context.Context, zone *string) (report.Reader, error) {
	to := report.Reader{Language: languageOf(ctx)}
	if zone == nil {
		return to, nil
	}
	found, err := time.LoadLocation(*zone)
	if err != nil {
		return to, fault.Wrap(fault.BadInput, "The time zone is unknown: give a name such as Asia/Shanghai.", err)
	}
	to.Zone = found
	return to, nil
}

func written(write func(out *strings.Builder) error) (string, error) {
	var out strings.Builder
	err := write(&out)
	return out.String(), err
}

func (r *Resolver) toFeedEvent(ctx context.Context, e salestats.FeedEvent) *model.SaleFeedEvent {
	out := &model.SaleFeedEvent{Kind: model.StreamEventKind(e.Kind), Cursor: e.Cursor, ServerTime: r.Shop.Now()}
	if e.Line != nil {
		message := r.lineMessage(ctx, e.Line)
		out.Message, out.Source = &message, e.Line.Order
	}
	return out
}

// lineMessage formats a line of a sale's log in the caller's language.
func (r *Resolver) lineMessage(ctx context.Context, l *salestats.Line) string {
	switch l.Kind {
	case salestats.LineAct:
		who := text{"The system", "系统"}.in(ctx)
		if l.Actor != nil {
			who = r.displayName(ctx, *l.Actor)
		}
		line := text{"%s: %s (%s)", "%s：%s（%s）"}.with(ctx, locale.Isolate(who), report.Did(languageOf(ctx), l.Act, l.Units),
			report.State(languageOf(ctx), l.To))
		if l.Note != "" {
			line += " – " + locale.Isolate(l.Note)
		}
		return line
	case salestats.LineOrders:
		return fmt.Sprintf(text{"Orders written: %d", "写入订单：%d"}.in(ctx), l.Count)
	case salestats.LineFailed:
		return fmt.Sprintf(text{"Attempts that failed: %d. %s", "抢购失败：%d。%s"}.in(ctx), l.Count,
			message(ctx, fault.Reason(l.Reason)))
	case salestats.LineMoved:
		return text{"%s: %d", "%s：%d"}.with(ctx, movedTexts[l.Status].in(ctx), l.Count)
	}
	return string(l.Kind)
}

func (r *Resolver) displayName(ctx context.Context, userID id.User) string {
	u, err := r.Accounts.Directory().User(ctx, userID)
	if err != nil || u == nil {
		return userID.Public()
	}
	return u.DisplayName
}

var movedTexts = map[order.Status]text{
	order.PendingPayment: {"Orders that wait for payment", "待支付订单"},
	order.Paid:           {"Orders paid", "已支付订单"},
	order.Cancelled:      {"Orders cancelled", "已取消订单"},
	order.Expired:        {"Orders expired", "超时订单"},
	order.Refunding:      {"Orders being refunded", "退款中订单"},
	order.Refunded:       {"Orders refunded", "已退款订单"},
}
