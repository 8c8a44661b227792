package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the zones of readers, also where the machine has none

	"seckill/internal/platform/locale"
)

// JSON writes the report for programs.
func (r *Report) JSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Text writes the report in a few lines for a terminal.
func (r *Report) Text(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  (%s, %s)\n", r.Title, r.SaleID, r.Status)
	fmt.Fprintf(&b, "  sold       %d of %d units, %d unpaid, %d left; sold out after %s\n",
		r.Units.Sold, r.Units.Total, r.Units.Held, r.Units.Remaining, orNever(r.Sale.SoldOutMs))
	fmt.Fprintf(&b, "  people     %d tried, %d got a unit, %d paid, %d were not refunded\n", r.People.Tried, r.People.Ordered,
		r.People.Paid, r.People.Kept)
	fmt.Fprintf(&b, "  requests   %d: %d accepted, %d replayed, %d faulted; p50 %s, p99 %s\n", r.Requests.Total,
		r.Requests.Accepted, r.Requests.Replayed, r.Requests.Faulted, lasts(r.Requests.P50Ms), lasts(r.Requests.P99Ms))
	if since := r.Requests.CountedSince; since != nil {
		fmt.Fprintf(&b, "  counted    requests since %s; Redis lost the counts before\n", since.Format(time.RFC3339))
	}
	for _, g := range r.Requests.Gate {
		if g.Calls == 0 {
			continue
		}
		fmt.Fprintf(&b, "  %-9s  %d calls: %d passed, %d queued, %d faulted\n", strings.ToLower(string(g.Stage)), g.Calls,
			g.Passed, g.Queued, g.Faulted)
		for _, f := range g.Refused {
			fmt.Fprintf(&b, "    refused  %d %s\n", f.Count, f.Reason)
		}
	}
	fmt.Fprintf(&b, "  orders     %d written, %d paid (net %s %s), %d expired, %d cancelled, %d refunded, %d tasks failed\n",
		r.Orders.Written, r.Orders.Paid, r.Orders.Net, r.Orders.Currency, r.Orders.Expired, r.Orders.Cancelled,
		r.Orders.Refunded, r.Orders.Failed)
	fmt.Fprintf(&b, "  queue      p50 %s, p99 %s, at most %s from the unit to the order\n", lasts(r.Lag.P50Ms),
		lasts(r.Lag.P99Ms), lasts(r.Lag.MaxMs))
	fmt.Fprintf(&b, "  returned   %d units, %d of them from expired orders; %d found another buyer\n", r.Units.Returned,
		r.Units.Expired, r.Units.Resold)
	if e := r.Earlier; e != nil {
		fmt.Fprintf(&b, "  earlier    %s: %d buyers (now %d), %d accepted, %d paid, net %s %s, %.1f%% sold (now %.1f%%), sold out after %s\n", e.Title, e.Buyers,
			r.Orders.Buyers, e.Accepted, e.Paid, e.Net, e.Currency, 100*e.SellThrough, 100*r.Summary.SellThrough,
			orNever(e.SoldOutMs))
	}
	people := 0
	for _, a := range r.Acts {
		if a.Actor != "" {
			people++
		}
	}
	fmt.Fprintf(&b, "  operators  %d acts; the system %d\n", people, len(r.Acts)-people)
	if r.Conserved {
		b.WriteString("  everything adds up\n")
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "  DOES NOT ADD UP: %s\n", f)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func orNever(ms int64) string {
	if ms < 0 {
		return "never"
	}
	return lasts(float64(ms))
}

// Reader is the language and time zone of a report. The zero value is English and UTC.
type Reader struct {
	Language locale.Language
	Zone     *time.Location
}

// words are the texts and formats of a reader.
type words struct {
	chinese bool
	zone    *time.Location
}

func (r Reader) words() words {
	w := words{chinese: r.Language == locale.Chinese, zone: r.Zone}
	if w.zone == nil {
		w.zone = time.UTC
	}
	return w
}

// text is a text in both languages. A text without Chinese was read from a stored report.
type text struct{ en, zh string }

// say returns a text with its values in the reader's language.
func (w words) say(t text, values ...any) string {
	said := t.en
	if w.chinese && t.zh != "" {
		said = t.zh
	}
	if len(values) == 0 {
		return said
	}
	return fmt.Sprintf(said, values...)
}

// page returns a text of the page with its values.
func (w words) page(name string, values ...any) string { return w.say(pageTexts[name], values...) }

// lasts returns milliseconds as a duration.
func (w words) lasts(ms float64) string {
	number, unit := lasting(ms)
	return strings.TrimSpace(number + " " + w.say(unit))
}

// reached returns the time from the opening until the sale was sold out, if it was.
func (w words) reached(ms int64) string {
	if ms < 0 {
		return w.say(notSoldOut)
	}
	return w.lasts(float64(ms))
}

// at returns a time to the second, without its zone.
func (w words) at(t time.Time) string { return t.In(w.zone).Format("2006-01-02 15:04:05") }

// day returns a time in words.
func (w words) day(t time.Time) string {
	if w.chinese {
		return t.In(w.zone).Format("2006年1月2日 15:04:05")
	}
	return t.In(w.zone).Format("2 January 2006, 15:04:05")
}

// when returns the time of day of a time that may be missing.
func (w words) when(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return t.In(w.zone).Format("15:04:05")
}

// share returns a share as a percentage.
func (w words) share(v float64) string {
	return strconv.FormatFloat(math.Floor(v*1000)/10, 'f', -1, 64) + "%"
}

// Units of time, and what stands for a missing one.
var (
	milliseconds = text{"ms", "毫秒"}
	seconds      = text{"s", "秒"}
	minutes      = text{"min", "分钟"}
	hours        = text{"h", "小时"}
	notSoldOut   = text{"not sold out", "未售罄"}
)

// pageTexts are the texts of page.gohtml by their names there.
var pageTexts = map[string]text{
	"advice":    {"For the next sale", "下次活动建议"},
	"answered":  {"From the press to the answer", "从点击到收到结果"},
	"engineers": {"Figures for engineers", "技术数据"},
	"funnel":    {"Where buyers were lost", "买家流失"},
	"funnelHint": {"People, each counted once: why the last attempt of each was refused, or what became of the order.",
		"按人统计，每人只计一次：取最后一次被拒的原因或订单的结果。"},
	"funnelIncomplete": {"Refusals are kept for 30 days: those of this sale, or a part of them, are deleted, and so the people who tried are too few here.",
		"拒绝记录保留 30 天：本专场的记录已全部或部分删除，因此“尝试购买”的人数偏低。"},
	"funnelKept":     {"Kept it", "未退款"},
	"funnelLost":     {"%s fewer: %s", "流失 %s 人：%s"},
	"funnelOrdered":  {"Got a unit", "抢到"},
	"funnelPaid":     {"Paid", "已付款"},
	"funnelTried":    {"Tried to buy", "尝试购买"},
	"halfWithin":     {"Half within", "半数不超过"},
	"mostWithin":     {"Most within", "多数不超过"},
	"noRevenue":      {"No order is paid.", "暂无已付款订单。"},
	"ofThem":         {"%s of the step before", "占上一步 %s"},
	"ofHundred":      {"%s (99 of 100)", "%s（99%%）"},
	"ofTen":          {"%s (9 of 10)", "%s（90%%）"},
	"revenue":        {"Revenue over time", "成交额走势"},
	"revenueHint":    {"Value of paid orders in %s, without what was refunded since. Time from the opening.", "已付款订单金额（%s），不含此后的退款。横轴为开抢后的时间。"},
	"storedOverTime": {"Time to the stored order, over the sale", "订单写入耗时走势"},
	"stored":         {"From the accepted attempt to the stored order", "从抢到至订单写入"},
	"tillPaid":       {"From the order to the payment", "从下单到付款"},
	"accepted":       {"%s accepted", "抢到 %s"},
	"act":            {"Act", "操作"},
	"acts":           {"What operators and the system did", "操作记录"},
	"answeredWithin": {"Answered within", "响应时间"},
	"buyers":         {"Buyers", "买家"},
	"calls":          {"Calls", "次数"},
	"cancelled":      {"Cancelled", "已取消"},
	"compared":       {"Compared with an earlier sale", "与往期专场对比"},
	"conserved":      {"Everything adds up", "账目一致"},
	"countedSince": {"Requests are counted since %s; counts of earlier ones, if any, are lost.",
		"请求自 %s 起统计；若此前有请求，其计数已丢失。"},
	"expired":        {"Expired", "已超时"},
	"expiredUnits":   {"Expired units", "超时未付件数"},
	"failedAttempts": {"Failed attempts", "失败"},
	"faults":         {"Faults", "故障"},
	"figure":         {"Figure", "指标"},
	"from":           {"%s to %s · %s", "%s 至 %s · %s"},
	"half":           {"half after %s", "售出一半用时 %s"},
	"halfOfOrders":   {"half of the orders", "半数订单"},
	"items":          {"Items", "商品"},
	"left":           {"Left", "剩余"},
	"made":           {"Made %s.", "生成于 %s。"},
	"mostOrders":     {"99 of 100", "99% 的订单"},
	"netValue":       {"Net value", "净成交额"},
	"noneRefused":    {"No attempt was refused.", "没有被拒绝的请求。"},
	"notConserved":   {"Something does not add up", "账目不一致"},
	"notFinal": {"The sale is not settled: these figures are those of %s and may still change.",
		"专场尚未结清：数据截至 %s，之后可能变化。"},
	"ofUnits":           {"of %s; %s unpaid, %s left", "共 %s 件，待付款 %s，剩余 %s"},
	"onSale":            {"On sale", "上架"},
	"orders":            {"Orders", "订单"},
	"ordersHint":        {"Rows written by the workers.", "后台写入的订单数。"},
	"ordersPerSecond":   {"Orders written per second", "每秒写入订单"},
	"pageTitle":         {"Sale report: %s", "专场报告：%s"},
	"paid":              {"Paid", "已付款"},
	"paidOrders":        {"%s paid orders", "已付款订单 %s 笔"},
	"passed":            {"Passed", "通过"},
	"price":             {"Price", "秒杀价"},
	"product":           {"Product", "商品"},
	"queued":            {"Queued", "排队"},
	"refunded":          {"Refunded", "已退款"},
	"refused":           {"Refused", "拒绝"},
	"refusedByReason":   {"Refused requests by reason", "拒绝原因"},
	"requests":          {"Requests", "抢购请求"},
	"requestsHint":      {"Calls of placeOrder.", "下单接口的调用次数。"},
	"requestsPerSecond": {"Requests per second", "每秒请求"},
	"resold":            {"%s found another buyer", "其中再次售出 %s 件"},
	"resoldHint": {"“Found another buyer” counts units that were taken beyond those on sale.",
		"“再次售出”指退回后又被抢到的件数。"},
	"rush":                  {"Units left during the rush", "抢购高峰的剩余件数"},
	"rushHint":              {"Time from the opening.", "横轴为开抢后的时间。"},
	"saleAfterwards":        {"Sale afterwards", "之后状态"},
	"sellThrough":           {"Sell-through", "售出率"},
	"serverFaultOrOverload": {"server fault or overload", "系统故障或过载"},
	"slowest":               {"99 of 100 within %s", "99%% 不超过 %s"},
	"sold":                  {"Sold", "已售"},
	"soldOutAfter":          {"Sold out after", "售罄用时"},
	"soldOutAt":             {"Sold out at", "售罄时间"},
	"step":                  {"Step", "步骤"},
	"steps":                 {"Steps of buyers", "买家各步骤"},
	"theSystem":             {"The system", "系统"},
	"thisSale":              {"This sale", "本专场"},
	"unitsReturned":         {"Units returned", "退回件数"},
	"unitsSold":             {"Units sold", "已售件数"},
	"unpaid":                {"Unpaid", "待付款"},
	"waited":                {"How long buyers waited", "买家等待时间"},
	"when":                  {"When", "时间"},
	"who":                   {"Who", "操作人"},
	"whole":                 {"Units left over the whole sale", "全场剩余件数"},
	"wholeHint":             {"Units come back when orders expire, or are cancelled or voided, and when operators add stock.", "订单超时、取消或作废，以及运营增加库存时，件数会回升。"},
	"why":                   {"Why", "原因"},
	"written":               {"Written", "写入"},
	"zone":                  {"Times are those of %s.", "时间按时区 %s 显示。"},
}
