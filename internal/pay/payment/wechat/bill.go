package wechat

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha1" //nolint:gosec // what WeChat Pay offers; it shows that the download is whole
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/billcsv"
	"seckill/internal/platform/id"
)

const (
	billPath = "/v3/bill/tradebill"
	// maxBill bounds a bill, in bytes: a million payments.
	maxBill = 512 << 20
)

var beijing = time.FixedZone("Beijing", 8*60*60)

// Titles of the columns of a bill.
const (
	colTime       = "交易时间"
	colTx         = "微信订单号"
	colNumber     = "商户订单号"
	colState      = "交易状态"
	colRefund     = "商户退款单号"
	colRefundSum  = "申请退款金额"
	colFee        = "手续费"
	colSum        = "订单金额"
	stateSuccess  = "SUCCESS"
	stateRefunded = "REFUND"
)

// Merchant returns the merchant: QR codes and links share its bill.
func (p *Provider) Merchant() string { return "wechat " + p.cfg.MerchantID }

// Bill returns the bill of trades of the day in Beijing that has the date of a time in UTC. WeChat Pay has it
// from 10 o'clock on the day after.
func (p *Provider) Bill(ctx context.Context, day time.Time) (payment.Bill, error) {
	year, month, date := day.UTC().Date()
	from := time.Date(year, month, date, 0, 0, 0, 0, beijing)
	bill := payment.Bill{From: from, Until: from.AddDate(0, 0, 1)}
	text, err := p.download(ctx, from)
	if isCode(err, "NO_STATEMENT_EXIST") {
		return bill, nil
	}
	if err != nil {
		return bill, err
	}
	err = billcsv.Read(bytes.NewReader(text), []string{colTime, colTx, colNumber, colState, colRefund, colRefundSum,
		colFee, colSum}, func(row billcsv.Row) error {
		line, err := billLine(row)
		if err == nil && line.Transaction != "" {
			bill.Lines = append(bill.Lines, line)
		}
		return err
	})
	return bill, err
}

// download returns a bill, unpacked. Its address is signed by WeChat Pay; the file itself is
// not, and is compared with the hash.
func (p *Provider) download(ctx context.Context, day time.Time) ([]byte, error) {
	at := "https://api.mch.weixin.qq.com" + billPath + "?bill_date=" + day.Format(time.DateOnly) +
		"&bill_type=ALL&tar_type=GZIP"
	found, err := p.client.Get(ctx, at)
	if err != nil {
		return nil, err // its code is read; the caller's error says what was asked
	}
	defer found.Response.Body.Close()
	var place struct {
		HashType    string `json:"hash_type"`
		HashValue   string `json:"hash_value"`
		DownloadURL string `json:"download_url"`
	}
	if err := json.NewDecoder(found.Response.Body).Decode(&place); err != nil {
		return nil, fmt.Errorf("address of the bill: %w", err)
	}
	where, err := url.Parse(place.DownloadURL)
	if err != nil || where.Host == "" || place.HashType != "SHA1" {
		return nil, errors.New("address of the bill: malformed")
	}
	file, err := p.unsigned.Get(ctx, where.String())
	if err != nil {
		return nil, refusal("download bill", err)
	}
	defer file.Response.Body.Close()
	text, err := unpack(file.Response.Body)
	if err != nil {
		return nil, err
	}
	if hash := sha1.Sum(text); !strings.EqualFold(hex.EncodeToString(hash[:]), place.HashValue) { //nolint:gosec // see above
		return nil, errors.New("bill: its hash is another one: the download is broken")
	}
	return text, nil
}

// unpack returns a file that may be packed by gzip: the transport may have unpacked it.
func unpack(from io.Reader) ([]byte, error) {
	file, err := io.ReadAll(io.LimitReader(from, maxBill))
	if err != nil {
		return nil, fmt.Errorf("download bill: %w", err)
	}
	if !bytes.HasPrefix(file, []byte{0x1f, 0x8b}) {
		return file, nil
	}
	packed, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("unpack bill: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(packed, maxBill))
	if err != nil {
		return nil, fmt.Errorf("unpack bill: %w", err)
	}
	return text, nil
}

// billLine returns a line of a bill; a zero one where no money moved. A refund has a line of
// its own, in which the state of the trade is REFUND.
func billLine(row billcsv.Row) (payment.BillLine, error) {
	line := payment.BillLine{
		Number: row[colNumber], Payment: billcsv.Number[id.Payment](row[colNumber]), Transaction: row[colTx],
		Refund: row[colState] == stateRefunded,
	}
	if !line.Refund && row[colState] != stateSuccess {
		return payment.BillLine{}, nil
	}
	var err error
	if line.At, err = time.ParseInLocation("2006-01-02 15:04:05", row[colTime], beijing); err != nil {
		return line, fmt.Errorf("bill: %w", err)
	}
	if line.Refund {
		line.RefundRef = strings.TrimSpace(row[colRefund])
		line.RefundKey = billcsv.Number[id.Refund](row[colRefund])
		line.Amount, err = billcsv.Yuan(row[colRefundSum])
		return line, err
	}
	if line.Amount, err = billcsv.Yuan(row[colSum]); err != nil {
		return line, err
	}
	// The fee has up to five digits after the point where the rate asks for it.
	fee, err := billcsv.Fee(row[colFee])
	line.Fee = &fee
	return line, err
}
