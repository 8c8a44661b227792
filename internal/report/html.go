package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"seckill/internal/fault"
	"seckill/internal/sale"
	"seckill/internal/salestats"
)

//go:embed page.gohtml
var pageSource string

var pageTemplate = template.Must(template.New("report").Parse(pageSource))

// view is the data of the page in addition to the report.
type view struct {
	*Report
	words

	Lang     string
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
		Rush:    r.stockPlot(w, w.say("Units left during the rush"), rush).draw(w),
		Asked:   r.seriesPlot(w, w.say("Requests per second"), "a", func(s Second) int { return s.Requests }).draw(w),
		Written: r.seriesPlot(w, w.say("Orders written per second"), "b", func(s Second) int { return s.Orders }).draw(w),
		Waited:  r.lagPlot(w, w.say("How long buyers waited")).draw(w),
		Why:     r.refusals(w),
	}
	if w.chinese {
		v.Lang = "zh-CN"
	}
	if whole.span() > 3*rush.span() {
		v.Whole = r.stockPlot(w, w.say("Units left over the whole sale"), whole).draw(w)
	}
	if err := pageTemplate.Execute(out, v); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Methods of the template, in addition to those of Report.

// Say returns a text in the reader's language.
func (v view) Say(text string, values ...any) string { return v.say(text, values...) }

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
var reasons = map[fault.Reason]string{
	fault.SoldOut: "Sold out", fault.PathInvalid: "Invalid path", fault.TooManyTries: "Rate limited", fault.SaleNotStarted: "Not started",
	fault.SaleClosed: "Sale closed", fault.PurchaseLimitReached: "Limit reached", fault.AlreadyOrdered: "Ordered already",
	fault.TooFewLeft: "Too few left", fault.IdempotencyMismatch: "Idempotency key reused", fault.IdempotencyInProgress: "Duplicate request",
	fault.CaptchaInvalid: "Wrong captcha", fault.CaptchaRequired: "No captcha", fault.InvalidInput: "Invalid input",
	fault.Unknown: "Not found", fault.AddressRequired: "No address", fault.ContactUnverified: "Contact not verified", fault.AccountTooNew: "Account too new", fault.OwnSale: "Own sale", fault.Conflict: "Wrong state",
}

func (w words) reason(of fault.Reason) string {
	if text, ok := reasons[of]; ok {
		return w.say(text)
	}
	return string(of)
}

func (r *Report) refusals(w words) template.HTML {
	bars := make([]bar, 0, len(r.Requests.Refused)+1)
	for _, f := range r.Requests.Refused {
		bars = append(bars, bar{w.reason(f.Reason), f.Count})
	}
	if r.Requests.Faulted > 0 {
		bars = append(bars, bar{w.say("server fault or overload"), r.Requests.Faulted})
	}
	if len(bars) == 0 {
		return ""
	}
	slices.SortStableFunc(bars, func(a, b bar) int { return int(min(1, max(-1, b.value-a.value))) })
	return drawBars(w.say("Refused requests by reason"), bars)
}

// stageNames are the steps of buyers in words.
var stageNames = map[salestats.Stage]string{
	salestats.StageCaptcha: "Captcha", salestats.StagePath: "Admission", salestats.StageQueue: "Waiting room", salestats.StageOrder: "Order",
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
			who = w.say("The system")
		}
		act := did[sale.Act(a.Act)]
		if act == "" {
			act = a.Act
		}
		rows[i] = actRow{
			At: w.at(a.At), Who: who, What: w.say(act), Status: w.say(statuses[sale.Status(a.To)]), Note: a.Note,
			Changes: r.changesOf(w, a.Detail),
		}
	}
	return rows
}
