package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/buy/salestats"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/locale"
)

//go:embed page.gohtml
var pageSource string

var pageTemplate = template.Must(template.New("report").Parse(pageSource))

// view is the data of the page in addition to the report.
type view struct {
	*Report
	words

	Lang     string
	Earned   template.HTML // revenue over time; "" without any
	Funnel   []funnelStep
	Advice   []string
	Rush     template.HTML // units left, during the rush
	Whole    template.HTML // units left, over the whole sale
	Asked    template.HTML
	Written  template.HTML
	Waited   template.HTML
	Why      template.HTML
	Compared []comparison
	Stages   []stage
	Did      []actRow
}

// stage is one row of the calls of buyers.
type stage struct {
	Name                                   string
	Calls, Passed, Queued, Refused, Faults string
}

// actRow is one row of the operations.
type actRow struct {
	At, Who, What, Status, Note string
	Changes                     []fieldChange
}

// HTML writes the report for a reader as one self-contained page: styles and plots are
// inline, and there is no script. The admin pages show the same page.
func (r *Report) HTML(out io.Writer, reader Reader) error {
	w := reader.words()
	rush, whole := r.rush(), r.whole()
	v := view{
		Report: r, words: w, Lang: "en", Compared: r.compared(w), Stages: r.stages(w), Did: r.actRows(w),
		Funnel: r.funnel(w), Advice: r.advice(w), Earned: r.revenuePlot(w, w.page("revenue")),
		Rush:    r.stockPlot(w, w.page("rush"), rush).draw(w),
		Asked:   r.seriesPlot(w, w.page("requestsPerSecond"), "a", func(s Second) int { return s.Requests }).draw(w),
		Written: r.seriesPlot(w, w.page("ordersPerSecond"), "b", func(s Second) int { return s.Orders }).draw(w),
		Waited:  r.lagPlot(w, w.page("storedOverTime")).draw(w),
		Why:     r.refusals(w),
	}
	if w.chinese {
		v.Lang = "zh-CN"
	}
	if whole.span() > 3*rush.span() {
		v.Whole = r.stockPlot(w, w.page("whole"), whole).draw(w)
	}
	if err := pageTemplate.Execute(out, v); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Methods of the template, in addition to those of Report.

// Say returns a text of the page in the reader's language. Names in it are isolated.
func (v view) Say(name string, values ...any) (string, error) {
	for n, value := range values {
		if s, ok := value.(string); ok {
			values[n] = locale.Isolate(s)
		}
	}
	if _, ok := pageTexts[name]; !ok {
		return "", fmt.Errorf("the page has no text %q", name)
	}
	return v.page(name, values...), nil
}

// N returns a whole number.
func (v view) N(n int) string { return grouped(int64(n)) }

// N64 returns a whole number.
func (v view) N64(n int64) string { return grouped(n) }

// Zone returns the name of the reader's time zone.
func (v view) Zone() string { return v.zone.String() }

// State returns the state of the sale.
func (v view) State() string { return v.say(statuses[sale.Status(v.Status)]) }

// Share returns the sell-through of an item.
func (v view) Share(i Item) string { return v.share(sellThrough(i.Sold, i.Total)) }

// Width returns the sell-through of an item as a number of percent.
func (v view) Width(i Item) string { return strings.TrimSuffix(v.Share(i), "%") }

// Finding returns a mismatch in words.
func (v view) Finding(f Finding) string { return v.say(f.text, f.values...) }

// Day returns a time in words.
func (v view) Day(t time.Time) string { return v.day(t) }

// When returns the time of day of a time that may be missing.
func (v view) When(t *time.Time) string { return v.when(t) }

// Lasts returns milliseconds as a duration.
func (v view) Lasts(ms float64) string { return v.lasts(ms) }

// Reached returns the time from the opening until the sale was sold out, if it was.
func (v view) Reached(ms int64) string { return v.reached(ms) }

// WaitedFor returns how long buyers waited in a sentence.
func (v view) WaitedFor() string { return v.waited(v.Lag) }

// reasons are the refusals in words.
var reasons = map[fault.Reason]text{
	fault.SoldOut: {"Sold out", "已抢光"}, fault.PathInvalid: {"Invalid path", "资格无效"},
	fault.TooManyTries: {"Rate limited", "过于频繁"}, fault.SaleNotStarted: {"Not started", "尚未开始"},
	fault.SaleClosed: {"Sale closed", "活动已关闭"}, fault.SalePaused: {"Sale paused", "活动已暂停"},
	fault.PurchaseLimitReached: {"Limit reached", "已达限购"}, fault.AlreadyOrdered: {"Ordered already", "已有订单"},
	fault.TooFewLeft: {"Too few left", "库存不足"}, fault.IdempotencyMismatch: {"Idempotency key reused", "幂等键不符"},
	fault.IdempotencyInProgress: {"Duplicate request", "重复提交"},
	fault.CaptchaInvalid:        {"Wrong captcha", "验证错误"}, fault.CaptchaRequired: {"No captcha", "未验证"},
	fault.InvalidInput: {"Invalid input", "输入有误"},
	fault.Unknown:      {"Not found", "不存在"}, fault.AddressRequired: {"No address", "无收货地址"},
	fault.ContactUnverified: {"Contact not verified", "联系方式未验证"}, fault.AccountTooNew: {"Account too new", "注册时间过短"},
	fault.DrawSale: {"Drawn, not rushed", "抽签场次"}, fault.EntriesClosed: {"Entries closed", "报名已截止"},
	fault.UnderReview: {"Under review", "核实中"}, fault.NoAccess: {"No access", "无购买资格"},
	fault.OwnSale:  {"Own sale", "员工自办场次"},
	fault.Conflict: {"Wrong state", "状态不符"},
}

func (w words) reason(of fault.Reason) string {
	if known, ok := reasons[of]; ok {
		return w.say(known)
	}
	return string(of)
}

func (r *Report) refusals(w words) template.HTML {
	bars := make([]bar, 0, len(r.Requests.Refused)+1)
	for _, f := range r.Requests.Refused {
		bars = append(bars, bar{w.reason(f.Reason), f.Count})
	}
	if r.Requests.Faulted > 0 {
		bars = append(bars, bar{w.page("serverFaultOrOverload"), r.Requests.Faulted})
	}
	if len(bars) == 0 {
		return ""
	}
	slices.SortStableFunc(bars, func(a, b bar) int { return int(min(1, max(-1, b.value-a.value))) })
	return drawBars(w.page("refusedByReason"), bars)
}

// stageNames are the steps of buyers in words.
var stageNames = map[salestats.Stage]text{
	salestats.StageCaptcha: {"Captcha", "验证码"}, salestats.StagePath: {"Admission", "资格"},
	salestats.StageQueue: {"Waiting room", "排队"}, salestats.StageOrder: {"Order", "下单"},
}

// stages returns the calls of buyers by step.
func (r *Report) stages(w words) []stage {
	var out []stage
	for _, g := range r.Requests.Gate {
		refused := int64(0)
		for _, f := range g.Refused {
			refused += f.Count
		}
		out = append(out, stage{
			Name: w.say(stageNames[g.Stage]), Calls: grouped(g.Calls), Passed: grouped(g.Passed), Queued: grouped(g.Queued),
			Refused: grouped(refused), Faults: grouped(g.Faulted),
		})
	}
	return out
}

// actRows returns the operations in words.
func (r *Report) actRows(w words) []actRow {
	rows := make([]actRow, len(r.Acts))
	for i, a := range r.Acts {
		who := a.Name
		if a.Actor == "" {
			who = w.page("theSystem")
		}
		act, known := actTexts[sale.Act(a.Act)]
		if !known {
			act = text{a.Act, a.Act}
		}
		rows[i] = actRow{
			At: w.at(a.At), Who: who, What: w.say(act), Status: w.say(statuses[sale.Status(a.To)]), Note: a.Note,
			Changes: r.changesOf(w, a.Detail),
		}
	}
	return rows
}
