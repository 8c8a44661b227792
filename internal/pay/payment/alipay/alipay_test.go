package alipay_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/alipay"
	"seckill/internal/pay/payment/providertest"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
)

var now = time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)

// rig is an imitated Alipay and the providers that call it.
type rig struct {
	providertest.Alipay
	qr, phone *alipay.Provider
	clock     *clock.Fake
	gateway   string
}

func newRig(t *testing.T, change func(*alipay.Config)) *rig {
	t.Helper()
	keys, clk := providertest.TestKeys(), clock.NewFake(now)
	r := &rig{Alipay: providertest.NewAlipay(providertest.NewBank(clk.Now), &keys.Merchant.PublicKey, keys.Provider), clock: clk}
	r.gateway = serve(t, r.Alipay)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := providertest.AlipayConfig(providertest.Address{Service: r.gateway, Shop: "https://shop.example", Client: &http.Client{Transport: transport}, Clock: clk})
	if change != nil {
		change(&cfg)
	}
	var err error
	if r.qr, r.phone, err = alipay.New(cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func known() payment.Known {
	return payment.Known{CreateInput: payment.CreateInput{
		ReturnURL: returnURL,
		Payment:   id.New[id.Payment](), Order: id.New[id.Order](), Number: "1", Product: "Lamp/=&", Quantity: 3, Language: locale.English, AmountMinor: 69905, Currency: "CNY", ExpiresAt: now.Add(15 * time.Minute),
	}}
}

// returnURL is where providers send the buyer.
const returnURL = "https://store.example/orders/1"

// created returns a payment for which Alipay has made a code.
func (r *rig) created(t *testing.T) payment.Known {
	t.Helper()
	k := known()
	made, err := r.qr.Create(t.Context(), k.CreateInput)
	if err != nil || made.QRCode == "" || made.RedirectURL != "" {
		t.Fatalf("%+v, %v", made, err)
	}
	k.Ref = made.Ref
	return k
}

func TestThePageForPhonesIsSignedAndLeadsBackToTheOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	k := known()
	made, err := r.phone.Create(t.Context(), k.CreateInput)
	if err != nil || made.QRCode != "" || len(made.RedirectURL) > 4096 {
		t.Fatalf("%+v, %v", made, err)
	}
	page, err := url.Parse(made.RedirectURL)
	if err != nil {
		t.Fatal(err)
	}
	values, back := page.Query(), returnURL
	if values.Get("return_url") != back || values.Get("notify_url") != "https://shop.example/webhooks/payments/alipay-wap" {
		t.Errorf("page %v", values)
	}
	for _, part := range []string{`"total_amount":"699.05"`, `"subject":"Lamp    × 3 · Order 1"`, `"time_expire":"2026-11-21 04:15:00"`, `"product_code":"QUICK_WAP_WAY"`, strings.ReplaceAll(k.Payment.String(), "-", "")} {
		if !strings.Contains(values.Get("biz_content"), part) {
			t.Errorf("no %s in %s", part, values.Get("biz_content"))
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, made.RedirectURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{}).Do(req) // a buyer
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if c, ok := r.Charge(k.Payment); !ok || c.AmountMinor != 69905 || !c.ExpiresAt.Equal(k.ExpiresAt) {
		t.Errorf("the gateway has %+v", c)
	}
}

func TestACodeThatWasNotScannedIsOpenUntilItsDeadline(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	k := r.created(t)
	if s, err := r.qr.Query(t.Context(), k); err != nil || s.Phase != payment.PhaseOpen {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := r.qr.Query(t.Context(), known()); err != nil || s.Phase != payment.PhaseUnknown {
		t.Errorf("never created: %+v, %v", s, err)
	}
	if s, err := r.qr.Close(t.Context(), k); err != nil || s.Phase != payment.PhaseClosed {
		t.Errorf("close: %+v, %v", s, err)
	}
	r.clock.Advance(15 * time.Minute)
	if s, err := r.qr.Query(t.Context(), k); err != nil || s.Phase != payment.PhaseClosed {
		t.Errorf("after the deadline: %+v, %v", s, err)
	}
}

func TestAClosedPaymentCannotBePaidAndAPaidOneStaysPaid(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	scanned, paid := r.created(t), r.created(t)
	r.Open(scanned.Payment)
	r.Pay(paid.Payment, 69905, "CNY")
	if s, err := r.qr.Query(t.Context(), scanned); err != nil || s.Phase != payment.PhaseOpen {
		t.Errorf("scanned: %+v, %v", s, err)
	}
	for range 2 {
		if s, err := r.qr.Close(t.Context(), scanned); err != nil || s.Phase != payment.PhaseClosed {
			t.Errorf("scanned: %+v, %v", s, err)
		}
	}
	s, err := r.qr.Close(t.Context(), paid)
	if err != nil || s.Phase != payment.PhasePaid || s.Transaction == "" || s.AmountMinor != 69905 || s.Currency != "CNY" {
		t.Errorf("paid: %+v, %v", s, err)
	}
}

func TestARefundGoesOutOnceAndNeverExceedsThePayment(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	k := r.created(t)
	r.Pay(k.Payment, 69905, "CNY")
	paid, _ := r.Charge(k.Payment)
	k.Transaction = paid.Transaction
	part := payment.RefundInput{Refund: id.New[id.Refund](), Paid: k, AmountMinor: 69005, Currency: "CNY", Reason: "wrong colour"}
	for range 2 {
		if err := r.qr.Refund(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	part.Refund = id.New[id.Refund]()
	if err := r.qr.Refund(t.Context(), part); err == nil || !strings.Contains(err.Error(), "ACQ.REFUND_AMT_NOT_EQUAL_TOTAL") {
		t.Errorf("more is refunded than was paid: %v", err)
	}
	if r.Kept() != 900 {
		t.Errorf("%d fen are left", r.Kept())
	}
}

// recorded are failures in the form of Alipay's documentation, which it sends unsigned, and
// replies that are none of Alipay's.
var recorded = map[string]string{
	"wrong signature": `{"error_response":{"code":"40002","msg":"Invalid Arguments","sub_code":"isv.invalid-signature","sub_msg":"无效签名"}}`,
	"busy":            `{"alipay_trade_query_response":{"code":"20000","msg":"Service Currently Unavailable","sub_code":"isp.unknow-error","sub_msg":"系统繁忙"}}`,
	"no right":        `{"alipay_trade_query_response":{"code":"40006","msg":"Insufficient Permissions","sub_code":"isv.insufficient-isv-permissions"}}`,
	"page of a proxy": `<html>bad gateway</html>`,
	"unsigned: paid":  `{"alipay_trade_query_response":{"code":"10000","trade_status":"TRADE_SUCCESS","trade_no":"1","total_amount":"699.05"}}`,
	"unsigned: gone":  `{"alipay_trade_query_response":{"code":"40004","sub_code":"ACQ.TRADE_NOT_EXIST"},"alipay_trade_close_response":{"code":"40004","sub_code":"ACQ.TRADE_NOT_EXIST"}}`,
	"wrong sign":      `{"alipay_trade_query_response":{"code":"10000","trade_status":"TRADE_SUCCESS"},"sign":"AAAA"}`,
}

func TestARefusalOrAnUnsignedReplyLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	for name, body := range recorded {
		r := newRig(t, func(cfg *alipay.Config) {
			cfg.APIURL = serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		})
		k := known()
		k.Transaction = "tx"
		_, create := r.qr.Create(t.Context(), k.CreateInput)
		_, query := r.qr.Query(t.Context(), k)
		_, shut := r.qr.Close(t.Context(), k)
		refund := r.qr.Refund(t.Context(), payment.RefundInput{Refund: id.New[id.Refund](), Paid: k, AmountMinor: 1, Currency: "CNY"})
		if create == nil || query == nil || shut == nil || refund == nil {
			t.Errorf("%s: %v, %v, %v, %v", name, create, query, shut, refund)
		}
	}
}

func TestOnlyNoticesThatAlipaySignedForThisApplicationCount(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	k := r.created(t)
	r.Pay(k.Payment, 69905, "CNY")
	paid, _ := r.Charge(k.Payment)
	_, body, _ := r.Report("evt-1", paid)
	e, err := r.qr.Callback(nil, body)
	if err != nil || e.ID != "evt-1" || e.Kind != payment.EventSucceeded || e.Payment != k.Payment || e.Transaction != paid.Transaction ||
		e.AmountMinor != 69905 || e.Currency != "CNY" || !e.At.Equal(now) {
		t.Fatalf("%+v, %v", e, err)
	}
	unpaid, _ := r.Charge(r.created(t).Payment)
	if _, body, _ := r.Report("evt-2", unpaid); body != nil {
		if e, err := r.qr.Callback(nil, body); err != nil || e.ID != "" {
			t.Errorf("a notice that nothing has changed: %+v, %v", e, err)
		}
	}
	for name, body := range map[string]string{
		"changed":             strings.Replace(string(body), "699.05", "1.00", 1),
		"unsigned":            "out_trade_no=1&trade_status=TRADE_SUCCESS",
		"another application": string(r.Sign(url.Values{"app_id": {"2021"}, "notify_id": {"1"}, "trade_status": {"TRADE_SUCCESS"}})),
		"another certificate": string(body) + "&alipay_cert_sn=0123456789abcdef",
	} {
		if _, err := r.qr.Callback(nil, []byte(body)); !errors.Is(err, payment.ErrForged) {
			t.Errorf("%s: %v, want %v", name, err, payment.ErrForged)
		}
	}
	if reply := r.qr.Terms().Reply; reply.Body != "success" || reply.Status != 0 {
		t.Errorf("reply %+v", reply)
	}
}

// A notice about a refund has the trade's state and the sum of all its refunds.
func TestARefundOnAlipaysPagesIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	k := r.created(t)
	for state, sum := range map[string]string{"TRADE_SUCCESS": "5.00", "TRADE_CLOSED": "699.05"} {
		body := r.Sign(url.Values{
			"notify_id": {"n-1"}, "app_id": {providertest.AlipayApp}, "out_trade_no": {strings.ReplaceAll(k.Payment.String(), "-", "")}, "trade_no": {"2026"}, "trade_status": {state},
			"total_amount": {"699.05"}, "refund_fee": {sum}, "gmt_payment": {"2026-11-21 04:00:00"}, "gmt_refund": {"2026-11-21 04:10:00.123"}, "out_biz_no": {"1"},
		})
		e, err := r.qr.Callback(nil, body)
		if err != nil || e.ID != "n-1" || e.Kind != payment.EventRefunded || e.Payment != k.Payment || e.Transaction != "2026" ||
			e.AmountMinor != map[string]int64{"5.00": 500, "699.05": 69905}[sum] || e.Currency != "CNY" || e.At.UTC().Format(time.TimeOnly) != "20:10:00" {
			t.Errorf("%s: %+v, %v", state, e, err)
		}
	}
}

// A trade that was paid is closed once all of it was refunded. The shop knows it as paid.
func TestATradeThatWasRefundedAsAWholeIsNoClosedPayment(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	k := r.created(t)
	r.Pay(k.Payment, 69905, "CNY")
	paid, err := r.qr.Query(t.Context(), k)
	if err != nil || paid.Phase != payment.PhasePaid || paid.Refunded != 0 {
		t.Fatalf("%+v, %v", paid, err)
	}
	if err := r.GiveBack(k.Payment, 69905); err != nil {
		t.Fatal(err)
	}
	k.Transaction = paid.Transaction
	if s, err := r.qr.Query(t.Context(), k); err != nil || s.Phase != payment.PhasePaid || s.AmountMinor != 69905 || s.Refunded != 69905 {
		t.Errorf("%+v, %v", s, err)
	}
	k.Transaction = "" // the shop never knew of the money
	if s, err := r.qr.Query(t.Context(), k); err != nil || s.Phase != payment.PhaseClosed {
		t.Errorf("%+v, %v", s, err)
	}
}
