package graph

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"golang.org/x/text/language"

	"seckill/internal/buy/order"
	"seckill/internal/identity/account"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/locale"
)

// text is a message for users in the languages of the product.
type text struct{ en, zh string }

// with returns the message in the caller's language, formatted with values.
func (t text) with(ctx context.Context, values ...any) string {
	return fmt.Sprintf(t.in(ctx), values...)
}

// languages are matched against Accept-Language; the first is the default.
var languages = language.NewMatcher([]language.Tag{language.English, language.SimplifiedChinese})

// in returns the message in the caller's language.
func (t text) in(ctx context.Context) string {
	if languageOf(ctx) == locale.Chinese {
		return t.zh
	}
	return t.en
}

// languageOf returns the caller's language.
func languageOf(ctx context.Context) locale.Language {
	if !graphql.HasOperationContext(ctx) {
		return locale.English
	}
	header := graphql.GetOperationContext(ctx).Headers.Get("Accept-Language")
	if header == "" {
		return locale.English
	}
	wanted, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return locale.English
	}
	if _, i, _ := languages.Match(wanted...); i == 1 {
		return locale.Chinese
	}
	return locale.English
}

var reasons = map[fault.Reason]text{
	fault.AccountTooNew:     {"Your account is too new for this sale.", "您的账号注册时间过短，无法参加本场活动。"},
	fault.ContactUnverified: {"Please verify your e-mail address or phone number first.", "请先验证邮箱或手机号。"},
	fault.AddressRequired:   {"Please add your delivery address first.", "请先添加收货地址。"},
	fault.AlreadyOrdered: {"You already have an order for this item. Each buyer may have one at a time.",
		"您已有该商品的订单，每人同时只能有一个。"},
	fault.CaptchaInvalid:        {"The captcha answer is wrong. Please try the new one.", "验证码不正确，请重新作答。"},
	fault.CaptchaRequired:       {"Please solve the captcha first.", "请先完成验证码。"},
	fault.CodeExpired:           {"This code could be redeemed until a time that has passed.", "该邀请码已过期。"},
	fault.CodeInvalid:           {"This code is not valid. Please check it.", "邀请码无效，请核对。"},
	fault.CodeOtherSale:         {"This code is for another sale.", "该邀请码适用于其他场次。"},
	fault.CodeRevoked:           {"This code was revoked by the shop.", "该邀请码已被店家作废。"},
	fault.CodeUsed:              {"This code has been used.", "该邀请码已被使用。"},
	fault.Conflict:              {"This cannot be done in its present state.", "当前状态下无法执行该操作。"},
	fault.AccountTaken:          {"There is an account with that e-mail address or phone number already.", "该邮箱或手机号已被注册。"},
	fault.IdempotencyInProgress: {"The same request is being worked on.", "相同的请求正在处理中。"},
	fault.IdempotencyMismatch:   {"This idempotency key was used before with other input.", "该幂等键已用于不同的请求内容。"},
	fault.InvalidCredentials:    {"Account or password is wrong.", "账号或密码错误。"},
	fault.InvalidInput:          {"This value is not valid.", "输入内容不符合要求。"},
	fault.LinkInvalid: {"This link was used before or has expired. Please request a new one.",
		"链接已使用或已失效，请重新获取。"},
	fault.MailUnavailable:     {"This shop sends no e-mails. Ask the shop for help.", "本店暂不支持发送邮件，请联系店家。"},
	fault.Unknown:             {"There is nothing with that id.", "未找到该内容。"},
	fault.DrawSale:            {"The units of this sale are drawn: enter the draw.", "本场以抽签发售，请报名抽签。"},
	fault.EntriesClosed:       {"The entries of this draw are closed.", "本场抽签报名已截止。"},
	fault.NoAccess:            {"You have no access to this sale.", "您没有本场抢购的资格。"},
	fault.OneTimeCodeInvalid:  {"This code is wrong or was used before.", "验证码错误或已被使用。"},
	fault.OneTimeCodeRequired: {"Please enter the code of your authenticator app.", "请输入身份验证器中的验证码。"},
	fault.OrderExpired:        {"The payment window is over, and the order has expired.", "支付超时，订单已关闭。"},
	fault.OwnSale: {"You prepared, approved or changed this sale, so you cannot buy in it.",
		"您参与了本场抢购的筹备、审批或调整，不能参与购买。"},
	fault.PathInvalid: {"The path token is unknown, used or expired. Please solve a new captcha.",
		"抢购资格无效或已过期，请重新验证。"},
	fault.PaymentDeclined:      {"The payment was declined.", "支付被拒绝。"},
	fault.PurchaseLimitReached: {"This exceeds the purchase limit.", "超出限购数量。"},
	fault.TooManyTries:         {"Too many attempts. Please wait a moment.", "操作过于频繁，请稍后再试。"},
	fault.SaleClosed:           {"The sale is over.", "抢购已结束。"},
	fault.SaleNotStarted:       {"The sale has not started.", "抢购尚未开始。"},
	fault.SalePaused:           {"The sale is paused. Please wait.", "抢购已暂停，请稍候。"},
	fault.SessionInvalid:       {"Please sign in again.", "登录已失效，请重新登录。"},
	fault.SoldOut:              {"Sold out at present.", "商品已抢光。"},
	fault.UnderReview:          {"The shop checks this order before you can pay.", "商家正在核实该订单，核实后即可付款。"},
	fault.TooFewLeft:           {"Fewer units are left than you want.", "剩余数量不足。"},
}

// faults are the messages of faults for readers of Chinese. In English a fault has a
// message of its own.
var faults = map[fault.Code]string{
	fault.Unauthenticated: "请先登录。",
	fault.Forbidden:       "您没有执行该操作的权限。",
	fault.BadInput:        "请求参数有误：",
	fault.NotFound:        "未找到该内容。",
	fault.RateLimited:     "操作过于频繁，请稍后再试。",
	fault.Overloaded:      "当前访问人数过多，请稍后再试。",
	fault.Unavailable:     "服务暂时不可用，请稍后再试。",
	fault.Timeout:         "处理超时，请稍后查看结果。",
	fault.Internal:        "系统出现错误，请稍后再试。",
}

// faultMessage returns the message of a fault in the caller's language.
func faultMessage(ctx context.Context, code fault.Code, english string) string {
	t, known := faults[code]
	switch {
	case !known || languageOf(ctx) != locale.Chinese:
		return english
	case code == fault.BadInput: // for developers: it names the argument
		return t + english
	}
	return t
}

// message returns the message of a reason in the caller's language.
func message(ctx context.Context, why fault.Reason) string {
	if t, ok := reasons[why]; ok {
		return t.in(ctx)
	}
	return reasons[fault.Conflict].in(ctx)
}

// Messages of refused operator actions where the reason alone is ambiguous.
var (
	needsAnother    = text{"Another operator or administrator must decide this.", "需由其他人员审批。"}
	notSecondPerson = map[account.Dependence]text{
		account.Promoted: {
			"You and the requester do not count as two persons: one of you gave the other the role. Another operator or administrator must decide this.",
			"您与提交人之间存在授权关系，不能互相审批，请由其他人员审批。",
		},
		account.NewAccount: {
			"Your account is younger than a day and got its role from a colleague. Another operator or administrator must decide this.",
			"您的账号注册未满一天，且角色由同事授予，暂不能审批，请由其他人员审批。",
		},
		account.SameContact: {
			"You and the requester have the same mailbox or phone number. Another operator or administrator must decide this.",
			"您与提交人使用同一邮箱或手机号，请由其他人员审批。",
		},
		account.NoSecondFactor: {
			"Set up one-time codes on your account page first: you got your role from a colleague.",
			"您的角色由同事授予，请先在账号页启用动态验证码，再进行审批。",
		},
	}
	buyInstead = text{"Units are on sale now: buy instead of waiting.", "目前有货，请直接购买，无需候补。"}
	noTexts    = text{
		"This shop cannot send messages to phone numbers. Ask the shop for help, or use an e-mail address.",
		"本店暂不支持向手机号发送消息，请联系店家，或改用邮箱。",
	}
	fewerFree = text{"Fewer units are free than that: the others are in orders.", "可下架数量不足，其余已被订单占用。"}
)

// expiredWait is the message of a wait after expired reservations.
var expiredWait = text{
	"Two orders were not paid in time, or turns were not used. You can buy again in %d min.",
	"您有两次未按时付款或未使用抢购资格，请在 %d 分钟后再试。",
}

// turnPassed is the text of PATH_INVALID at the stage of the waiting room.
var turnPassed = text{"Your turn came, and passed because it was not used in time.", "排队已轮到您，但您未在规定时间内下单，本次购买机会已失效。"}

var saleCancelled = text{"The sale was cancelled.", "抢购已取消。"}

// Messages of purchase limits.
var (
	itemLimit    = text{"One buyer may have at most %d of this item.", "该商品每人限购 %d 件。"}
	saleLimit    = text{"One buyer may have at most %d in this sale; you may buy %d more.", "本场抢购每人限购 %d 件，您还可购买 %d 件。"}
	contactLimit = text{"Accounts with one contact may have at most %d together; they have them.",
		"同一邮箱或手机号的账号合计限购 %d 件，已达到限购数量。"}
	addressLimit = text{"Orders to one delivery address may have at most %d together; they have them.",
		"同一收货地址合计限购 %d 件，已达到限购数量。"}
	saleLimitUsed = text{"One buyer may have at most %d in this sale, and you have them.", "本场抢购每人限购 %d 件，您已达到限购数量。"}
)

// Messages for the possible meanings of sold out.
var (
	goneForGood   = text{"Sold out: every unit is paid for.", "已售罄：全部商品均已付款。"}
	soldOutForNow = text{"Sold out for now. Units may come back: join the waitlist.", "暂时售罄，可能有库存释放，可加入候补。"}
	soldOutUntil  = text{
		"Sold out for now. Units not paid for yet: %d; the first may come back at %s.",
		"暂时售罄。尚有 %d 件待付款，最早可能于 %s 释放。",
	}
)

// steps are the messages of an order's log.
var steps = map[order.Code]text{
	order.CodePaidLate:        {"Paid after the deadline; a unit was still there.", "超时后支付成功，仍有库存。"},
	order.CodeCancelled:       {"The units were released.", "库存已释放。"},
	order.CodeExpired:         {"Not paid in time; the units went back.", "超时未支付，库存已退回。"},
	order.CodeVoided:          {"Ended by the shop.", "订单已被商家关闭。"},
	order.CodeRefundAsked:     {"A refund was asked for.", "已申请退款。"},
	order.CodeRefundApproved:  {"The refund was approved.", "退款已批准。"},
	order.CodeRefundRejected:  {"The refund was refused.", "退款被拒绝。"},
	order.CodeRefunded:        {"The money went back.", "款项已退回。"},
	order.CodeRefundFailed:    {"The refund did not arrive and will be sent again.", "退款未成功，将重新退款。"},
	order.CodePaymentDeclined: {"A payment was declined.", "支付被拒绝。"},
	order.CodeLimit:           {"The card or account that paid has used up the limit of this sale. The order is cancelled, and the money goes back.", "该支付账户或银行卡在本场活动中已达限购数量，订单已取消，款项将退回。"},
	order.CodePaymentReturned: {"A payment came too late, or twice; its money goes back.", "支付过晚或重复，款项将退回。"},
	order.CodeRefundSettled:   {"The money was given back in another way.", "退款已通过其他方式完成。"},
	order.CodeRecipient:       {"The delivery address was corrected.", "收货地址已更正。"},
	order.CodePaymentHeld:     {"A payment does not match and is being looked at.", "支付金额不符，正在核实。"},
	order.CodePaymentDisputed: {"The payment is disputed at the bank.", "持卡人已向银行提出拒付。"},
	order.CodeDisputeWon:      {"The dispute was decided for the shop.", "拒付争议已结束，款项归商家。"},
	order.CodePreparing:       {"The shop packs the goods.", "商家正在备货。"},
	order.CodeShipped:         {"The goods are on their way.", "商品已发货。"},
	order.CodeDelivered:       {"The goods have arrived.", "商品已签收。"},
	order.CodeReturned:        {"The goods came back to the shop.", "商品已退回商家。"},
	order.CodeHeld:            {"The shop checks the order before it can be paid.", "商家正在核实订单，核实后即可付款。"},
	order.CodeReviewAnswered:  {"The buyer answered.", "买家已回复。"},
	order.CodeReviewReleased:  {"The check is over; the order can be paid.", "核实完成，可以付款。"},
	order.CodeDisputeLost: {"The dispute was decided for the buyer; the bank took the money back.",
		"拒付争议已结束，银行已将款项退还持卡人。"},
}

// unitSteps are the messages of an order's log about some units of several.
var unitSteps = map[order.Code]text{
	order.CodeVoided:         {"The shop refunds %s.", "商家已发起退款：%s。"},
	order.CodeRefundAsked:    {"A refund of %s was asked for.", "已申请退款：%s。"},
	order.CodeRefundApproved: {"The refund of %s was approved.", "退款已批准：%s。"},
	order.CodeRefundRejected: {"The refund of %s was refused.", "退款被拒绝：%s。"},
	order.CodeRefunded:       {"The money of %s went back.", "款项已退回：%s。"},
	order.CodeRefundFailed:   {"The refund of %s did not arrive and will be sent again.", "退款未成功，将重新退款：%s。"},
	order.CodeRefundSettled:  {"The money of %s was given back in another way.", "退款已通过其他方式完成：%s。"},
}

// Shares of the units of an order.
var (
	someUnits = text{"%d of %d units", "%d 件（共 %d 件）"}
	allUnits  = text{"all %d units", "全部 %d 件"}
)

// step returns the message of a log entry. It names the units where the order has several.
func step(ctx context.Context, o *order.Order, e order.Entry) string {
	about, ok := unitSteps[e.Code]
	switch {
	case !ok || e.Units == 0 || o.Quantity == 1:
		return steps[e.Code].in(ctx)
	case e.Units < o.Quantity:
		return fmt.Sprintf(about.in(ctx), fmt.Sprintf(someUnits.in(ctx), e.Units, o.Quantity))
	}
	return fmt.Sprintf(about.in(ctx), fmt.Sprintf(allUnits.in(ctx), e.Units))
}

// remark returns the text of a log entry: the event and the operator's note.
func remark(ctx context.Context, o *order.Order, e order.Entry) string {
	line := step(ctx, o, e)
	if e.Note != "" {
		line = strings.TrimSpace(line + " " + e.Note)
	}
	return line
}

// optionAway says why a provider cannot be chosen.
var optionAway = text{"Not available at the moment. Please try again shortly.", "暂时不可用，请稍后再试。"}

// declineTexts say why a payment was declined, and what helps.
var declineTexts = map[payment.Decline]text{
	payment.CardDeclined: {"The bank declined the payment. Please try another card, or ask your bank.",
		"银行拒绝了这笔支付，请换卡重试或咨询发卡行。"},
	payment.InsufficientFunds: {"There is not enough money in the account. Please pay another way.", "账户余额不足，请更换支付方式。"},
	payment.CardExpired:       {"The card has expired. Please use another one.", "银行卡已过期，请换一张卡。"},
	payment.WrongDetails: {"The number, date or code of the card is wrong. Please check them.",
		"卡号、有效期或安全码有误，请核对后重试。"},
	payment.AuthenticationFailed: {"The bank could not confirm that it is you. Please try again.", "身份验证未通过，请重试。"},
	payment.LimitExceeded: {"The payment is above the limit of the card. Please pay another way.",
		"超出银行卡限额，请更换支付方式。"},
	payment.NotSupported:    {"The card cannot be used for this purchase. Please use another one.", "此卡不支持该笔支付，请换一张卡。"},
	payment.ProcessingError: {"The bank could not be reached. Please try again.", "银行系统繁忙，请重试。"},
	payment.OtherDecline:    {"The payment was declined. Please try again or pay another way.", "支付未成功，请重试或更换支付方式。"},
}

// brokenRule returns the message of a broken rule: the field, the rule and its bound.
func brokenRule(ctx context.Context, bad fault.BadField) string {
	return fieldLabel(ctx, bad.At) + colon.in(ctx) + ruleText(ctx, bad.Rule)
}

var (
	colon  = text{": ", "："}
	itemOf = text{"%s of item %d", "第 %[2]d 项商品的%[1]s"}
)

// fieldLabel names the field at a path: "Purchase limit of item 2".
func fieldLabel(ctx context.Context, path []string) string {
	item, name := 0, ""
	for _, part := range path {
		if n, err := strconv.Atoi(part); err == nil {
			item = n + 1
		} else {
			name = part
		}
	}
	label := name
	if t, ok := fieldNames[name]; ok {
		label = t.in(ctx)
	}
	if item > 0 {
		return itemOf.with(ctx, label, item)
	}
	return label
}

// fieldNames are the names of input fields in words; others are named as in the schema.
var fieldNames = map[string]text{
	"accent":               {"Accent colour", "主题色"},
	"account":              {"Account", "账号"},
	"amount":               {"Amount", "金额"},
	"carrier":              {"Carrier", "物流公司"},
	"city":                 {"City", "城市"},
	"country":              {"Country or region", "国家/地区"},
	"currencyCode":         {"Currency", "币种"},
	"description":          {"Description", "描述"},
	"email":                {"E-mail address", "邮箱"},
	"displayName":          {"Name", "昵称"},
	"endsAt":               {"End", "结束时间"},
	"goodsId":              {"Product", "商品"},
	"imageAlt":             {"Alternative text", "替代文本"},
	"afterSeconds":         {"Seconds after the start", "开始后秒数"},
	"access":               {"Who may buy", "购买资格"},
	"kind":                 {"Whom it fits", "适用对象"},
	"source":               {"List or claim", "名单或属性"},
	"list":                 {"List", "名单"},
	"rows":                 {"Rows", "行"},
	"imageUrl":             {"Picture", "图片"},
	"items":                {"Items", "商品"},
	"listPrice":            {"List price", "原价"},
	"name":                 {"Name", "名称"},
	"newPassword":          {"New password", "新密码"},
	"note":                 {"Note", "备注"},
	"optionId":             {"Payment option", "支付方式"},
	"password":             {"Password", "密码"},
	"paymentWindowSeconds": {"Seconds to pay", "支付时限（秒）"},
	"phone":                {"Phone number", "手机号"},
	"postalCode":           {"Postal code", "邮政编码"},
	"region":               {"Province or state", "省份"},
	"street":               {"Street and number", "详细地址"},
	"trackingUrl":          {"Tracking link", "物流链接"},
	"preheatAt":            {"Preload", "预热时间"},
	"price":                {"Price", "价格"},
	"purchaseLimit":        {"Purchase limit", "限购数量"},
	"quantity":             {"Quantity", "数量"},
	"rules":                {"Rules", "规则"},
	"scopes":               {"Rights", "权限"},
	"saleId":               {"Sale", "活动"},
	"slug":                 {"Slug", "网址标识"},
	"startsAt":             {"Start", "开始时间"},
	"stock":                {"Stock", "库存"},
	"title":                {"Title", "标题"},
	"units":                {"Units", "数量"},
	"until":                {"End", "结束时间"},
}

// bounds are the texts of rules with a bound by their codes.
var bounds = map[string]text{
	fault.MinCode:       {"at least %s.", "不能小于 %s。"},
	fault.MaxCode:       {"at most %s.", "不能大于 %s。"},
	fault.MinLengthCode: {"at least %s characters.", "至少 %s 个字符。"},
	fault.MaxLengthCode: {"at most %s characters.", "最多 %s 个字符。"},
	fault.PayableCode:   {"no payment provider takes an order of %s.", "订单无法支付：%s。"},
	fault.ContrastCode: {"its contrast with white is %s:1, and 4.5:1 is the least. Choose a darker colour.",
		"与白色的对比度仅为 %s:1，至少需要 4.5:1，请选择更深的颜色。"},
}

// rulesInWords are the texts of other rules. A rule without a text is shown as it is.
var rulesInWords = map[fault.Rule]text{
	fault.NotEmpty:        {"must not be empty.", "不能为空。"},
	fault.AfterStart:      {"must be after the start.", "须晚于开始时间。"},
	fault.AfterSince:      {"must be after the beginning.", "须晚于起始时间。"},
	fault.AScope:          {"choose at least one right.", "请至少选择一项权限。"},
	fault.BeforeStart:     {"must not be after the start.", "不能晚于开始时间。"},
	fault.NearStart:       {"must be at most 8 hours before the start.", "不能早于开始前 8 小时。"},
	fault.InTheFuture:     {"must be in the future.", "须晚于当前时间。"},
	fault.EachGoodsOnce:   {"the product is listed twice.", "商品重复。"},
	fault.MoreThanNothing: {"must be more than zero.", "须大于零。"},
	fault.EmailFormat:     {"must be an e-mail address.", "须为邮箱地址。"},
	fault.DeliverableEmail: {"this shop's mail server cannot send to such an address; use one in Latin letters.",
		"本店的邮件服务器无法发送到该地址，请使用英文字母的邮箱。"},
	fault.SlugFormat:          {"only a–z, 0–9 and single hyphens, at most 64 characters.", "仅限小写字母、数字和单个连字符，最多 64 个字符。"},
	fault.HTTPSAddress:        {"must be an address that begins with https://.", "须为 https:// 开头的网址。"},
	fault.ColorFormat:         {"must be # and six hexadecimal digits, such as #2b34d9.", "须为 # 加六位十六进制数，如 #2b34d9。"},
	fault.URIFormat:           {"must be an address.", "须为有效网址。"},
	fault.NoControlCharacters: {"must not contain control characters.", "不能包含控制字符。"},
	fault.NoOverrides:         {"must not contain characters that reverse the text after them.", "不能包含反转文字方向的控制字符。"},
	fault.NotZero:             {"must not be zero.", "不能为零。"},
	fault.NotCommonPassword:   {"is a common password.", "密码过于常见。"},
	fault.NotTheAccount:       {"must differ from the account.", "不能与账号相同。"},
	fault.AllowedOrigin: {"must be an address of this shop, or of an origin that its settings allow.",
		"须为本店或设置中允许的来源的网址。"},
	fault.NotOffered: {"this way to pay does not take the order. Please choose another one.",
		"该支付方式不支持此订单，请选择其他方式。"},
	fault.NoAuthorizer: {"cards at entry need Stripe, which is not set up here.", "报名时预授权需要 Stripe，本店尚未配置。"},
	fault.NeedsAddress: {"a sale that limits by address requires one.", "按收货地址限购的活动须要求收货地址。"},
	fault.OneGoodsID:   {"name the product by its id here or by its id in your system, not by both.", "须用商品 ID 或外部系统 ID 之一指定商品，不能同时使用。"},
	fault.OneCurrency:  {"all items of a sale have one currency.", "同一活动的商品须使用同一币种。"},
	fault.KnownCurrency: {"must be an amount of a known currency, without more decimals than it has.",
		"须为有效币种的金额，小数位数不能超过该币种。"},
	fault.StartInTheFuture: {"its start has passed; set another first.", "开始时间已过，请先修改。"},
	fault.CaptchaService: {
		"the sale asks for captchas of an outside service (EXTERNAL), and the server has none: set one in [captcha], or choose other kinds.",
		"活动要求使用外部验证服务（EXTERNAL），但服务器未配置，请在 [captcha] 中配置或改选其他类型。",
	},
	fault.PhoneNumber:  {"must be a phone number.", "须为电话号码。"},
	fault.EmailOrPhone: {"must be an e-mail address or a phone number.", "须为邮箱地址或手机号。"},
	fault.EmailOrPhoneWithCountry: {
		"must be an e-mail address, or a phone number with country code.", "须为邮箱地址，或带国家代码的手机号。",
	},
	fault.PictureAddress: {
		"must be an address of this server or of https.", "须为本站或 https 地址。",
	},
}

func ruleText(ctx context.Context, rule fault.Rule) string {
	if t, ok := rulesInWords[rule]; ok {
		return t.in(ctx)
	}
	if t, ok := bounds[rule.Code]; ok && rule.Bound != "" {
		return t.with(ctx, rule.Bound)
	}
	if rule.Code == fault.PatternCode {
		return wrongForm.in(ctx)
	}
	return rule.String() + "."
}

var wrongForm = text{"this is not its form.", "格式不正确。"}
