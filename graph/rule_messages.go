package graph

import (
	"context"
	"strconv"

	"seckill/internal/platform/fault"
)

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
