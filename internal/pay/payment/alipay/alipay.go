// Package alipay takes payments at Alipay: a QR code for desktops (precreate), and a page
// that opens the app for phones (wap).
//
// It owns the protocol of Alipay, and does not own payments, whose states and money belong to package
// payment.
//
// Alipay knows a trade only once the buyer has scanned the code or opened the page. Until
// then it can neither be queried nor closed; it ends by itself at the payment deadline.
package alipay

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	api "github.com/smartwalle/alipay/v3"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// Names of the providers.
const (
	Name      = "alipay"     // QR code
	PhoneName = "alipay-wap" // page for phones
)

const (
	// callTimeout bounds one call, below the timeout of package payment.
	callTimeout = 4 * time.Second
	// gateway is the address of the production gateway.
	gateway = "https://openapi.alipay.com/gateway.do"
	// timeFormat is the format of all times, which are those of Beijing.
	timeFormat = "2006-01-02 15:04:05"
	// notExist is the sub code for a trade that no buyer has opened.
	notExist = "ACQ.TRADE_NOT_EXIST"
	// cny is the only currency of these products.
	cny = "CNY"
)

var beijing = time.FixedZone("Beijing", 8*60*60)

// least and most are what Alipay takes: 0.01 to 100,000,000 yuan.
var (
	least = map[string]int64{cny: 1}
	most  = map[string]int64{cny: 100_000_000_00}
)

// Config holds the dependencies of the providers.
type Config struct {
	AppID     string
	Key       string // the application's private key, PEM or its base64 alone
	AlipayKey string // Alipay's public key, which is not the application's
	APIURL    string // "" = the production gateway
	ShopURL   string // where the shop is reached, without a trailing slash
	Client    *http.Client
	Clock     clock.Clock
}

// Provider implements payment.Provider. It is safe for concurrent use.
type Provider struct {
	client *api.Client
	files  *http.Client // for bills, which take longer than calls: their context bounds them
	appID  string
	shop   string
	phone  bool
	clock  clock.Clock
}

// New returns the provider of QR codes, and that of pages for phones. It calls nothing.
func New(cfg Config) (qr, phone *Provider, err error) {
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: callTimeout}
	}
	cfg.Clock = clock.OrSystem(cfg.Clock)
	// Not "production" for the library: it would then download the certificates that
	// call-backs name, which anyone can send.
	client, err := api.New(cfg.AppID, cfg.Key, false, api.WithHTTPClient(cfg.Client),
		api.WithSandboxGateway(cmp.Or(cfg.APIURL, gateway)), api.WithTimeLocation(beijing))
	if err != nil {
		return nil, nil, fmt.Errorf("key of the application: %w", err)
	}
	if err := client.LoadAliPayPublicKey(cfg.AlipayKey); err != nil {
		return nil, nil, fmt.Errorf("public key of Alipay: %w", err)
	}
	files := *cfg.Client
	files.Timeout = 0
	qr = &Provider{client: client, files: &files, appID: cfg.AppID, shop: cfg.ShopURL, clock: cfg.Clock}
	other := *qr
	other.phone = true
	return qr, &other, nil
}

// Name returns "alipay", or "alipay-wap" for phones.
func (p *Provider) Name() string {
	if p.phone {
		return PhoneName
	}
	return Name
}

// Terms returns what buyers see. Alipay repeats a notice that is not answered "success".
func (p *Provider) Terms() payment.Terms {
	terms := payment.Terms{
		Label: payment.Label{English: "Alipay", Chinese: "支付宝"}, Kind: payment.QR, Device: payment.Desktop, Icon: "wallet",
		Least: least, Most: most,
		Reply: payment.Reply{ContentType: "text/plain", Body: "success"},
	}
	if p.phone {
		terms.Kind, terms.Device = payment.Redirect, payment.Phone
	}
	return terms
}

func number[T ~[16]byte](id T) string { return hex.EncodeToString(id[:]) }

func yuan(minor int64) string { return money.Amount{Minor: minor, Currency: cny}.Decimal() }

// maxSubject bounds the subject of a trade, in bytes.
const maxSubject = 256

// subject returns the description for the buyer without the characters that Alipay refuses in it.
func subject(in payment.CreateInput) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("/=&", r) {
			return ' '
		}
		return r
	}, in.Description(maxSubject))
}

// Create opens a payment: a code that Alipay returns, or a signed link, which needs no
// call.
func (p *Provider) Create(ctx context.Context, in payment.CreateInput) (payment.Created, error) {
	trade := api.Trade{
		Subject: subject(in), OutTradeNo: number(in.Payment), TotalAmount: yuan(in.AmountMinor),
		NotifyURL: p.shop + "/webhooks/payments/" + p.Name(), TimeExpire: in.ExpiresAt.In(beijing).Format(timeFormat),
	}
	if p.phone {
		trade.ProductCode = "QUICK_WAP_WAY"
		trade.ReturnURL = in.ReturnURL
		page, err := p.client.TradeWapPay(api.TradeWapPay{Trade: trade, QuitURL: trade.ReturnURL,
			TimeExpire: trade.TimeExpire})
		if err != nil {
			return payment.Created{}, fmt.Errorf("sign page: %w", err)
		}
		return payment.Created{Ref: trade.OutTradeNo, RedirectURL: page.String()}, nil
	}
	trade.ProductCode = "FACE_TO_FACE_PAYMENT"
	made, err := p.client.TradePreCreate(ctx, api.TradePreCreate{Trade: trade})
	if err := failure("precreate", err, made, func() api.Error { return made.Error }); err != nil {
		return payment.Created{}, err
	}
	return payment.Created{Ref: trade.OutTradeNo, QRCode: made.QRCode}, nil
}

var phases = map[api.TradeStatus]payment.Phase{
	api.TradeStatusWaitBuyerPay: payment.PhaseOpen, api.TradeStatusClosed: payment.PhaseClosed,
	api.TradeStatusSuccess: payment.PhasePaid, api.TradeStatusFinished: payment.PhasePaid,
}

// Query returns the state of a trade. While no buyer has opened it, it is open until its
// deadline, and closed after it.
func (p *Provider) Query(ctx context.Context, known payment.Known) (payment.State, error) {
	t, err := p.client.TradeQuery(ctx, api.TradeQuery{OutTradeNo: number(known.Payment)})
	if err == nil && t.SubCode == notExist {
		return p.unopened(known), nil
	}
	if err := failure("query", err, t, func() api.Error { return t.Error }); err != nil {
		return payment.State{}, err
	}
	state := payment.State{Phase: cmp.Or(phases[t.TradeStatus], payment.PhaseOpen), Ref: t.OutTradeNo,
		Transaction: t.TradeNo, Currency: cny, Payer: cmp.Or(t.BuyerUserId, t.BuyerOpenId), At: p.clock.Now()}
	whole := t.TradeStatus == api.TradeStatusClosed && known.Transaction != "" && known.Transaction == t.TradeNo
	if whole { // a trade that was paid is closed once all of it was refunded
		state.Phase = payment.PhasePaid
	}
	if state.AmountMinor, err = fen(t.TotalAmount); err != nil && state.Phase == payment.PhasePaid {
		return payment.State{}, err
	}
	if whole {
		state.Refunded = state.AmountMinor
	}
	if at, err := time.ParseInLocation(timeFormat, t.SendPayDate, beijing); err == nil {
		state.At = at
	}
	return state, nil
}

func (p *Provider) unopened(known payment.Known) payment.State {
	s := payment.State{Phase: payment.PhaseOpen, Ref: known.Ref, At: p.clock.Now()}
	if known.Ref == "" {
		s.Phase = payment.PhaseUnknown
	}
	if !s.At.Before(known.ExpiresAt) {
		s.Phase = payment.PhaseClosed
	}
	return s
}

// Close closes a trade, unless it was paid. One that no buyer has opened counts as closed:
// a code that is scanned afterwards can be paid until the deadline, and that money is
// settled like any late payment.
func (p *Provider) Close(ctx context.Context, known payment.Known) (payment.State, error) {
	closed := payment.State{Phase: payment.PhaseClosed, Ref: known.Ref, At: p.clock.Now()}
	t, err := p.client.TradeClose(ctx, api.TradeClose{OutTradeNo: number(known.Payment)})
	if err == nil && t.SubCode == notExist {
		return closed, nil
	}
	if err == nil && t.SubCode == "ACQ.TRADE_STATUS_ERROR" {
		return p.Query(ctx, known) // paid or closed already
	}
	if err := failure("close", err, t, func() api.Error { return t.Error }); err != nil {
		return payment.State{}, err
	}
	return closed, nil
}

// Refund refunds money of a trade, once for each refund id.
func (p *Provider) Refund(ctx context.Context, in payment.RefundInput) error {
	transaction := cmp.Or(in.Transaction, in.Paid.Transaction)
	if transaction == "" {
		return fmt.Errorf("refund %s: the payment has no transaction", in.Refund)
	}
	r, err := p.client.TradeRefund(ctx, api.TradeRefund{
		TradeNo: transaction, RefundAmount: yuan(in.AmountMinor), RefundReason: cmp.Or(in.Reason, "refund"),
		OutRequestNo: number(in.Refund),
	})
	return failure("refund", err, r, func() api.Error { return r.Error })
}

// Callback verifies and decodes a notice. Notices of other applications are forged ones.
func (p *Provider) Callback(_ http.Header, body []byte) (payment.Event, error) {
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return payment.Event{}, fmt.Errorf("notice: %w", err)
	}
	n, err := p.client.DecodeNotification(values)
	switch {
	case err != nil:
		return payment.Event{}, fmt.Errorf("%w: %w", payment.ErrForged, err)
	case n.AppId != p.appID:
		return payment.Event{}, fmt.Errorf("%w: it is for another application", payment.ErrForged)
	}
	ours, err := id.ParseUUID[id.Payment](n.OutTradeNo)
	kind, ok := map[payment.Phase]payment.EventKind{
		payment.PhasePaid: payment.EventSucceeded, payment.PhaseClosed: payment.EventClosed,
	}[phases[n.TradeStatus]]
	if !ok || err != nil {
		return payment.Event{}, nil // not a payment of ours, or nothing has changed
	}
	e := payment.Event{ID: n.NotifyId, Payment: ours, Kind: kind, Ref: n.OutTradeNo, Transaction: n.TradeNo, Currency: cny,
		Payer: cmp.Or(n.BuyerId, values.Get("buyer_open_id")), At: p.clock.Now()}
	if e.AmountMinor, err = fen(n.TotalAmount); err != nil {
		return payment.Event{}, fmt.Errorf("notice: %w", err)
	}
	at := cmp.Or(n.GmtPayment, n.GmtClose)
	if refunded := values.Get("gmt_refund"); refunded != "" { // refund_fee is the sum of all refunds
		at, _, _ = strings.Cut(refunded, ".")
		e.Kind = payment.EventRefunded
		if e.AmountMinor, err = fen(values.Get("refund_fee")); err != nil {
			return payment.Event{}, fmt.Errorf("notice: %w", err)
		}
	}
	if at, err := time.ParseInLocation(timeFormat, at, beijing); err == nil {
		e.At = at
	}
	return e, nil
}

func fen(yuan string) (int64, error) {
	amount, err := money.Parse(yuan, cny)
	return amount.Minor, err
}

// unsettled are the refusals after which a payment may exist, or a repeated call may succeed.
var unsettled = map[string]bool{
	"ACQ.SYSTEM_ERROR": true, "aop.ACQ.SYSTEM_ERROR": true, "ACQ.TRADE_HAS_SUCCESS": true, "ACQ.TRADE_HAS_CLOSE": true,
	"ACQ.CONTEXT_INCONSISTENT": true,
	"isv.app-call-limited":     true, "isp.call-limited": true, "isp.unknow-error": true, "isp.service-unavailable": true,
}

// failure returns the error of a call: that of the connection, or of Alipay.
func failure[T any](step string, err error, reply *T, of func() api.Error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s at Alipay: %w", step, err)
	case reply == nil:
		return errors.New(step + " at Alipay: no reply")
	}
	if e := of(); e.IsFailure() {
		err := fmt.Errorf("%s at Alipay: %s %s: %s", step, e.Code, e.SubCode, e.SubMsg)
		if unsettled[e.SubCode] || e.Code == "20000" { // "20000" = Alipay is not available
			return err
		}
		return payment.RequestRefused{Why: err}
	}
	return nil
}
