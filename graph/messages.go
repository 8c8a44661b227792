package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"golang.org/x/text/language"

	"seckill/internal/fault"
)

// text is a sentence for the person in the languages of the product.
type text struct{ en, zh string }

// languages are matched against Accept-Language; the first is the default.
var languages = language.NewMatcher([]language.Tag{language.English, language.SimplifiedChinese})

// in returns the sentence in the caller's language.
func (t text) in(ctx context.Context) string {
	if !graphql.HasOperationContext(ctx) {
		return t.en
	}
	header := graphql.GetOperationContext(ctx).Headers.Get("Accept-Language")
	if header == "" {
		return t.en
	}
	wanted, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return t.en
	}
	if _, i, _ := languages.Match(wanted...); i == 1 {
		return t.zh
	}
	return t.en
}

// reasons are the sentences of refusals.
var reasons = map[fault.Reason]text{
	fault.CaptchaInvalid:        {"That answer was not right. Please try the new one.", "验证码不正确，请重新作答。"},
	fault.CaptchaRequired:       {"Please solve the captcha first.", "请先完成验证码。"},
	fault.Conflict:              {"This cannot be done in its present state.", "当前状态下无法执行该操作。"},
	fault.AccountTaken:          {"There is an account with that e-mail address or phone number already.", "该邮箱或手机号已被注册。"},
	fault.IdempotencyInProgress: {"The same request is being worked on.", "相同的请求正在处理中。"},
	fault.IdempotencyMismatch:   {"This idempotency key was used before with other input.", "该幂等键已用于不同的请求内容。"},
	fault.InvalidCredentials:    {"Account or password is wrong.", "账号或密码错误。"},
	fault.InvalidInput:          {"This value does not fit.", "输入内容不符合要求。"},
	fault.Unknown:               {"There is nothing with that id.", "未找到该内容。"},
	fault.OrderExpired:          {"The time to pay is over and the unit went back.", "支付时间已过，库存已退回。"},
	fault.PathInvalid:           {"This right to buy is unknown, used or expired. Please solve a new captcha.", "抢购资格无效或已过期，请重新验证。"},
	fault.PaymentDeclined:       {"The payment was declined.", "支付被拒绝。"},
	fault.PurchaseLimitReached:  {"You have as many as one person may buy.", "您已达到限购数量。"},
	fault.TooManyTries:          {"Too many tries. Please wait a moment.", "操作过于频繁，请稍后再试。"},
	fault.SaleClosed:            {"The sale is not open.", "抢购未开放。"},
	fault.SaleNotStarted:        {"The sale has not begun.", "抢购尚未开始。"},
	fault.SessionInvalid:        {"Please sign in again.", "登录已失效，请重新登录。"},
	fault.SoldOut:               {"Nothing is left at present.", "商品已抢光。"},
}

// message returns the sentence of a reason in the caller's language.
func message(ctx context.Context, why fault.Reason) string {
	if t, ok := reasons[why]; ok {
		return t.in(ctx)
	}
	return reasons[fault.Conflict].in(ctx)
}
