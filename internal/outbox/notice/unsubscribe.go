package notice

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// UnsubscribePath is the path below which links end e-mails.
const UnsubscribePath = "/unsubscribe"

// unsubscribePath returns the path that ends the e-mails of one kind to a user. It works
// without a sign-in, for as long as the signing key that made it is in use.
func (s *Service) unsubscribePath(user id.User, kind Kind) (string, error) {
	sealed, err := s.links.Seal(user.UUID(), []byte(kind))
	if err != nil {
		return "", fmt.Errorf("unsubscribe link: %w", err)
	}
	return UnsubscribePath + "/" + base64.RawURLEncoding.EncodeToString(append(user[:], sealed...)), nil
}

func (s *Service) readLink(token string) (user id.User, kind Kind, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) <= len(user) {
		return user, "", false
	}
	copy(user[:], raw)
	text, _, err := s.links.Open(user.UUID(), raw[len(user):])
	kind = Kind(text)
	return user, kind, err == nil && slices.Contains(Kinds(), kind) && kind.arrivesBy(Mail)
}

// stopMails ends the e-mails of one kind to a user.
func (s *Service) stopMails(ctx context.Context, user id.User, kind Kind) error {
	set, err := s.Settings(ctx, user)
	if err != nil {
		return err
	}
	for _, c := range set.Choices {
		if c.Kind == kind {
			c.Mail = false
			return s.Choose(ctx, user, []Choice{c})
		}
	}
	return nil
}

// kindNames names kinds on the page, in both languages.
var kindNames = map[Kind][2]string{
	OrderPlaced:     {"new orders", "下单通知"},
	PaymentDeadline: {"payment deadlines", "付款提醒"},
	WaitlistOffer:   {"waitlist offers", "候补到货通知"},
	DrawResult:      {"results of draws", "抽签结果通知"},
	Refund:          {"refunds", "退款通知"},
	ChargeFailed:    {"declined cards of draws", "抽签扣款失败通知"},
	OrderReview:     {"checks of orders", "订单核实通知"},
	SaleReminder:    {"openings of sales", "开抢提醒"},
}

// page asks before it ends the e-mails, because programs that check links open them too.
var page = template.Must(template.New("").Parse(`<!doctype html>
<html lang="{{.Language}}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>{{.Title}}</title></head>
<body>
<main>
<h1>{{.Title}}</h1>
{{with .Button}}<form method="post"><button>{{.}}</button></form>{{end}}
<p><a href="/account#notices">{{.Account}}</a></p>
</main>
</body></html>
`))

type pageTexts struct{ Language, Title, Button, Account string }

func textsOf(r *http.Request, state int, kind Kind) pageTexts {
	name := kindNames[kind]
	if strings.HasPrefix(strings.ToLower(r.Header.Get("Accept-Language")), "zh") {
		title := [...]string{"不再接收邮件：" + name[1] + "？", "已退订：" + name[1] + "。", "该链接无效。"}[state]
		return pageTexts{"zh-CN", title, [...]string{"退订", "", ""}[state], "管理通知设置"}
	}
	title := [...]string{"Stop e-mails about " + name[0] + "?", "You get no more e-mails about " + name[0] + ".",
		"This link does not work."}[state]
	return pageTexts{"en", title, [...]string{"Stop", "", ""}[state], "Choose your notices"}
}

// States of the page.
const (
	asks = iota
	done
	invalid
)

// ServeHTTP serves the links that end e-mails: a page that asks, and the request of the
// page or of a mail program (RFC 8058).
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, kind, ok := s.readLink(strings.TrimPrefix(r.URL.Path, UnsubscribePath+"/"))
	state, code := asks, http.StatusOK
	switch {
	case !ok:
		state, code = invalid, http.StatusNotFound
	case r.Method == http.MethodPost:
		state = done
		if err := s.stopMails(r.Context(), user, kind); err != nil {
			if _, known := errors.AsType[*fault.Error](err); !known {
				s.cfg.Log.ErrorContext(r.Context(), "stop e-mails", slog.Any("error", err))
			}
			http.Error(w, "Try again later.", http.StatusInternalServerError)
			return
		}
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(code)
	_ = page.Execute(w, textsOf(r, state, kind)) // the client may be gone
}
