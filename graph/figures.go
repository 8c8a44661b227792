package graph

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/graph/model"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/report"
	"seckill/internal/sale"
	"seckill/internal/salestats"
)

func toStats(s *salestats.Stats) *model.SaleStats {
	if s == nil {
		return nil
	}
	out := &model.SaleStats{
		At: s.At, Gmv: toMoney(s.GMV), Captchas: int(s.Captchas), Paths: int(s.Paths), Requests: int(s.Requests), Accepted: int(s.Accepted), Replayed: int(s.Replayed), Faults: int(s.Faulted),
		RequestsPerSecond: s.RequestsPerSecond, OrdersPerSecond: s.OrdersPerSecond, P50Ms: toMs(s.P50), P99Ms: toMs(s.P99),
		QueueDepth: s.QueueDepth, QueueAgeSeconds: s.QueueAge.Seconds(),
		Orders: s.Orders, PaidOrders: s.Paid, LapsedOrders: s.Expired, CancelledOrders: s.Cancelled, RefundedOrders: s.Refunded, FailedTasks: s.Failed,
		TotalUnits: s.Units.Total, RemainingUnits: s.Units.Remaining, PendingUnits: s.Units.Pending(), PaidUnits: s.Units.Sold,
		InFlightUnits: s.Units.InFlight, Conserved: s.Units.Conserved,
		Rejections: toRejections(s.Refused), Series: make([]*model.SaleStatsPoint, len(s.Series)),
	}
	out.Gate = toGates(s.Gate)
	out.NetValue, out.RefundedValue = toMoney(s.Net), toMoney(s.RefundSum)
	out.UnpaidUnits, out.OfferedUnits = s.Units.Held, s.Units.Offered
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

func toGates(list []salestats.Gate) []*model.GateStage {
	out := make([]*model.GateStage, len(list))
	for i, g := range list {
		out[i] = &model.GateStage{
			Stage: g.Stage, Calls: int(g.Calls), Passed: int(g.Passed), Queued: int(g.Queued), Faults: int(g.Faulted),
			Rejections: toRejections(g.Refused),
		}
	}
	return out
}

func toRejections(list []salestats.Rejection) []*model.RejectionCount {
	out := make([]*model.RejectionCount, len(list))
	for i, r := range list {
		out[i] = &model.RejectionCount{Code: r.Reason, Count: int(r.Count)}
	}
	return out
}

func toMs(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// report returns the report of a sale, or nil.
func (r *Resolver) report(ctx context.Context, saleID string) (*model.SaleReport, error) {
	u, err := id.Parse(id.Sale, saleID)
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
	return &model.SaleReport{Conserved: made.Conserved, Final: made.Final, Findings: made.Findings, Source: made}, nil
}

// written returns the text that a report writes.
func written(write func(out *strings.Builder) error) (string, error) {
	var out strings.Builder
	err := write(&out)
	return out.String(), err
}

func (r *Resolver) toFeedEvent(ctx context.Context, e salestats.FeedEvent) *model.SaleFeedEvent {
	out := &model.SaleFeedEvent{Kind: model.StreamEventKind(e.Kind), Cursor: e.Cursor, ServerTime: r.Store.Now()}
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
		who := text{"The clock", "系统"}.in(ctx)
		if l.Actor != nil {
			who = r.displayName(ctx, *l.Actor)
		}
		line := fmt.Sprintf("%s: %s (%s)", who, actMessage(ctx, l), l.To)
		if l.Note != "" {
			line += " – " + l.Note
		}
		return line
	case salestats.LineOrders:
		return fmt.Sprintf(text{"Orders written: %d", "写入订单：%d"}.in(ctx), l.Count)
	case salestats.LineFailed:
		return fmt.Sprintf(text{"Attempts that failed: %d. %s", "抢购失败：%d。%s"}.in(ctx), l.Count, message(ctx, fault.Reason(l.Reason)))
	case salestats.LineMoved:
		return fmt.Sprintf("%s: %d", movedTexts[l.Status].in(ctx), l.Count)
	}
	return string(l.Kind)
}

// actMessage formats an operator's action, with the number of units that it moved.
func actMessage(ctx context.Context, l *salestats.Line) string {
	switch {
	case l.Units > 0:
		return fmt.Sprintf(text{"put %d units on sale", "上架 %d 件"}.in(ctx), l.Units)
	case l.Units < 0:
		return fmt.Sprintf(text{"took %d units off sale", "下架 %d 件"}.in(ctx), -l.Units)
	}
	return actTexts[l.Act].in(ctx)
}

func (r *Resolver) displayName(ctx context.Context, userID uuid.UUID) string {
	u, err := r.Accounts.Directory().User(ctx, userID)
	if err != nil || u == nil {
		return id.Format(id.User, userID)
	}
	return u.DisplayName
}

var actTexts = map[sale.Act]text{
	sale.ActCreate:   {"created the sale", "创建了活动"},
	sale.ActUpdate:   {"changed the draft", "修改了草稿"},
	sale.ActSubmit:   {"handed it in for approval", "提交审核"},
	sale.ActApprove:  {"approved it", "审核通过"},
	sale.ActReject:   {"sent it back", "驳回"},
	sale.ActWithdraw: {"took it back from approval", "撤回审核"},
	sale.ActDiscard:  {"discarded the draft", "废弃草稿"},
	sale.ActSchedule: {"set its times", "设定时间"},
	sale.ActPreheat:  {"loaded it", "预热"},
	sale.ActOpen:     {"opened it", "开始"},
	sale.ActPause:    {"held it", "暂停"},
	sale.ActResume:   {"went on with it", "恢复"},
	sale.ActEnd:      {"ended it", "结束"},
	sale.ActCancel:   {"called it off", "取消"},
	sale.ActSettle:   {"settled it", "结清"},
	sale.ActRebuild:  {"rebuilt its gates", "重建库存闸门"},
	sale.ActAdjust:   {"changed its stock", "调整库存"},
	sale.ActVoid:     {"voided an order", "作废订单"},
	sale.ActExpire:   {"expired an unpaid order", "结束未付订单"},
	sale.ActSwitch:   {"switched its rules", "切换规则"},
}

var movedTexts = map[order.Status]text{
	order.PendingPayment: {"Orders that wait for payment", "待支付订单"},
	order.Paid:           {"Orders paid", "已支付订单"},
	order.Cancelled:      {"Orders cancelled", "已取消订单"},
	order.Expired:        {"Orders expired", "超时订单"},
	order.Refunding:      {"Orders being refunded", "退款中订单"},
	order.Refunded:       {"Orders refunded", "已退款订单"},
}
