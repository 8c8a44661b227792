package wechat_test

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/providertest"
	"seckill/internal/pay/payment/wechat"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
)

var now = time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)

// rig is an imitated WeChat Pay and the providers that call it.
type rig struct {
	providertest.WeChat
	at        providertest.Address
	qr, phone *wechat.Provider
	mu        sync.Mutex
	asked     []map[string]any // bodies of requests; guarded by mu
}

func newRig(t *testing.T, change func(*wechat.Config)) *rig {
	t.Helper()
	keys, clk := providertest.TestKeys(), clock.NewFake(now)
	r := &rig{WeChat: providertest.WeChat{
		Bank: providertest.NewBank(clk.Now), Merchant: &keys.Merchant.PublicKey, Platform: keys.Provider, KeyID: providertest.WeChatKeyID,
	}}
	r.at = providertest.Address{Service: serve(t, r), Shop: "https://shop.example", Client: client(t), Clock: clk}
	cfg := providertest.WeChatConfig(r.at)
	if change != nil {
		change(&cfg)
	}
	var err error
	if r.qr, r.phone, err = wechat.New(cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	recorded := &strings.Builder{}
	req.Body = http.MaxBytesReader(w, tee{req.Body, recorded}, 1<<20)
	r.WeChat.ServeHTTP(w, req)
	var body map[string]any
	if json.Unmarshal([]byte(recorded.String()), &body) == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked = append(r.asked, body)
	}
}

// tee records what is read.
type tee struct {
	from interface {
		Read(p []byte) (int, error)
		Close() error
	}
	to *strings.Builder
}

func (t tee) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	t.to.Write(p[:n])
	return n, err
}

func (t tee) Close() error { return t.from.Close() }

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func client(t *testing.T) *http.Client {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func known() payment.Known {
	return payment.Known{CreateInput: payment.CreateInput{
		ReturnURL: returnURL,
		Payment:   id.New[id.Payment](), Order: id.New[id.Order](), Number: "1", Product: "Lamp/=&", Quantity: 3, Language: locale.English, AmountMinor: 69900, Currency: "CNY", CreatedAt: now, ExpiresAt: now.Add(15 * time.Minute), Address: "203.0.113.7",
	}}
}

// returnURL is where providers send the buyer.
const returnURL = "https://store.example/orders/1"

func TestAQRCodeAndALinkForPhonesAreCreatedAsWeChatPayWants(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	k, phone := known(), known()
	made, err := r.qr.Create(t.Context(), k.CreateInput)
	if err != nil || !strings.HasPrefix(made.QRCode, "weixin://") || made.RedirectURL != "" {
		t.Fatalf("%+v, %v", made, err)
	}
	link, err := r.phone.Create(t.Context(), phone.CreateInput)
	back := "&redirect_url=" + url.QueryEscape(returnURL)
	if err != nil || link.QRCode != "" || !strings.HasSuffix(link.RedirectURL, back) {
		t.Fatalf("%+v, %v", link, err)
	}
	want := map[string]string{
		"appid": "wx0000000000000001", "mchid": providertest.WeChatMerchant, "out_trade_no": strings.ReplaceAll(k.Payment.String(), "-", ""),
		"time_expire": "2026-11-20T20:15:00Z", "notify_url": "https://shop.example/webhooks/payments/wechat", "amount": "map[currency:CNY total:69900]",
		"description": "Lamp/=& × 3 · Order 1",
	}
	for field, value := range want {
		if got := fmt.Sprint(r.asked[0][field]); got != value {
			t.Errorf("%s is %s, want %s", field, got, value)
		}
	}
	if scene := fmt.Sprint(r.asked[1]["scene_info"]); scene != "map[h5_info:map[type:Wap] payer_client_ip:203.0.113.7]" {
		t.Errorf("scene %s", scene)
	}
}

func TestAClosedPaymentCannotBePaidAndAPaidOneStaysPaid(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for name, c := range map[string]struct {
		before func(k payment.Known)
		want   payment.Phase
	}{
		"never created":  {nil, payment.PhaseUnknown},
		"open":           {func(payment.Known) {}, payment.PhaseClosed},
		"paid before":    {func(k payment.Known) { r.Pay(k.Payment, 69900, "CNY") }, payment.PhasePaid},
		"declined":       {func(k payment.Known) { r.Decline(k.Payment) }, payment.PhaseClosed},
		"closed already": {func(k payment.Known) { _, _ = r.qr.Close(t.Context(), k) }, payment.PhaseClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := known()
			if c.before != nil {
				made, err := r.qr.Create(t.Context(), k.CreateInput)
				if err != nil {
					t.Fatal(err)
				}
				k.Ref = made.Ref
				c.before(k)
			}
			s, err := r.qr.Close(t.Context(), k)
			if err != nil || s.Phase != c.want {
				t.Errorf("%+v, %v, want %s", s, err, c.want)
			}
			if s.Phase == payment.PhasePaid && (s.Transaction == "" || s.AmountMinor != 69900 || s.Currency != "CNY") {
				t.Errorf("state %+v", s)
			}
		})
	}
}

func TestARefundGoesOutOnceAndNeverExceedsThePayment(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	k := known()
	if _, err := r.qr.Create(t.Context(), k.CreateInput); err != nil {
		t.Fatal(err)
	}
	r.Pay(k.Payment, 69900, "CNY")
	paid, _ := r.Charge(k.Payment)
	k.Transaction = paid.Transaction
	part := payment.RefundInput{Refund: id.New[id.Refund](), Paid: k, AmountMinor: 69000, Currency: "CNY"}
	for range 2 {
		if err := r.qr.Refund(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(r.asked[len(r.asked)-1]["amount"]); got != "map[currency:CNY refund:69000 total:69900]" {
		t.Errorf("amount %s", got)
	}
	part.Refund = id.New[id.Refund]()
	err := r.qr.Refund(t.Context(), part)
	if err == nil || !strings.Contains(err.Error(), "INVALID_REQUEST") || strings.Contains(err.Error(), "Authorization") {
		t.Errorf("more is refunded than was paid: %v", err)
	}
	if r.Kept() != 900 {
		t.Errorf("%d fen are left", r.Kept())
	}
}

// recorded are refusals in the form of WeChat Pay's documentation.
var recorded = map[string]struct {
	status int
	body   string
}{
	"frequency":         {http.StatusTooManyRequests, `{"code":"FREQUENCY_LIMITED","message":"频率超限"}`},
	"system":            {http.StatusInternalServerError, `{"code":"SYSTEM_ERROR","message":"系统异常，请稍后重试"}`},
	"wrong signature":   {http.StatusUnauthorized, `{"code":"SIGN_ERROR","message":"错误的签名，验签失败","detail":{"field":"signature"}}`},
	"no balance":        {http.StatusForbidden, `{"code":"NOT_ENOUGH","message":"基本账户余额不足，请充值后重新发起"}`},
	"page of a proxy":   {http.StatusBadGateway, `<html>bad gateway</html>`},
	"number used":       {http.StatusForbidden, `{"code":"OUT_TRADE_NO_USED","message":"商户订单号重复"}`},
	"no right to do h5": {http.StatusForbidden, `{"code":"NO_AUTH","message":"商户无权限"}`},
}

func TestARefusalLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	for name, answer := range recorded {
		r := newRig(t, func(cfg *wechat.Config) {
			cfg.APIURL = serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(answer.status)
				fmt.Fprint(w, answer.body)
			}))
		})
		k := known()
		k.Transaction = "tx"
		_, create := r.phone.Create(t.Context(), k.CreateInput)
		_, query := r.qr.Query(t.Context(), k)
		_, shut := r.qr.Close(t.Context(), k)
		refund := r.qr.Refund(t.Context(), payment.RefundInput{Refund: id.New[id.Refund](), Paid: k, AmountMinor: 1, Currency: "CNY"})
		if create == nil || query == nil || shut == nil || refund == nil {
			t.Errorf("%s: %v, %v, %v, %v", name, create, query, shut, refund)
		}
	}
}

func TestRepliesThatWeChatPayDidNotSignAreNotBelieved(t *testing.T) {
	t.Parallel()
	keys := providertest.TestKeys()
	r := newRig(t, nil)
	r.Platform = keys.Merchant // another key than the platform's
	k := known()
	if _, err := r.qr.Create(t.Context(), k.CreateInput); err == nil {
		t.Error("a code of a stranger is shown to the buyer")
	}
	r.Pay(k.Payment, 69900, "CNY")
	if s, err := r.qr.Query(t.Context(), k); err == nil {
		t.Errorf("state %+v", s)
	}
}

func TestNoticesAreVerifiedAndDecrypted(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	k := known()
	if _, err := r.qr.Create(t.Context(), k.CreateInput); err != nil {
		t.Fatal(err)
	}
	r.Pay(k.Payment, 69900, "CNY")
	paid, _ := r.Charge(k.Payment)
	header, body, _ := r.Report("evt-1", paid)
	e, err := r.qr.Callback(header, body)
	if err != nil || e.ID != "evt-1" || e.Kind != payment.EventSucceeded || e.Payment != k.Payment || e.Transaction != paid.Transaction ||
		e.AmountMinor != 69900 || e.Currency != "CNY" {
		t.Fatalf("%+v, %v", e, err)
	}
	changed := append([]byte{}, body...)
	changed[len(changed)-3] ^= 1
	stale := header.Clone()
	stale.Set("Wechatpay-Timestamp", fmt.Sprint(time.Now().Add(-6*time.Minute).Unix()))
	for name, c := range map[string]struct {
		header http.Header
		body   []byte
	}{"changed": {header, changed}, "old": {stale, body}, "unsigned": {http.Header{}, body}} {
		if _, err := r.qr.Callback(c.header, c.body); !errors.Is(err, payment.ErrForged) {
			t.Errorf("%s: %v, want %v", name, err, payment.ErrForged)
		}
	}
	other := newRig(t, func(cfg *wechat.Config) { cfg.APIKey = strings.Repeat("x", 32) })
	if _, err := other.qr.Callback(header, body); err == nil || errors.Is(err, payment.ErrForged) {
		t.Errorf("another APIv3 key: %v", err)
	}
	if reply := r.qr.Terms().Reply; reply.Status != http.StatusNoContent || reply.Body != "" {
		t.Errorf("reply %+v", reply)
	}
}

// certificate returns a platform certificate and its serial number.
func certificate(t *testing.T) (text, serial string) {
	t.Helper()
	keys := providertest.TestKeys()
	template := &x509.Certificate{SerialNumber: big.NewInt(0x5157F09EFDC096), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &keys.Provider.PublicKey, keys.Provider)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), fmt.Sprintf("%X", template.SerialNumber)
}

func TestPlatformCertificatesServeInsteadOfThePublicKey(t *testing.T) {
	t.Parallel()
	text, serial := certificate(t)
	r := newRig(t, func(cfg *wechat.Config) { cfg.PlatformKeyID, cfg.PlatformKey = "", text })
	k := known()
	if _, err := r.qr.Create(t.Context(), k.CreateInput); err == nil {
		t.Error("a reply signed by a key that is not configured is believed")
	}
	r.KeyID = serial
	if made, err := r.qr.Create(t.Context(), k.CreateInput); err != nil || made.QRCode == "" {
		t.Errorf("%+v, %v", made, err)
	}
	if _, _, err := wechat.New(wechat.Config{MerchantKey: providertest.PrivatePEM(providertest.TestKeys().Merchant), PlatformKey: "no PEM"}); err == nil {
		t.Error("a platform certificate that cannot be read is accepted")
	}
}

func TestARefundOnTheMerchantPlatformIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	k := known()
	if _, err := r.qr.Create(t.Context(), k.CreateInput); err != nil {
		t.Fatal(err)
	}
	r.Pay(k.Payment, 69900, "CNY")
	paid, _ := r.Charge(k.Payment)
	made := id.New[id.Refund]()
	for number, want := range map[string]id.Refund{"made in the platform": {}, strings.ReplaceAll(made.String(), "-", ""): made} {
		header, body := r.ReportRefund("evt-2", number, paid, 500)
		e, err := r.qr.Callback(header, body)
		if err != nil || e.Kind != payment.EventRefundedPart || e.ID != payment.RefundEventID(number) || e.Payment != k.Payment || e.Refund != want ||
			e.Transaction != paid.Transaction || e.AmountMinor != 500 || e.Currency != "CNY" || e.At.IsZero() {
			t.Errorf("%q: %+v, %v", number, e, err)
		}
	}
}
