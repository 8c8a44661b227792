// Package wechat takes payments at WeChat Pay (API v3) by its official library: a QR code
// for desktops (Native), and a link that opens the app for phones (H5). JSAPI is left out:
// it needs the buyer's open id, which only a sign-in inside WeChat gives.
//
// WeChat names a payment by the merchant's number, 32 characters: our id without dashes.
// A number belongs to one way to pay, so that QR code and link are two providers.
package wechat

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/wechatpay-apiv3/wechatpay-go/core"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/validators"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/verifiers"
	"github.com/wechatpay-apiv3/wechatpay-go/core/notify"
	"github.com/wechatpay-apiv3/wechatpay-go/core/option"
	"github.com/wechatpay-apiv3/wechatpay-go/services/payments"
	"github.com/wechatpay-apiv3/wechatpay-go/services/payments/h5"
	"github.com/wechatpay-apiv3/wechatpay-go/services/payments/native"
	"github.com/wechatpay-apiv3/wechatpay-go/services/refunddomestic"
	"github.com/wechatpay-apiv3/wechatpay-go/utils"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
)

// Names of the providers.
const (
	Name      = "wechat"    // QR code
	PhoneName = "wechat-h5" // link for phones
)

// callTimeout bounds one call, below the timeout of package payment.
const callTimeout = 4 * time.Second

// least is what WeChat Pay takes: one fen or more.
var least = map[string]int64{"CNY": 1}

// Config holds the dependencies of the providers.
type Config struct {
	AppID          string
	MerchantID     string
	MerchantSerial string // of the merchant's certificate, in hexadecimal
	MerchantKey    string // PEM of the merchant's private key
	APIKey         string // APIv3 key, 32 bytes: notices are encrypted with it
	// PlatformKey is the PEM of the public key of WeChat Pay, or of its platform
	// certificates, old and new, while it changes them.
	PlatformKey   string
	PlatformKeyID string // PUB_KEY_ID_… of a public key; "" for certificates
	APIURL        string // "" = WeChat Pay's
	ShopURL       string // where the shop is reached, without a trailing slash
	Client        *http.Client
	Clock         clock.Clock
}

// Provider implements payment.Provider. It is safe for concurrent use.
type Provider struct {
	cfg      Config
	phone    bool
	client   *core.Client
	unsigned *core.Client // for files, whose replies WeChat Pay does not sign
	verifier *validators.WechatPayNotifyValidator
	notices  *notify.Handler
}

// New returns the provider of QR codes, and that of links for phones. It calls nothing.
func New(cfg Config) (qr, phone *Provider, err error) {
	key, err := utils.LoadPrivateKey(cfg.MerchantKey)
	if err != nil {
		return nil, nil, fmt.Errorf("key of the merchant: %w", err)
	}
	verifier, err := platform(cfg)
	if err != nil {
		return nil, nil, err
	}
	notices, err := notify.NewRSANotifyHandler(cfg.APIKey, verifier)
	if err != nil {
		return nil, nil, fmt.Errorf("APIv3 key: %w", err)
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: callTimeout}
	}
	cfg.Clock = clock.OrSystem(cfg.Clock)
	if cfg.APIURL != "" {
		to, err := url.Parse(cfg.APIURL)
		if err != nil {
			return nil, nil, fmt.Errorf("address of the API: %w", err)
		}
		moved := *cfg.Client
		moved.Transport = elsewhere{to, cfg.Client.Transport}
		cfg.Client = &moved
	}
	client, err := core.NewClient(context.Background(), option.WithMerchantCredential(cfg.MerchantID, cfg.MerchantSerial,
		key),
		option.WithVerifier(verifier), option.WithHTTPClient(cfg.Client))
	if err != nil {
		return nil, nil, fmt.Errorf("client of WeChat Pay: %w", err)
	}
	unsigned, err := core.NewClient(context.Background(), option.WithMerchantCredential(cfg.MerchantID, cfg.MerchantSerial,
		key),
		option.WithoutValidator(), option.WithHTTPClient(downloads(cfg.Client)))
	if err != nil {
		return nil, nil, fmt.Errorf("client of WeChat Pay: %w", err)
	}
	qr = &Provider{cfg: cfg, client: client, unsigned: unsigned, verifier: validators.NewWechatPayNotifyValidator(
		verifier), notices: notices}
	other := *qr
	other.phone = true
	return qr, &other, nil
}

// downloads returns a client for files, which take longer than calls: their context bounds them.
func downloads(c *http.Client) *http.Client {
	patient := *c
	patient.Timeout = 0
	return &patient
}

// platform returns what verifies the signatures of WeChat Pay.
func platform(cfg Config) (auth.Verifier, error) {
	if cfg.PlatformKeyID != "" {
		key, err := utils.LoadPublicKey(cfg.PlatformKey)
		if err != nil {
			return nil, fmt.Errorf("public key of WeChat Pay: %w", err)
		}
		return verifiers.NewSHA256WithRSAPubkeyVerifier(cfg.PlatformKeyID, *key), nil
	}
	var certificates []*x509.Certificate
	for block, rest := pem.Decode([]byte(cfg.PlatformKey)); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("platform certificate of WeChat Pay: %w", err)
		}
		if _, ok := certificate.PublicKey.(*rsa.PublicKey); !ok {
			return nil, errors.New("platform certificate of WeChat Pay: the key is not RSA")
		}
		certificates = append(certificates, certificate)
	}
	if len(certificates) == 0 {
		return nil, errors.New("platform certificate of WeChat Pay: no PEM")
	}
	return verifiers.NewSHA256WithRSAVerifier(core.NewCertificateMapWithList(certificates)), nil
}

// elsewhere sends requests to another address than the one that the library knows.
type elsewhere struct {
	to   *url.URL
	next http.RoundTripper
}

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	moved := r.Clone(r.Context())
	moved.URL.Scheme, moved.URL.Host, moved.Host = e.to.Scheme, e.to.Host, e.to.Host
	return cmp.Or(e.next, http.DefaultTransport).RoundTrip(moved)
}

// Name returns "wechat", or "wechat-h5" for phones.
func (p *Provider) Name() string {
	if p.phone {
		return PhoneName
	}
	return Name
}

// Terms returns what buyers see. WeChat Pay wants 200 or 204 without a body.
func (p *Provider) Terms() payment.Terms {
	terms := payment.Terms{
		Label: payment.Label{English: "WeChat Pay", Chinese: "微信支付"}, Kind: payment.QR, Device: payment.Desktop, Icon: "chat",
		Least: least,
		Reply: payment.Reply{Status: http.StatusNoContent},
	}
	if p.phone {
		terms.Kind, terms.Device = payment.Redirect, payment.Phone
	}
	return terms
}

// shortest is how long a payment can be paid at least: WeChat Pay requires more than a minute.
const shortest = 90 * time.Second

// maxDescription bounds the description for the buyer, in bytes.
const maxDescription = 127

func number[T ~[16]byte](id T) *string { return core.String(hex.EncodeToString(id[:])) }

// Create opens a payment. A repeated call with the same number returns a code for the same
// payment.
func (p *Provider) Create(ctx context.Context, in payment.CreateInput) (payment.Created, error) {
	notices := p.cfg.ShopURL + "/webhooks/payments/" + p.Name()
	description := in.Description(maxDescription)
	expires := in.ExpiresAt.Truncate(time.Second)
	if first := in.CreatedAt.Add(shortest).Truncate(time.Second); expires.Before(first) {
		expires = first
	}
	if !p.phone {
		service := native.NativeApiService{Client: p.client}
		made, _, err := service.Prepay(ctx, native.PrepayRequest{
			Appid: &p.cfg.AppID, Mchid: &p.cfg.MerchantID, Description: &description, OutTradeNo: number(in.Payment),
			TimeExpire: &expires,
			NotifyUrl:  &notices, Amount: &native.Amount{Total: &in.AmountMinor, Currency: &in.Currency},
		})
		if err != nil {
			return payment.Created{}, refusal("create", err)
		}
		return payment.Created{Ref: *number(in.Payment), QRCode: value(made.CodeUrl)}, nil
	}
	service := h5.H5ApiService{Client: p.client}
	made, _, err := service.Prepay(ctx, h5.PrepayRequest{
		Appid: &p.cfg.AppID, Mchid: &p.cfg.MerchantID, Description: &description, OutTradeNo: number(in.Payment),
		TimeExpire: &expires,
		NotifyUrl:  &notices, Amount: &h5.Amount{Total: &in.AmountMinor, Currency: &in.Currency},
		SceneInfo: &h5.SceneInfo{PayerClientIp: core.String(cmp.Or(in.Address, "127.0.0.1")),
			H5Info: &h5.H5Info{Type: core.String("Wap")}},
	})
	if err != nil {
		return payment.Created{}, refusal("create", err)
	}
	return payment.Created{Ref: *number(in.Payment), RedirectURL: value(made.H5Url) + "&redirect_url=" +
		url.QueryEscape(in.ReturnURL)}, nil
}

// Query returns the state of a payment.
func (p *Provider) Query(ctx context.Context, known payment.Known) (payment.State, error) {
	service := native.NativeApiService{Client: p.client} // the request is the same for all ways to pay
	t, _, err := service.QueryOrderByOutTradeNo(ctx,
		native.QueryOrderByOutTradeNoRequest{OutTradeNo: number(known.Payment), Mchid: &p.cfg.MerchantID})
	if isCode(err, "ORDER_NOT_EXIST", "ORDERNOTEXIST", "RESOURCE_NOT_EXISTS") {
		return payment.State{Phase: payment.PhaseUnknown}, nil
	}
	if err != nil {
		return payment.State{}, refusal("query", err)
	}
	return p.state(t), nil
}

// Close closes a payment, unless it was paid.
func (p *Provider) Close(ctx context.Context, known payment.Known) (payment.State, error) {
	service := native.NativeApiService{Client: p.client}
	_, err := service.CloseOrder(ctx, native.CloseOrderRequest{OutTradeNo: number(known.Payment),
		Mchid: &p.cfg.MerchantID})
	switch {
	case err == nil, isCode(err, "ORDER_CLOSED", "ORDERCLOSED"):
		return payment.State{Phase: payment.PhaseClosed, Ref: known.Ref, At: p.cfg.Clock.Now()}, nil
	case isCode(err, "ORDER_NOT_EXIST", "ORDERNOTEXIST", "RESOURCE_NOT_EXISTS"):
		return payment.State{Phase: payment.PhaseUnknown}, nil
	case isCode(err, "ORDERPAID", "ORDER_PAID"):
		return p.Query(ctx, known)
	}
	return payment.State{}, refusal("close", err)
}

// phases maps the states of a trade. One that was refunded had been paid.
var phases = map[string]payment.Phase{
	"SUCCESS": payment.PhasePaid, "REFUND": payment.PhasePaid, "NOTPAY": payment.PhaseOpen,
	"USERPAYING": payment.PhaseOpen, "ACCEPT": payment.PhaseOpen,
	"CLOSED": payment.PhaseClosed, "REVOKED": payment.PhaseClosed, "PAYERROR": payment.PhaseDeclined,
}

func (p *Provider) state(t *payments.Transaction) payment.State {
	s := payment.State{
		Phase: cmp.Or(phases[value(t.TradeState)], payment.PhaseOpen), Ref: value(t.OutTradeNo),
		Transaction: value(t.TransactionId), At: p.cfg.Clock.Now(),
	}
	if s.Phase == payment.PhaseDeclined {
		s.Decline = payment.CardDeclined // WeChat Pay shows the reason to the buyer only
	}
	if t.Amount != nil {
		s.AmountMinor, s.Currency = value(t.Amount.Total), cmp.Or(value(t.Amount.Currency), "CNY")
	}
	if t.Payer != nil {
		s.Payer = value(t.Payer.Openid)
	}
	if at, err := time.Parse(time.RFC3339, value(t.SuccessTime)); err == nil {
		s.At = at
	}
	return s
}

// Refund refunds money of a payment, once for each refund id.
func (p *Provider) Refund(ctx context.Context, in payment.RefundInput) error {
	transaction, total := cmp.Or(in.Transaction, in.Paid.Transaction), in.Paid.AmountMinor
	if transaction == "" {
		return fmt.Errorf("refund %s: the payment has no transaction", in.Refund)
	}
	if in.Transaction != "" {
		total = in.AmountMinor // money that does not match its payment goes back whole
	}
	service := refunddomestic.RefundsApiService{Client: p.client}
	r, _, err := service.Create(ctx, refunddomestic.CreateRequest{
		TransactionId: &transaction, OutRefundNo: number(in.Refund),
		Amount: &refunddomestic.AmountReq{Refund: &in.AmountMinor, Total: &total, Currency: &in.Currency},
	})
	if err != nil {
		return refusal("refund", err)
	}
	if s := value(r.Status); s != refunddomestic.STATUS_SUCCESS && s != refunddomestic.STATUS_PROCESSING {
		return payment.RefundFailed{Why: string(s)}
	}
	return nil
}

// refunded decodes a notice about one refund, made by the shop or on the merchant platform.
func (p *Provider) refunded(content []byte) (payment.Event, error) {
	var r struct {
		Merchant    string    `json:"mchid"`
		OutTradeNo  string    `json:"out_trade_no"`
		Transaction string    `json:"transaction_id"`
		OutRefundNo string    `json:"out_refund_no"`
		RefundID    string    `json:"refund_id"`
		At          time.Time `json:"success_time"`
		Amount      struct {
			Refund   int64  `json:"refund"`
			Currency string `json:"currency"`
		} `json:"amount"`
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return payment.Event{}, fmt.Errorf("notice: %w", err)
	}
	ours, err := id.ParseUUID[id.Payment](r.OutTradeNo)
	if err != nil || r.Merchant != p.cfg.MerchantID {
		return payment.Event{}, nil // not a payment of ours
	}
	e := payment.Event{
		ID: payment.RefundEventID(cmp.Or(r.OutRefundNo, r.RefundID)), Payment: ours, Kind: payment.EventRefundedPart,
		Ref:         r.OutTradeNo,
		Transaction: r.Transaction, AmountMinor: r.Amount.Refund, Currency: cmp.Or(r.Amount.Currency, "CNY"), At: r.At,
	}
	if made, err := id.ParseUUID[id.Refund](r.OutRefundNo); err == nil {
		e.Refund = made
	}
	return e, nil
}

// Callback verifies and decrypts a notice. Notices of other merchants' payments are ignored.
func (p *Provider) Callback(header http.Header, body []byte) (payment.Event, error) {
	request := func() *http.Request { return &http.Request{Header: header, Body: io.NopCloser(bytes.NewReader(body))} }
	if err := p.verifier.Validate(context.Background(), request()); err != nil {
		return payment.Event{}, fmt.Errorf("%w: %w", payment.ErrForged, err)
	}
	var content json.RawMessage
	n, err := p.notices.ParseNotifyRequest(context.Background(), request(), &content)
	if err != nil {
		return payment.Event{}, errors.New("notice cannot be decrypted: the APIv3 key is another one, or the notice is malformed")
	}
	if n.EventType == "REFUND.SUCCESS" {
		return p.refunded(content)
	}
	var t payments.Transaction
	if err := json.Unmarshal(content, &t); err != nil {
		return payment.Event{}, fmt.Errorf("notice: %w", err)
	}
	ours, err := id.ParseUUID[id.Payment](value(t.OutTradeNo))
	if !strings.HasPrefix(n.EventType, "TRANSACTION.") || err != nil || value(t.Mchid) != p.cfg.MerchantID {
		return payment.Event{}, nil // not a payment of ours
	}
	state := p.state(&t)
	kind, ok := map[payment.Phase]payment.EventKind{
		payment.PhasePaid: payment.EventSucceeded, payment.PhaseDeclined: payment.EventDeclined,
		payment.PhaseClosed: payment.EventClosed,
	}[state.Phase]
	if !ok {
		return payment.Event{}, nil
	}
	return payment.Event{
		ID: n.ID, Payment: ours, Kind: kind, Ref: state.Ref, Transaction: state.Transaction,
		AmountMinor: state.AmountMinor, Currency: state.Currency, Payer: state.Payer, Decline: state.Decline, At: state.At,
	}, nil
}

// refusal shortens an error of the library, which contains all headers.
func refusal(step string, err error) error {
	if api, ok := errors.AsType[*core.APIError](err); ok {
		err := fmt.Errorf("%s at WeChat Pay: status %d, %s: %s", step, api.StatusCode, api.Code, api.Message)
		if api.Code == "OUT_TRADE_NO_USED" || api.Code == "ORDERPAID" || api.Code == "ORDER_PAID" ||
			api.Code == "ORDER_CLOSED" || api.Code == "ORDERCLOSED" {
			return err // a payment exists
		}
		return payment.Refusal(api.StatusCode, err)
	}
	return fmt.Errorf("%s at WeChat Pay: %w", step, err)
}

func isCode(err error, codes ...string) bool {
	api, ok := errors.AsType[*core.APIError](err)
	if !ok {
		return false
	}
	for _, code := range codes {
		if api.Code == code {
			return true
		}
	}
	return false
}

func value[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}
