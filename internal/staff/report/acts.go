package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	entorder "seckill/ent/order"
	"seckill/ent/user"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
)

// maxActs limits the operations in a report.
const maxActs = 500

// actTexts are the acts in words; the subject is the actor.
var actTexts = map[sale.Act]text{
	sale.ActCreate: {"created the sale", "创建了活动"}, sale.ActUpdate: {"changed the draft", "修改了草稿"},
	sale.ActSubmit:  {"submitted it for approval", "提交审核"},
	sale.ActApprove: {"approved it", "审核通过"}, sale.ActReject: {"sent it back", "驳回"},
	sale.ActWithdraw: {"took it back from approval", "撤回审核"},
	sale.ActDiscard:  {"discarded the sale", "废弃活动"}, sale.ActSchedule: {"set its times", "设定时间"},
	sale.ActPreheat: {"loaded it", "预热"}, sale.ActOpen: {"opened it", "开始"},
	sale.ActPause: {"paused it", "暂停"}, sale.ActResume: {"resumed it", "恢复"}, sale.ActEnd: {"ended it", "结束"},
	sale.ActCancel: {"cancelled it", "取消"},
	sale.ActSettle: {"settled it", "结清"}, sale.ActRebuild: {"rebuilt its gates", "重建库存闸门"},
	sale.ActAdjust: {"changed its stock", "调整库存"},
	sale.ActVoid:   {"voided an order", "作废订单"}, sale.ActExpire: {"expired an unpaid order", "结束未付订单"},
	sale.ActHold: {"held orders for review", "暂缓订单付款待核实"}, sale.ActRelease: {"released an order from review", "核实后放行订单"},
	sale.ActSwitch: {"changed its access controls", "修改准入控制"},
	sale.ActCodes:  {"changed its codes", "变更邀请码"},
	sale.ActExtend: {"extended it", "延长了活动"}, sale.ActDescribe: {"changed its title or rules", "修改了标题或规则"},
	sale.ActGoods:          {"changed a product of it", "修改了商品"},
	sale.ActValue:          {"entered the random value of a draw", "录入了抽签随机数"},
	"REQUEST_DRAW_VALUE":   {"asked to enter the random value of a draw", "申请录入抽签随机数"},
	"REQUEST_ADJUST_STOCK": {"asked for a change of stock", "申请调整库存"}, "REQUEST_VOID_ORDER": {"asked to void an order",
		"申请作废订单"},
	"REQUEST_EXTEND_SALE": {"asked to extend it", "申请延长活动"}, // these are of the live feed
	"REQUEST_CHANGE_SALE": {"asked to change it", "申请修改活动"}, "REQUEST_CHANGE_GOODS": {"asked to change a product of it",
		"申请修改商品"},
}

// Words for values and for changes of stock.
var (
	putOnSale   = text{"put %d units on sale", "上架 %d 件"}
	tookOffSale = text{"took %d units off sale", "下架 %d 件"}
	nothing     = text{"nothing", "无"}
	yes         = text{"yes", "是"}
	no          = text{"no", "否"}
	all         = text{"all", "全部"}
)

// Did returns an act in words; units are those that it put on sale, below 0 took off sale.
func Did(in locale.Language, act sale.Act, units int) string {
	w := Reader{Language: in}.words()
	switch {
	case act == sale.ActAdjust && units > 0:
		return w.say(putOnSale, units)
	case act == sale.ActAdjust && units < 0:
		return w.say(tookOffSale, -units)
	}
	return w.say(actTexts[act])
}

// statuses are the states of a sale in words.
var statuses = map[sale.Status]text{
	sale.Draft: {"Draft", "草稿"}, sale.PendingApproval: {"In review", "待审核"}, sale.Approved: {"Approved", "已通过"},
	sale.Rejected: {"Rejected", "已退回"}, sale.Scheduled: {"Scheduled", "已排期"},
	sale.Preheated: {"Preloaded", "已预热"}, sale.Live: {"Live", "进行中"}, sale.Paused: {"Paused", "已暂停"},
	sale.Ended: {"Ended", "已结束"}, sale.Cancelled: {"Cancelled", "已取消"},
}

// State returns the state of a sale in words.
func State(in locale.Language, status sale.Status) string {
	return Reader{Language: in}.words().say(statuses[status])
}

// field is one field of an act's details, in the order of the page.
type field struct {
	name  string
	label text
}

var fields = []field{
	{"title", text{"Title", "标题"}}, {"slug", text{"Address", "链接后缀"}}, {"rules", text{"Rules", "活动规则"}},
	{"startsAt", text{"Opens", "开始"}}, {"endsAt", text{"Ends", "结束"}}, {"preheatAt", text{"Preload", "预热时间"}},
	{"paymentWindowSeconds", text{"Time to pay", "付款时限"}},
	{"purchaseLimit", text{"Limit per person, all items", "全场每人限购"}},
	{"hideExactStock", text{"Hide exact stock", "隐藏具体库存"}},
	{"private", text{"Private sale", "私密专场"}},
	{"requiresAddress", text{"Delivery address", "需要收货地址"}}, {"limitBy", text{"Counted as one buyer", "限购时视为同一买家"}},
	{"requireVerifiedContact", text{"Verified contact", "需要已验证的联系方式"}},
	{"minimumAccountAge", text{"Hours of account age", "最短注册时长（小时）"}},
	{"accent", text{"Accent colour", "主题色"}}, {"items", text{"Items", "商品"}},
	{"captchaRequired", text{"Captcha required", "需要验证码"}}, {"captchaKinds", text{"Captcha kinds", "验证码种类"}},
	{"proofOfWorkMax", text{"Proof-of-work difficulty", "工作量证明难度"}},
	{"permitRatio", text{"Permits per available unit", "每件余量的名额"}},
	{"permitPerMille", text{"Permits per available unit", "每件余量的名额"}},
	{"inflowPerSecond", text{"Admitted buyers per second", "每秒放行人数"}},
	{"reviewAccounts", text{"Accounts from which orders are held for review", "同源账号达到此数即核实"}},
	{"limitBurst", text{"Attempts in a window", "窗口内次数"}},
	{"limitPerSecond", text{"Attempts per second on average", "平均每秒次数"}},
	{"item", text{"Item", "商品"}}, {"units", text{"Units", "件数"}}, {"order", text{"Order", "订单"}},
	{"cluster", text{"Cluster", "关联组"}}, {"orders", text{"Orders", "订单"}},
	{"requestedBy", text{"Requested by", "申请人"}}, {"requestNote", text{"Reason of the request", "申请原因"}},
	{"confirmedBy", text{"Confirmed by", "确认人"}}, {"confirmNote", text{"Remark", "备注"}}, {"goods", text{"Product", "商品"}},
	{"price", text{"Price", "秒杀价"}}, {"stock", text{"Stock", "库存"}},
	{"batch", text{"Batch", "批次"}}, {"source", text{"Source", "来源名"}}, {"codes", text{"Codes", "邀请码数"}},
	{"uses", text{"Units per code", "每码可购件数"}}, {"expiresAt", text{"Redeem until", "兑换截止"}},
	{"revokedBatch", text{"Revoked batch", "作废批次"}}, {"revokedCode", text{"Revoked code", "作废邀请码"}},
}

// kinds are the kinds of captchas in words.
var kinds = map[string]text{"TEXT": {"Characters", "字符"}, "MATH": {"Arithmetic", "算式"},
	"PROOF_OF_WORK": {"Proof of work", "免输入验证"}, "EXTERNAL": {"External check", "第三方验证"}}

// change of a field, for the page.
type fieldChange struct{ Label, Value string }

// changesOf returns the details of an act in words; none where they cannot be parsed.
func (r *Report) changesOf(w words, details string) []fieldChange {
	var values map[string]any
	if details == "" || json.Unmarshal([]byte(details), &values) != nil {
		return nil
	}
	former, _ := values[sale.FormerValues].(map[string]any)
	delete(values, sale.FormerValues)
	var out []fieldChange
	for _, f := range ordered(values) {
		text := r.value(w, f.name, values[f.name])
		if old, ok := former[f.name]; ok {
			text = r.value(w, f.name, old) + " → " + text
		}
		out = append(out, fieldChange{w.say(f.label), text})
	}
	return out
}

// ordered returns the fields of an object: the known ones in the order of the page, then
// the others by name.
func ordered(values map[string]any) []field {
	var known, others []field
	for _, f := range fields {
		if _, ok := values[f.name]; ok {
			known = append(known, f)
		}
	}
	for name := range values {
		if !slices.ContainsFunc(known, func(f field) bool { return f.name == name }) {
			others = append(others, field{name, text{name, name}})
		}
	}
	slices.SortFunc(others, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return append(known, others...)
}

// value returns the value of a field in words.
func (r *Report) value(w words, name string, value any) string {
	switch v := value.(type) {
	case nil:
		return w.say(nothing)
	case bool:
		if v {
			return w.say(yes)
		}
		return w.say(no)
	case float64:
		return w.number(name, v)
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			return w.at(at)
		}
		if known, ok := r.names[v]; ok {
			return known
		}
		if kind, ok := kinds[v]; ok {
			return w.say(kind)
		}
		return cmp.Or(v, w.say(nothing))
	case []any:
		if len(v) == 0 && name == "captchaKinds" {
			return w.say(all)
		}
		return joined(v, "; ", func(each any) string { return r.value(w, "", each) })
	case map[string]any:
		return joined(ordered(v), ", ", func(f field) string { return w.say(f.label) + " " + r.value(w, f.name, v[f.name]) })
	}
	return fmt.Sprint(value)
}

func joined[T any](list []T, by string, text func(T) string) string {
	parts := collect.Map(list, text)
	return strings.Join(parts, by)
}

// number returns a number in the unit of its field.
func (w words) number(name string, v float64) string {
	switch {
	case name == "paymentWindowSeconds":
		return w.lasts(v * 1000)
	case name == "permitPerMille":
		v /= 1000
	case name == "units" && v > 0:
		return "+" + grouped(int64(v))
	case v == float64(int64(v)):
		return grouped(int64(v))
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// addActs adds the operations of a sale, the oldest first, and the names of what their
// details point at.
func (src Source) addActs(ctx context.Context, r *Report, v *sale.Sale) error {
	lines, err := src.Sales.Log(ctx, v.ID, maxActs)
	if err != nil {
		return err
	}
	slices.Reverse(lines)
	r.names = map[string]string{}
	for _, item := range v.Items {
		if item.Goods != nil {
			r.names[item.ID.Public()], r.names[item.Goods.ID.Public()] = item.Goods.Name, item.Goods.Name
		}
	}
	if err := src.nameIDs(ctx, r, lines); err != nil {
		return err
	}
	r.Acts = make([]Act, 0, len(lines))
	for _, l := range lines {
		a := Act{At: l.At, Act: string(l.Act), From: string(l.From), To: string(l.To), Note: l.Note, Detail: l.Details,
			Name: "the clock"}
		if l.Actor != nil {
			a.Actor = l.Actor.Public()
			a.Name = cmp.Or(r.names[a.Actor], a.Actor)
		}
		r.Acts = append(r.Acts, a)
	}
	return nil
}

// nameIDs reads the names of users and the numbers of orders in a log.
func (src Source) nameIDs(ctx context.Context, r *Report, lines []sale.LogLine) error {
	var (
		users  []id.User
		orders []id.Order
	)
	for _, l := range lines {
		if l.Actor != nil {
			users = append(users, *l.Actor)
		}
		var d struct{ Order, RequestedBy, ConfirmedBy string }
		if json.Unmarshal([]byte(cmp.Or(l.Details, "{}")), &d) != nil {
			continue
		}
		if u, err := id.ParseOrder(d.Order); err == nil {
			orders = append(orders, u)
		}
		for _, name := range []string{d.RequestedBy, d.ConfirmedBy} {
			if u, err := id.ParseUser(name); err == nil {
				users = append(users, u)
			}
		}
	}
	people, err := src.DB.Ent.User.Query().Where(user.IDIn(users...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read operators: %w", err)
	}
	for _, u := range people {
		r.names[u.ID.Public()] = u.DisplayName
	}
	rows, err := src.DB.Ent.Order.Query().Where(entorder.IDIn(orders...)).Select(entorder.FieldID, entorder.FieldNumber).
		All(ctx)
	if err != nil {
		return fmt.Errorf("read orders of acts: %w", err)
	}
	for _, o := range rows {
		r.names[o.ID.Public()] = o.Number
	}
	return nil
}
