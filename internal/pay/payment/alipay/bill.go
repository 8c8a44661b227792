package alipay

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	api "github.com/smartwalle/alipay/v3"
	"golang.org/x/text/encoding/simplifiedchinese"

	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/billcsv"
	"seckill/internal/platform/id"
)

const (
	// maxBill bounds a bill, in bytes: a million payments.
	maxBill = 512 << 20
	// noBill is the sub code for a day without trades, and for one whose bill is not there yet.
	noBill = "isp.bill_not_exist"
	// ready is how long after the end of a day its bill is there.
	ready = 9 * time.Hour
)

// Titles of the columns of a bill.
const (
	colTx      = "支付宝交易号"
	colNumber  = "商户订单号"
	colKind    = "业务类型"
	colDone    = "完成时间"
	colSum     = "订单金额（元）"
	colRefund  = "退款批次号/请求号"
	colFee     = "服务费（元）"
	kindTrade  = "交易"
	kindRefund = "退款"
)

// Merchant returns the application: QR codes and pages share its bill.
func (p *Provider) Merchant() string { return "alipay " + p.appID }

// Bill returns the bill of trades of the day in Beijing that has the date of a time in UTC. Alipay has it from 9
// o'clock on the day after.
func (p *Provider) Bill(ctx context.Context, day time.Time) (payment.Bill, error) {
	year, month, date := day.UTC().Date()
	from := time.Date(year, month, date, 0, 0, 0, 0, beijing)
	bill := payment.Bill{From: from, Until: from.AddDate(0, 0, 1)}
	found, err := p.client.BillDownloadURLQuery(ctx,
		api.BillDownloadURLQuery{BillType: "trade", BillDate: from.Format(time.DateOnly)})
	if err == nil && found.SubCode == noBill && p.clock.Now().After(bill.Until.Add(ready)) {
		return bill, nil
	}
	if err := failure("bill", err, found, func() api.Error { return found.Error }); err != nil {
		return bill, err
	}
	file, err := p.download(ctx, found.BillDownloadURL)
	if err != nil {
		return bill, err
	}
	bill.Lines, err = readBill(file)
	return bill, err
}

// download returns the file of a bill. Its address comes from a signed reply.
func (p *Provider) download(ctx context.Context, at string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, fmt.Errorf("download bill: %w", err)
	}
	res, err := p.files.Do(req)
	if err != nil {
		return nil, fmt.Errorf("download bill: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("download bill: status %d", res.StatusCode)
	}
	file, err := io.ReadAll(io.LimitReader(res.Body, maxBill))
	if err != nil {
		return nil, fmt.Errorf("download bill: %w", err)
	}
	return file, nil
}

// readBill reads the file of a zip archive that has the lines of trades: the other one has
// totals. Both are encoded in GBK.
func readBill(file []byte) ([]payment.BillLine, error) {
	archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, fmt.Errorf("unpack bill: %w", err)
	}
	for _, f := range archive.File {
		lines, err := readTable(f)
		if err == nil {
			return lines, nil
		}
		if !errors.Is(err, billcsv.ErrNoTable) {
			return nil, err
		}
	}
	return nil, errors.New("bill has no table of trades")
}

func readTable(f *zip.File) (lines []payment.BillLine, err error) {
	packed, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("unpack bill: %w", err)
	}
	defer packed.Close()
	text := simplifiedchinese.GBK.NewDecoder().Reader(io.LimitReader(packed, maxBill))
	return lines, billcsv.Read(text, []string{colTx, colNumber, colKind, colDone, colSum, colRefund, colFee},
		func(row billcsv.Row) error {
			line, err := billLine(row)
			if err == nil && line.Transaction != "" {
				lines = append(lines, line)
			}
			return err
		})
}

// billLine returns a line of a bill; a zero one where no money moved.
func billLine(row billcsv.Row) (payment.BillLine, error) {
	line := payment.BillLine{
		Number: row[colNumber], Payment: billcsv.Number[id.Payment](row[colNumber]), Transaction: row[colTx],
		Refund: row[colKind] == kindRefund,
	}
	if !line.Refund && row[colKind] != kindTrade {
		return payment.BillLine{}, nil
	}
	var err error
	if line.At, err = time.ParseInLocation(timeFormat, row[colDone], beijing); err != nil {
		return line, fmt.Errorf("bill: %w", err)
	}
	if line.Amount, err = billcsv.Yuan(row[colSum]); err != nil {
		return line, err
	}
	if line.Refund {
		line.RefundRef = strings.TrimSpace(row[colRefund])
		line.RefundKey = billcsv.Number[id.Refund](row[colRefund])
		return line, nil
	}
	fee, err := billcsv.Fee(row[colFee])
	line.Fee = &fee
	return line, err
}
