package providertest

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/text/encoding/simplifiedchinese"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
)

// beijing is the time zone of bills.
var beijing = time.FixedZone("Beijing", 8*60*60)

// booked is a movement of money in the ledger.
type booked struct {
	charge Charge
	refund id.Refund // zero = money that came
	amount int64
	at     time.Time
}

// day returns the movements of a day in Beijing, written 2026-11-20, oldest first.
func (b *Bank) day(date string) (list []booked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	on := func(at time.Time) bool { return at.In(beijing).Format(time.DateOnly) == date }
	for _, c := range b.charges {
		if c.Phase == payment.PhasePaid && !c.Unbilled && on(c.PaidAt) {
			list = append(list, booked{charge: *c, amount: c.AmountMinor, at: c.PaidAt})
		}
	}
	for refund, r := range b.back {
		if on(r.at) {
			list = append(list, booked{*b.charges[r.of], refund, r.amount, r.at})
		}
	}
	slices.SortFunc(list, func(x, y booked) int {
		return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.charge.Transaction, y.charge.Transaction))
	})
	return list
}

// Change changes a charge, as the provider's own staff may.
func (b *Bank) Change(id id.Payment, change func(c *Charge)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b.charges[id])
}

// OpenOther opens a charge that the shop has not asked for, such as one of other software.
func (b *Bank) OpenOther(number string, currency string) id.Payment {
	c := b.open(Charge{Payment: id.Payment(uuid.New()), Number: number, Currency: currency})
	return c.Payment
}

// GiveBack refunds money of a charge, as staff may on the provider's pages.
func (b *Bank) GiveBack(paymentID id.Payment, amount int64) error {
	c, _ := b.of(paymentID)
	return b.refund(c.Transaction, id.Refund(uuid.New()), amount)
}

// FeePerMille is what the imitated services keep, as bills say.
const FeePerMille = 6

func (c Charge) number() string { return cmp.Or(c.Number, number(c.Payment)) }

func (s WeChat) bill(w http.ResponseWriter, r *http.Request) {
	text := s.billText(r.URL.Query().Get("bill_date"))
	if text == nil {
		s.refuse(w, http.StatusBadRequest, "NO_STATEMENT_EXIST")
		return
	}
	hash := sha1.Sum(text)
	s.reply(w, http.StatusOK, map[string]string{
		"hash_type": "SHA1", "hash_value": hex.EncodeToString(hash[:]),
		"download_url": "https://api.mch.weixin.qq.com/v3/billdownload/file?token=" + r.URL.Query().Get("bill_date"),
	})
}

// billFile returns the file, which is packed and not signed.
func (s WeChat) billFile(w http.ResponseWriter, r *http.Request) {
	packed := gzip.NewWriter(w)
	_, _ = packed.Write(s.billText(r.URL.Query().Get("token")))
	_ = packed.Close()
}

// billText returns a bill in the format of WeChat Pay; nil for a day without trades.
func (s WeChat) billText(date string) []byte {
	var text bytes.Buffer
	text.WriteString("\ufeff交易时间,公众账号ID,商户号,特约商户号,设备号,微信订单号,商户订单号,用户标识,交易类型,交易状态,付款银行,货币种类,应结订单金额,代金券金额," +
		"微信退款单号,商户退款单号,退款金额,充值券退款金额,退款类型,退款状态,商品名称,商户数据包,手续费,费率,订单金额,申请退款金额,费率备注\r\n")
	list := s.day(date)
	if len(list) == 0 {
		return nil
	}
	for _, m := range list {
		state, sum, back, refund, fee := "SUCCESS", m.amount, int64(0), "0", float64(m.amount)*FeePerMille/1000
		if !m.refund.IsZero() {
			state, sum, back, refund, fee = "REFUND", 0, m.amount, number(m.refund), -fee
		}
		fmt.Fprintf(&text, "`%s,`wx1,`%s,`0,`,`%s,`%s,`o1,`NATIVE,`%s,`CFT,`CNY,`%s,`0.00,`50,`%s,`%s,`0.00,`ORIGINAL,`SUCCESS,`Order,`,`%.5f,`0.60%%,`%s,`%s,`\r\n",
			m.at.In(beijing).Format(time.DateTime), WeChatMerchant, m.charge.Transaction, m.charge.number(), state, yuan(sum),
			refund, yuan(back), fee/100, yuan(sum), yuan(back))
	}
	fmt.Fprintf(&text, "总交易单数,应结订单总金额,退款总金额,充值券退款总金额,手续费总金额,订单总金额,申请退款总金额\r\n`%d,`0.00,`0.00,`0.00,`0.00000,`0.00,`0.00\r\n", len(list))
	return text.Bytes()
}

// bill returns a bill in the format of Alipay: a zip archive with two tables in GBK.
func (s Alipay) bill(w http.ResponseWriter, r *http.Request) {
	var lines strings.Builder
	lines.WriteString("#支付宝业务明细查询\n#账号：[20880000000000010156]\n#-----业务明细列表----\n支付宝交易号,商户订单号,业务类型,商品名称,创建时间,完成时间,门店编号,门店名称,操作员,终端号,对方账户," +
		"订单金额（元）,商家实收（元）,支付宝红包（元）,集分宝（元）,支付宝优惠（元）,商家优惠（元）,券核销金额（元）,券名称,商家红包消费金额（元）,卡消费金额（元）,退款批次号/请求号,服务费（元）,分润（元）,备注\n")
	for _, m := range s.day(r.URL.Query().Get("date")) {
		kind, sign, refund, fee := "交易", "", "", float64(m.amount)*FeePerMille/1000
		if !m.refund.IsZero() {
			kind, sign, refund, fee = "退款", "-", number(m.refund), 0
		}
		at := m.at.In(beijing).Format(time.DateTime)
		fmt.Fprintf(&lines, "%s\t,%s\t,%s,Order,%s,%s,,,,,a***@x.cn,%s%s,%s%s,0.00,0.00,0.00,0.00,0.00,,0.00,0.00,%s\t,%.2f,0.00,\n",
			m.charge.Transaction, m.charge.number(), kind, at, at, sign, yuan(m.amount), sign, yuan(m.amount), refund, fee/100)
	}
	lines.WriteString("#-----业务明细列表结束----\n")
	archive := zip.NewWriter(w)
	for name, text := range map[string]string{"1_业务明细.csv": lines.String(), "1_业务明细(汇总).csv": "#支付宝业务汇总查询\n门店编号,门店名称\n"} {
		file, _ := archive.Create(name)
		encoded, err := simplifiedchinese.GBK.NewEncoder().String(text)
		if err != nil {
			panic(err)
		}
		_, _ = file.Write([]byte(encoded))
	}
	_ = archive.Close()
}
