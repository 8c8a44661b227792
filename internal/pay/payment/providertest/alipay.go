package providertest

import (
	"crypto"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/smartwalle/alipay/v3"
	"github.com/smartwalle/nsign"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// AlipayApp is the application of the imitated Alipay.
const AlipayApp = "2021000000000001"

// Alipay imitates the gateway of Alipay.
type Alipay struct {
	*Bank
	app interface { // verifies requests
		VerifyValues(values url.Values, signature []byte, opts ...nsign.SignOption) error
	}
	alipay interface { // signs replies and notices
		SignBytes(data []byte, opts ...nsign.SignOption) ([]byte, error)
		SignValues(values url.Values, opts ...nsign.SignOption) ([]byte, error)
	}
}

// NewAlipay returns the service, which verifies by one key and signs with the other.
func NewAlipay(b *Bank, app *rsa.PublicKey, own *rsa.PrivateKey) Alipay {
	encoder := nsign.WithEncoder(&alipay.Encoder{})
	return Alipay{
		b, nsign.New(nsign.WithMethod(nsign.NewRSAMethod(crypto.SHA256, nil, app)), encoder),
		nsign.New(nsign.WithMethod(nsign.NewRSAMethod(crypto.SHA256, own, nil)), encoder),
	}
}

// authentic reports whether a request is signed by the application.
func (s Alipay) authentic(values url.Values) bool {
	signature, err := base64.StdEncoding.DecodeString(values.Get("sign"))
	return err == nil && values.Get("app_id") == AlipayApp &&
		s.app.VerifyValues(values, signature, nsign.WithIgnore("sign")) == nil
}

// ServeHTTP answers precreate, query, close and refund. A GET is the page for phones.
func (s Alipay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/bill" {
		s.bill(w, r)
		return
	}
	values := r.URL.Query()
	if r.Method == http.MethodPost {
		values, _ = url.ParseQuery(string(take(r)))
	}
	if !s.authentic(values) {
		fmt.Fprint(w, `{"error_response":{"code":"40002","msg":"Invalid Arguments","sub_code":"isv.invalid-signature","sub_msg":"wrong signature"}}`)
		return
	}
	var in struct {
		OutTradeNo   string `json:"out_trade_no"`
		TradeNo      string `json:"trade_no"`
		OutRequestNo string `json:"out_request_no"`
		TotalAmount  string `json:"total_amount"`
		RefundAmount string `json:"refund_amount"`
		TimeExpire   string `json:"time_expire"`
	}
	_ = json.Unmarshal([]byte(values.Get("biz_content")), &in)
	reply := map[string]any{"code": "10000", "msg": "Success", "out_trade_no": in.OutTradeNo}
	refuse := func(code string) {
		reply = map[string]any{"code": "40004", "msg": "Business Failed", "sub_code": code, "sub_msg": "refused"}
	}
	paymentID := parse(in.OutTradeNo)
	c, known := s.of(paymentID)
	switch method := values.Get("method"); method {
	case "alipay.trade.precreate", "alipay.trade.wap.pay":
		expires, err := time.ParseInLocation("2006-01-02 15:04:05", in.TimeExpire, time.FixedZone("", 8*60*60))
		amount, wrong := money.Parse(in.TotalAmount, "CNY")
		if err != nil || wrong != nil {
			refuse("ACQ.INVALID_PARAMETER")
			break
		}
		s.open(Charge{Payment: paymentID, AmountMinor: amount.Minor, Currency: "CNY", ExpiresAt: expires})
		reply["qr_code"] = "https://qr.example/" + in.OutTradeNo
	case "alipay.data.dataservice.bill.downloadurl.query":
		var asked struct {
			Date string `json:"bill_date"`
		}
		_ = json.Unmarshal([]byte(values.Get("biz_content")), &asked)
		if reply["bill_download_url"] = "http://" + r.Host + "/bill?date=" + asked.Date; len(s.day(asked.Date)) == 0 {
			refuse("isp.bill_not_exist")
		}
	case "alipay.trade.refund":
		amount, _ := money.Parse(in.RefundAmount, "CNY")
		if s.refund(in.TradeNo, id.Refund(parse(in.OutRequestNo)), amount.Minor) != nil {
			refuse("ACQ.REFUND_AMT_NOT_EQUAL_TOTAL")
		}
	default:
		closing := method == "alipay.trade.close"
		switch {
		case !known || !c.Opened: // the buyer has not opened it
			refuse("ACQ.TRADE_NOT_EXIST")
		case closing && c.Phase != payment.PhaseOpen:
			refuse("ACQ.TRADE_STATUS_ERROR")
		case closing:
			s.close(paymentID)
		default:
			reply["trade_status"], reply["trade_no"] = alipayStatus(c.Phase), c.Transaction
			reply["total_amount"], reply["buyer_user_id"] = yuan(c.AmountMinor), Payer
			if c.Phase == payment.PhasePaid && c.Refunded == c.AmountMinor {
				reply["trade_status"] = alipayStatus(payment.PhaseClosed) // as Alipay has it
			}
		}
	}
	s.reply(w, values.Get("method"), reply)
}

func (s Alipay) reply(w http.ResponseWriter, method string, v any) {
	text, _ := json.Marshal(v)
	signature, err := s.alipay.SignBytes(text)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(w, `{%q:%s,"sign":%q}`, strings.ReplaceAll(method, ".", "_")+"_response", text, base64.StdEncoding.EncodeToString(signature))
}

func alipayStatus(phase payment.Phase) string {
	switch phase {
	case payment.PhasePaid:
		return "TRADE_SUCCESS"
	case payment.PhaseClosed, payment.PhaseDeclined:
		return "TRADE_CLOSED"
	case payment.PhaseOpen, payment.PhaseUnknown, payment.PhaseAuthorized:
	}
	return "WAIT_BUYER_PAY"
}

func yuan(minor int64) string { return money.Amount{Minor: minor, Currency: "CNY"}.Decimal() }

// Report returns a signed notice. A decline is not reported.
func (s Alipay) Report(id string, c Charge) (http.Header, []byte, bool) {
	values := url.Values{
		"notify_id": {id}, "notify_type": {"trade_status_sync"}, "app_id": {AlipayApp}, "out_trade_no": {number(c.Payment)},
		"trade_no":     {c.Transaction},
		"trade_status": {alipayStatus(c.Phase)}, "total_amount": {yuan(c.AmountMinor)},
		"gmt_payment": {c.PaidAt.In(beijing).Format(time.DateTime)}, "charset": {"utf-8"},
		"buyer_id": {Payer},
	}
	return http.Header{}, s.Sign(values), c.Phase == payment.PhasePaid || c.Phase == payment.PhaseClosed
}

// Sign returns the body of a notice with the given values.
func (s Alipay) Sign(values url.Values) []byte {
	signature, err := s.alipay.SignValues(values)
	if err != nil {
		panic(err)
	}
	values.Set("sign", base64.StdEncoding.EncodeToString(signature))
	values.Set("sign_type", "RSA2")
	return []byte(values.Encode())
}
