package providertest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/verifiers"
	"github.com/wechatpay-apiv3/wechatpay-go/utils"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
)

// Names of the imitated merchant of WeChat Pay.
const (
	WeChatMerchant = "1900000001"
	WeChatSerial   = "5157F09EFDC096DE15EBE81A47057A7232F1B8E1"
	WeChatAPIKey   = "0123456789abcdef0123456789abcdef"
)

// WeChat imitates WeChat Pay.
type WeChat struct {
	*Bank
	Merchant *rsa.PublicKey  // verifies requests
	Platform *rsa.PrivateKey // signs replies and notices
	KeyID    string          // of the platform's key or certificate
}

var authorization = regexp.MustCompile(`^WECHATPAY2-SHA256-RSA2048 mchid="(\d+)",nonce_str="(\w+)",timestamp="(\d+)",serial_no="(\w+)",signature="([^"]+)"$`)

// authentic reports whether a request is signed by the merchant.
func (s WeChat) authentic(r *http.Request, body []byte) bool {
	parts := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if parts == nil || parts[1] != WeChatMerchant {
		return false
	}
	text := fmt.Sprintf("%s\n%s\n%s\n%s\n%s\n", r.Method, r.URL.RequestURI(), parts[3], parts[2], body)
	return verifiers.NewSHA256WithRSAPubkeyVerifier(WeChatSerial, *s.Merchant).
		Verify(context.Background(), parts[4], text, parts[5]) == nil
}

func (s WeChat) sign(header http.Header, body []byte) {
	now, nonce := strconv.FormatInt(time.Now().Unix(), 10), rand.Text()
	signature, err := utils.SignSHA256WithRSA(now+"\n"+nonce+"\n"+string(body)+"\n", s.Platform)
	if err != nil {
		panic(err)
	}
	header.Set("Wechatpay-Serial", s.KeyID)
	header.Set("Wechatpay-Timestamp", now)
	header.Set("Wechatpay-Nonce", nonce)
	header.Set("Wechatpay-Signature", signature)
	header.Set("Request-Id", nonce)
}

func (s WeChat) reply(w http.ResponseWriter, status int, v any) {
	var body []byte
	if v != nil {
		body, _ = json.Marshal(v)
	}
	w.Header().Set("Content-Type", "application/json")
	s.sign(w.Header(), body)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func (s WeChat) refuse(w http.ResponseWriter, status int, code string) {
	s.reply(w, status, map[string]string{"code": code, "message": "refused"})
}

// weChatInput has the fields of all requests.
type weChatInput struct {
	OutTradeNo    string    `json:"out_trade_no"`
	OutRefundNo   string    `json:"out_refund_no"`
	TransactionID string    `json:"transaction_id"`
	TimeExpire    time.Time `json:"time_expire"`
	NotifyURL     string    `json:"notify_url"`
	Amount        struct {
		Total, Refund int64
		Currency      string
	} `json:"amount"`
	SceneInfo *struct {
		PayerClientIP string `json:"payer_client_ip"`
	} `json:"scene_info"`
}

// ServeHTTP answers prepay, query, close and refund.
func (s WeChat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := take(r)
	if !s.authentic(r, body) {
		s.refuse(w, http.StatusUnauthorized, "SIGN_ERROR")
		return
	}
	var in weChatInput
	_ = json.Unmarshal(body, &in) // a query has no body
	path, closing := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/v3/pay/transactions/"), "/close")
	switch {
	case r.URL.Path == "/v3/bill/tradebill":
		s.bill(w, r)
	case r.URL.Path == "/v3/billdownload/file":
		s.billFile(w, r)
	case path == "native" || path == "h5":
		c := s.open(Charge{Payment: parse(in.OutTradeNo), AmountMinor: in.Amount.Total, Currency: in.Amount.Currency,
			ExpiresAt: in.TimeExpire})
		if c.Phase != payment.PhaseOpen {
			s.refuse(w, http.StatusBadRequest, "ORDERPAID")
			return
		}
		s.reply(w, http.StatusOK, map[string]string{
			"code_url": "weixin://wxpay/bizpayurl?pr=" + in.OutTradeNo, "h5_url": "https://wx.example/checkmweb?prepay_id=" +
				in.OutTradeNo,
		})
	case r.URL.Path == "/v3/refund/domestic/refunds":
		if err := s.refund(in.TransactionID, id.Refund(parse(in.OutRefundNo)), in.Amount.Refund); err != nil {
			s.refuse(w, http.StatusBadRequest, "INVALID_REQUEST")
			return
		}
		s.reply(w, http.StatusOK, map[string]string{"status": "PROCESSING"})
	default:
		s.existing(w, strings.TrimPrefix(path, "out-trade-no/"), closing)
	}
}

func (s WeChat) existing(w http.ResponseWriter, number string, closing bool) {
	c, ok := s.of(parse(number))
	switch {
	case !ok:
		s.refuse(w, http.StatusNotFound, "ORDER_NOT_EXIST")
	case closing && c.Phase == payment.PhasePaid:
		s.refuse(w, http.StatusBadRequest, "ORDERPAID")
	case closing:
		s.close(c.Payment)
		s.reply(w, http.StatusNoContent, nil)
	default:
		s.reply(w, http.StatusOK, weChatTrade(c))
	}
}

func weChatTrade(c Charge) any {
	state := map[payment.Phase]string{
		payment.PhaseOpen: "NOTPAY", payment.PhasePaid: "SUCCESS", payment.PhaseDeclined: "PAYERROR",
		payment.PhaseClosed: "CLOSED",
	}[c.Phase]
	return map[string]any{
		"out_trade_no": number(c.Payment), "mchid": WeChatMerchant, "trade_state": state, "transaction_id": c.Transaction,
		"amount":       map[string]any{"total": c.AmountMinor, "currency": c.Currency},
		"success_time": c.PaidAt.Format(time.RFC3339),
		"payer":        map[string]any{"openid": Payer},
	}
}

// Report returns an encrypted notice. Only money is reported.
func (s WeChat) Report(id string, c Charge) (http.Header, []byte, bool) {
	header, body := s.Notice(id, "TRANSACTION.SUCCESS", weChatTrade(c))
	return header, body, c.Phase == payment.PhasePaid
}

// ReportRefund returns an encrypted notice about one refund with the number of the merchant.
func (s WeChat) ReportRefund(id, refund string, c Charge, amount int64) (http.Header, []byte) {
	return s.Notice(id, "REFUND.SUCCESS", map[string]any{
		"mchid": WeChatMerchant, "out_trade_no": number(c.Payment), "transaction_id": c.Transaction, "out_refund_no": refund,
		"refund_id":     "50" + id,
		"refund_status": "SUCCESS", "success_time": c.PaidAt.Format(time.RFC3339), "user_received_account": "wallet",
		"amount": map[string]any{"total": c.AmountMinor, "refund": amount, "payer_total": c.AmountMinor,
			"payer_refund": amount},
	})
}

// Notice returns an encrypted notice.
func (s WeChat) Notice(id, kind string, content any) (http.Header, []byte) {
	plain, _ := json.Marshal(content)
	block, err := aes.NewCipher([]byte(WeChatAPIKey))
	if err != nil {
		panic(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	nonce := rand.Text()[:gcm.NonceSize()]
	body, _ := json.Marshal(map[string]any{
		"id": id, "event_type": kind, "resource_type": "encrypt-resource", "create_time": time.Now().Format(time.RFC3339),
		"resource": map[string]string{
			"algorithm": "AEAD_AES_256_GCM", "nonce": nonce, "associated_data": "transaction",
			"ciphertext": base64.StdEncoding.EncodeToString(gcm.Seal(nil, []byte(nonce), plain, []byte("transaction"))),
		},
	})
	header := http.Header{}
	s.sign(header, body)
	return header, body
}
