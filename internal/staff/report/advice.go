package report

import (
	"strings"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/locale"
)

const (
	// leastPeople is below which figures are too small to suggest anything.
	leastPeople = 20
	// notable is the share of people or orders from which a loss is worth a sentence.
	notable = 0.05
	// shortRush is the time to sold out below which most people had no chance to choose.
	shortRush = time.Minute
	// slowAnswer is the 99th percentile of answers above which a press feels slow.
	slowAnswer = time.Second
)

// Advice. Each text has the figures that it follows from.
var (
	offerMore = text{"Sold out after %s, and %s people found nothing left for %s units. More units, a purchase limit of 1, or a draw would serve them better.",
		"%s 售罄，有 %s 人未抢到（共 %s 件）。可增加库存、将限购设为 1 件，或改用抽签。"}
	offerFewer = text{"“%s” sold %s of %s units. Offer fewer of it, or lower its price.",
		"“%s”售出 %s 件，共 %s 件。可减少库存或降低价格。"}
	shortenPayment = text{"%s of the people with a unit let their order expire. 9 of 10 who paid did so within %s, and buyers had %s: a shorter time to pay returns units sooner.",
		"抢到的买家中有 %s 逾期未付款。已付款的买家九成在 %s 内完成，付款时限为 %s：缩短时限可让库存更早退回。"}
	remindPayment = text{"%s of the people with a unit let their order expire. 9 of 10 who paid needed up to %s of the %s that they had: a longer time to pay may keep more of them.",
		"抢到的买家中有 %s 逾期未付款。已付款的买家九成用时不超过 %s，付款时限为 %s：延长时限可能留住更多买家。"}
	announceAccess = text{"%s people were not allowed to buy, or lacked a delivery address or a verified contact. Say before the opening what a buyer needs.",
		"%s 人没有购买资格，或缺少收货地址、已验证的联系方式。请在开抢前说明购买条件。"}
	loosenLimits = text{"%s people stopped after the rate limit or the captcha refused them. Check whether these are stricter than the sale needs.",
		"%s 人因操作频率限制或验证码被拒后放弃。请检查限制是否过严。"}
	announceOpening = text{"%s people tried before the opening and did not come back. Show the time in announcements, and offer reminders.",
		"%s 人在开抢前尝试后未再返回。请在宣传中写明时间，并提供开抢提醒。"}
	reviewRefunds = text{"%s of the people who paid were refunded. Read the reasons of the refunds.",
		"已付款的买家中有 %s 退款。请查看退款原因。"}
	addProcesses = text{"1 of 100 presses waited longer than %s for an answer. Have the capacity checked before the next sale.",
		"1%% 的下单耗时超过 %s。请在下次活动前检查容量。"}
	nothingNotable = text{"Nothing in these figures stands out.", "各项数据未见异常。"}
	tooFewPeople   = text{"Fewer than %s people tried to buy: too few to suggest anything.", "尝试购买的人数不足 %s，不足以给出建议。"}
)

// advice returns what the figures suggest for the next sale.
func (r *Report) advice(w words) []string {
	p := r.People
	if p.Tried < leastPeople {
		return []string{w.say(tooFewPeople, grouped(leastPeople))}
	}
	var said []string
	say := func(when bool, t text, values ...any) {
		if when {
			said = append(said, w.say(t, values...))
		}
	}
	share := func(of, all int) float64 { return float64(of) / float64(max(1, all)) }
	none := p.lost(string(fault.SoldOut), string(fault.TooFewLeft), lossWaiting)
	say(r.Sale.SoldOutMs >= 0 && r.Sale.SoldOutMs < shortRush.Milliseconds() && none > r.Units.Total,
		offerMore, w.reached(r.Sale.SoldOutMs), grouped(int64(none)), grouped(int64(r.Units.Total)))
	for _, item := range r.Items {
		say(sale.Status(r.Status) == sale.Ended && 2*item.Sold < item.Total, offerFewer, locale.Isolate(item.Goods),
			grouped(int64(item.Sold)), grouped(int64(item.Total)))
	}
	if expired := p.lost(lossExpired); share(expired, p.Ordered) >= notable && r.Pay.P90Ms > 0 {
		t := remindPayment
		if 2*r.Pay.P90Ms < r.Pay.WindowMs {
			t = shortenPayment
		}
		say(true, t, w.share(share(expired, p.Ordered)), w.lasts(r.Pay.P90Ms), w.lasts(r.Pay.WindowMs))
	}
	for _, each := range []struct {
		text    text
		reasons []fault.Reason
	}{
		{announceAccess, []fault.Reason{fault.NoAccess, fault.AddressRequired, fault.ContactUnverified, fault.AccountTooNew}},
		{loosenLimits, []fault.Reason{fault.TooManyTries, fault.CaptchaInvalid, fault.CaptchaRequired}},
		{announceOpening, []fault.Reason{fault.SaleNotStarted}},
	} {
		lost := 0
		for _, reason := range each.reasons {
			lost += p.lost(string(reason))
		}
		say(share(lost, p.Tried) >= notable, each.text, grouped(int64(lost)))
	}
	refunded := p.lost(lossRefunded)
	say(share(refunded, p.Paid) >= notable, reviewRefunds, w.share(share(refunded, p.Paid)))
	say(r.Requests.P99Ms > ms(slowAnswer), addProcesses, w.lasts(r.Requests.P99Ms))
	if said == nil {
		return []string{w.say(nothingNotable)}
	}
	return said
}

// lossTexts are the reasons of losses that are not refusals.
var lossTexts = map[string]text{
	lossWaiting: {"Waited, no unit came", "候补或报名后未获得"}, lossFailed: {"Order failed", "订单失败"},
	lossUnpaid: {"Not paid yet", "待付款"}, lossExpired: {"Not paid in time", "逾期未付款"},
	lossCancelled: {"Cancelled", "已取消"}, lossRefunded: {"Refunded", "已退款"},
}

// funnelStep is one step of the funnel on the page.
type funnelStep struct {
	Name, People, Share string // Share is that of the step before; "" at the first
	Width               string // of its bar, in percent of the first
	Lost                string // the losses before it, with their reasons
}

// funnel returns the steps of people.
func (r *Report) funnel(w words) []funnelStep {
	p := r.People
	var steps []funnelStep
	before := 0
	for i, each := range []struct {
		name   string
		step   Step
		people int
	}{{"funnelTried", "", p.Tried}, {"funnelOrdered", StepOrdered, p.Ordered}, {"funnelPaid", StepPaid, p.Paid},
		{"funnelKept", StepKept, p.Kept}} {
		s := funnelStep{Name: w.page(each.name), People: grouped(int64(each.people)),
			Width: strings.TrimSuffix(w.share(float64(each.people)/float64(max(1, p.Tried))), "%")}
		if i > 0 {
			s.Share = w.share(float64(each.people) / float64(max(1, before)))
			s.Lost = r.losses(w, each.step, before-each.people)
		}
		before = each.people
		steps = append(steps, s)
	}
	return steps
}

// losses returns the people who were lost at a step, with their reasons.
func (r *Report) losses(w words, at Step, people int) string {
	if people == 0 {
		return ""
	}
	var parts []string
	for _, l := range r.People.Lost {
		if l.Step != at {
			continue
		}
		reason, known := lossTexts[l.Reason]
		if !known {
			reason = text{en: w.reason(fault.Reason(l.Reason))}
		}
		parts = append(parts, w.say(reason)+" "+grouped(int64(l.People)))
	}
	return w.page("funnelLost", grouped(int64(people)), strings.Join(parts, " · "))
}
