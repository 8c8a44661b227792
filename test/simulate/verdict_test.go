package simulate_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"seckill/internal/app"
	"seckill/internal/gate/audit"
)

// settle waits until all has ended after the last fault, lets one more buyer take what is
// left, and checks the invariants.
func (in *installation) settle(ctx context.Context, tools *app.Tools, b *beginning, people *sync.WaitGroup) {
	limited, cancel := context.WithTimeout(ctx, settles)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		people.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		in.note("buyers have ended")
	case <-limited.Done():
		for _, x := range in.buyers {
			if s := x.now(); s != done && x.number < buyers {
				in.fail("I4: buyer %d is %s, with order %+v", x.number, stateNames[s], x.order)
			}
		}
		in.describe(ctx, tools, b)
		return
	}
	if report, why := in.audited(limited, tools, b, false); why != "" {
		in.fail("%s: %+v", why, report)
		return
	} else if report.Postgres.Available > 0 {
		last := in.buyers[buyers]
		last.plan, last.until = pays, time.Now().Add(time.Minute) // after an offer to each of the others
		last.run(limited, b.made)
		if len(last.tasks) == 0 {
			// An order that had expired takes its units again when its payment comes late.
			if report, why := in.audited(limited, tools, b, false); why != "" || report.Postgres.Available > 0 {
				in.fail("I5: %d units are left, and a buyer gets none %s", report.Postgres.Available, why)
				return
			}
			in.note("the units that were left have been taken again")
		}
	}
	if report, why := in.audited(limited, tools, b, true); why != "" {
		in.fail("%s: %+v", why, report)
		return
	}
	in.judge(limited)
	in.note("all has ended")
}

// audited audits until nothing is wrong. At the time limit it returns the last report and what
// is wrong.
func (in *installation) audited(ctx context.Context, tools *app.Tools, b *beginning, end bool) (last *audit.Report, why string) {
	for {
		report, err := tools.Audit(ctx, b.made.SaleID)
		if ctx.Err() != nil {
			return last, why
		}
		before := why
		if last = report; err != nil {
			why = err.Error()
		} else if why = in.wrong(report, end); why == "" {
			return report, ""
		}
		if why != before {
			in.note("not settled: " + why)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return last, why
		}
	}
}

// wrong returns what is wrong with a report; "" = nothing.
func (in *installation) wrong(r *audit.Report, end bool) string {
	switch {
	case !r.OK && !in.expected(r.Findings):
		return "audit"
	case r.Stream.Unread+r.Stream.Pending > 0:
		return "I4: messages wait"
	case r.Stream.Dead > 0:
		return "a dead letter"
	case r.Postgres.Held > 0:
		return "I4: units are held"
	case r.Money.Coming > 0:
		return "money is on its way back"
	case r.Money.Paid-r.Money.Back != in.bank.Kept() && !in.lostRecord():
		return fmt.Sprintf("money: the bank keeps %d", in.bank.Kept())
	case end && r.Redis.Stock+r.Redis.Reserved != r.Postgres.Total:
		return "I2"
	}
	return ""
}

// expected reports whether findings are what a loss leaves behind: tasks that it ended.
func (in *installation) expected(findings []string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, finding := range findings {
		if in.loss.IsZero() || !strings.Contains(finding, "lost by Redis and failed") {
			return false
		}
	}
	return true
}

// judge compares what the buyers saw with their orders.
func (in *installation) judge(ctx context.Context) {
	for _, x := range in.buyers {
		list, err := x.read(ctx)
		if err != nil {
			in.fail("orders of buyer %d: %v", x.number, err)
			continue
		}
		live := 0
		for _, o := range list {
			switch o.Status {
			case "PAID":
				live++
			case "CANCELLED", "EXPIRED", "REFUNDED":
			default:
				in.fail("I4: order of buyer %d is %s", x.number, o.Status)
			}
		}
		if live > 1 {
			in.fail("I3: buyer %d has %d live orders", x.number, live)
		}
		written := 0
		for task, over := range x.tasks {
			switch {
			case !over:
				in.fail("I4: task %s of buyer %d has not ended", task, x.number)
			case x.failed[task] == "":
				written++
			case in.loss.IsZero():
				in.fail("I4: task %s of buyer %d failed (%s) without a loss", task, x.number, x.failed[task])
			}
		}
		if written > len(list) && !in.lostRecord() {
			in.fail("I4: %d tasks of buyer %d have an order, and there are %d orders", written, x.number, len(list))
		}
	}
}

// describe adds the state of the stores to the story.
func (in *installation) describe(ctx context.Context, tools *app.Tools, b *beginning) {
	report, err := tools.Audit(ctx, b.made.SaleID)
	in.note(fmt.Sprintf("state: %+v %v", report, err))
}
