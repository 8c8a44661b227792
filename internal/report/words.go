package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the zones of readers, also where the machine has none

	"seckill/internal/locale"
)

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

// say returns a text with its values in the reader's language. The English text is the
// key; one without a translation stays English.
func (w words) say(text string, values ...any) string {
	if translated, ok := chinese[text]; ok && w.chinese {
		text = translated
	}
	if len(values) == 0 {
		return text
	}
	return fmt.Sprintf(text, values...)
}

// lasts returns milliseconds as a duration.
func (w words) lasts(ms float64) string {
	text := lasts(ms)
	if !w.chinese {
		return text
	}
	number, unit, found := strings.Cut(text, " ")
	if !found {
		return text
	}
	return number + " " + chinese[unit]
}

// reached returns the time from the opening until the sale was sold out, if it was.
func (w words) reached(ms int64) string {
	if ms < 0 {
		return w.say("not sold out")
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

// chinese are the Chinese texts by the English ones.
var chinese = map[string]string{
	"ms": "毫秒", "s": "秒", "min": "分钟", "h": "小时",
	"not sold out": "未售罄", "yes": "是", "no": "否", "all": "全部", "nothing": "无",
	"sale report":                    "专场报告",
	"Sale report: %s":                "专场报告：%s",
	"%s to %s · %s":                  "%s 至 %s · %s",
	"Times are those of %s.":         "时间按时区 %s 显示。",
	"Everything adds up":             "账目一致",
	"Something does not add up":      "账目不一致",
	"Sold out after":                 "售罄用时",
	"half after %s":                  "售出一半用时 %s",
	"Units sold":                     "已售件数",
	"of %s; %s unpaid, %s left":      "共 %s 件，待付款 %s，剩余 %s",
	"Requests":                       "抢购请求",
	"%s accepted":                    "抢到 %s",
	"Answered within":                "响应时间",
	"99 of 100 within %s":            "99%% 不超过 %s",
	"Net value":                      "净成交额",
	"%s paid orders":                 "已付款订单 %s 笔",
	"Expired units":                  "超时未付件数",
	"%s found another buyer":         "其中再次售出 %s 件",
	"Time from the opening.":         "横轴为开抢后的时间。",
	"Units left during the rush":     "抢购高峰的剩余件数",
	"Units left":                     "剩余件数",
	"Units left over the whole sale": "全场剩余件数",
	"Requests per second":            "每秒请求",
	"Orders written per second":      "每秒写入订单",
	"Calls of placeOrder.":           "下单接口的调用次数。",
	"Rows written by the workers.":   "后台写入的订单数。",
	"How long buyers waited":         "买家等待时间",
	"From the accepted attempt to the stored order: half of all within %s, 99 of 100 within %s, the slowest %s.": "从抢到至订单写入：一半不超过 %s，99%% 不超过 %s，最慢 %s。",
	"half of the orders":                "半数订单",
	"99 of 100":                         "99% 的订单",
	"Refused requests by reason":        "拒绝原因",
	"No attempt was refused.":           "没有被拒绝的请求。",
	"server fault or overload":          "系统故障或过载",
	"Steps of buyers":                   "买家各步骤",
	"Step":                              "步骤",
	"Calls":                             "次数",
	"Passed":                            "通过",
	"Queued":                            "排队",
	"Refused":                           "拒绝",
	"Faults":                            "故障",
	"Captcha":                           "验证码",
	"Admission":                         "资格",
	"Waiting room":                      "排队",
	"Order":                             "下单",
	"Items":                             "商品",
	"Product":                           "商品",
	"Price":                             "秒杀价",
	"On sale":                           "上架",
	"Sold":                              "已售",
	"Sold, share":                       "售出率",
	"Unpaid":                            "待付款",
	"Left":                              "剩余",
	"Sold out at":                       "售罄时间",
	"Orders":                            "订单",
	"Buyers":                            "买家",
	"Written":                           "写入",
	"Paid":                              "已付款",
	"Expired":                           "已超时",
	"Cancelled":                         "已取消",
	"Refunded":                          "已退款",
	"Failed attempts":                   "失败",
	"Units returned":                    "退回件数",
	"What operators and the system did": "操作记录",
	"When":                              "时间", "Who": "操作人", "Act": "操作", "Sale afterwards": "之后状态", "Why": "原因",
	"Compared with an earlier sale": "与往期专场对比",
	"This sale":                     "本专场",
	"Earlier sale":                  "往期专场",
	"Figure":                        "指标",
	"Opened":                        "开抢时间",
	"Accepted":                      "抢到",
	"Accepted attempts":             "抢到次数",
	"Paid orders":                   "已付款订单",
	"Sell-through":                  "售出率",
	"Time to sold out":              "售罄用时",
	"The system":                    "系统",
	"Made %s.":                      "生成于 %s。",
	"“Found another buyer” counts units that were taken beyond those on sale.":                      "“再次售出”指退回后又被抢到的件数。",
	"The sale is not settled: these figures are those of %s and may still change.":                  "专场尚未结清：数据截至 %s，之后可能变化。",
	"Requests are counted since %s; counts of earlier ones, if any, are lost.":                      "请求自 %s 起统计；若此前有请求，其计数已丢失。",
	"Units come back when orders expire, or are cancelled or voided, and when operators add stock.": "订单超时、取消或作废，以及运营增加库存时，件数会回升。",
	"%s units on sale; sold out after: %s.":                                                         "上架 %s 件；售罄用时：%s。",
	"At most %s in a second.":                                                                       "峰值每秒 %s。",
	"%s: available %d + held %d + sold %d is not the total of %d.":                                  "%s：可售 %d + 待付款 %d + 已售 %d 不等于总数 %d。",
	"The ledger put %d units on sale, and there are %d.":                                            "库存流水上架 %d 件，实际为 %d 件。",
	"The ledger holds %d units, and %d are held.":                                                   "库存流水待付款 %d 件，实际为 %d 件。",
	"The ledger sold %d units, and %d are sold.":                                                    "库存流水已售 %d 件，实际为 %d 件。",
	"Unpaid orders have %d units, and %d are held.":                                                 "待付款订单共 %d 件，实际占用 %d 件。",
	"Paid orders have %d units, and %d are sold.":                                                   "已付款订单共 %d 件，实际已售 %d 件。",
	"The gate does not add up, or differs from the record: %d units in all, %d left.":               "库存闸门账目不一致，或与记录不符：共 %d 件，剩余 %d 件。",
	"Draft": "草稿", "In review": "待审核", "Approved": "已通过", "Rejected": "已退回", "Scheduled": "已排期", "Preloaded": "已预热",
	"Live": "进行中", "Paused": "已暂停", "Ended": "已结束",
	"Sold out": "已抢光", "Invalid path": "资格无效", "Rate limited": "过于频繁", "Not started": "尚未开始", "Sale closed": "活动已关闭",
	"Limit reached": "已达限购", "Ordered already": "已有订单", "Too few left": "库存不足", "Idempotency key reused": "幂等键不符",
	"Duplicate request": "重复提交", "Wrong captcha": "验证错误", "No captcha": "未验证", "Invalid input": "输入有误", "Not found": "不存在",
	"No address": "无收货地址", "Contact not verified": "联系方式未验证", "Account too new": "注册时间过短", "Own sale": "员工自办场次", "Wrong state": "状态不符",
	"created the sale": "创建了活动", "changed the draft": "修改了草稿", "submitted it for approval": "提交审核", "approved it": "审核通过",
	"sent it back": "驳回", "took it back from approval": "撤回审核", "discarded the draft": "废弃草稿", "set its times": "设定时间",
	"loaded it": "预热", "opened it": "开始", "paused it": "暂停", "resumed it": "恢复", "ended it": "结束", "cancelled it": "取消",
	"settled it": "结清", "rebuilt its gates": "重建库存闸门", "changed its stock": "调整库存", "voided an order": "作废订单",
	"expired an unpaid order": "结束未付订单", "changed its access controls": "修改准入控制",
	"asked for a change of stock": "申请调整库存", "asked to void an order": "申请作废订单",
	"extended it": "延长了活动", "changed its title or rules": "修改了标题或规则", "asked to extend it": "申请延长活动",
	"put %d units on sale": "上架 %d 件", "took %d units off sale": "下架 %d 件",
	"Title": "标题", "Address": "链接后缀", "Rules": "活动规则", "Opens": "开始", "Ends": "结束", "Preload": "预热时间", "Time to pay": "付款时限",
	"Limit per person, all items": "全场每人限购", "Limit per person": "每人限购", "Hide exact stock": "隐藏具体库存",
	"Delivery address": "需要收货地址", "Verified contact": "需要已验证的联系方式", "Accent colour": "主题色", "Hours of account age": "最短注册时长（小时）", "Captcha required": "需要验证码", "Captcha kinds": "验证码种类",
	"Proof-of-work difficulty": "工作量证明难度", "Permits per available unit": "每件余量的名额", "Admitted buyers per second": "每秒放行人数",
	"Attempts at once": "连续尝试次数", "Attempts per second": "每秒恢复次数", "Item": "商品", "Units": "件数",
	"Requested by": "申请人", "Reason of the request": "申请原因", "Confirmed by": "确认人", "Remark": "备注", "Stock": "库存",
	"Characters": "字符", "Arithmetic": "算式", "Proof of work": "免输入验证", "External check": "第三方验证",
}
