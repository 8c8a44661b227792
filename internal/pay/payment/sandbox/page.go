package sandbox

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"log/slog"
	"net/http"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/qr"
	"github.com/google/uuid"
	"golang.org/x/text/language"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/money"
)

// qrSize is the width of the QR code in pixels.
const qrSize = 240

//go:embed page.html page.css page.js
var files embed.FS

var pageTemplate = template.Must(template.ParseFS(files, "page.html"))

// Pages serves the bank's pages for buyers, under /sandbox/: a page for each charge
// with its QR code and buttons. Any user with the URL of a charge may act on it; the
// URL cannot be guessed.
type Pages struct {
	bank    *Bank
	pageURL string
	log     *slog.Logger
}

// NewPages returns the pages; pageURL as for NewProvider.
func NewPages(bank *Bank, pageURL string, log *slog.Logger) *Pages {
	return &Pages{bank: bank, pageURL: pageURL, log: log}
}

// Handler returns the handler of the routes under /sandbox/.
func (p *Pages) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sandbox/pay/{charge}", p.show)
	mux.HandleFunc("GET /sandbox/pay/{charge}/qr.png", p.qr)
	mux.HandleFunc("POST /sandbox/pay/{charge}/{act}", p.act)
	mux.HandleFunc("GET /sandbox/page.css", file("page.css"))
	mux.HandleFunc("GET /sandbox/page.js", file("page.js"))
	return mux
}

// view is the data of the template.
type view struct {
	*Charge
	Say     words
	Amount  string
	Open    bool
	Outcome string
	Acts    []act
}

type act struct{ Path, Label, Hint string }

// words are the texts of the page in one language. Acts are in the order of the page.
type words struct {
	Lang, Title, Badge, QR, Expires, Back     string
	Returned, Paid, Coming, Declined, Expired string
	Acts                                      []act
}

var english = words{
	Lang: "en", Title: "Test bank", Badge: "Test bank: no real money",
	QR: "QR code of this page, to open it on a phone", Expires: "Expires at", Back: "Back to the order",
	Returned: "Paid, and given back.", Paid: "Paid. You may go back to the shop.",
	Coming:   "Your money is on its way, and will be late.",
	Declined: "Declined. You may go back to the shop and try again.", Expired: "This payment has expired.",
	Acts: []act{
		{string(Prompt), "Approve", "pays, and notifies the shop at once"},
		{"decline", "Decline", "refuses to pay"},
		{"decline-funds", "Decline: no money", "refuses to pay, because the account has too little"},
		{string(Delayed), "Approve, notify later", "pays now; the shop hears of it 20 seconds later"},
		{string(Duplicate), "Approve, notify three times", "pays once; the shop hears of it three times"},
		{string(Late), "Pay too late", "the money comes five seconds after the payment expired"},
	},
}

var chinese = words{
	Lang: "zh-CN", Title: "测试银行", Badge: "测试银行：不涉及真实资金", QR: "本页二维码，可在手机上打开", Expires: "支付截止时间：",
	Back:     "返回订单",
	Returned: "已支付，并已退款。", Paid: "已支付，可返回商城。", Coming: "款项正在途中，将逾期到账。",
	Declined: "支付被拒绝，可返回商城重试。", Expired: "支付已过期。",
	Acts: []act{
		{string(Prompt), "同意支付", "支付，并立即通知商城"},
		{"decline", "拒绝支付", "不予支付"},
		{"decline-funds", "拒绝：余额不足", "因余额不足而不予支付"},
		{string(Delayed), "支付，稍后通知", "立即支付，20 秒后通知商城"},
		{string(Duplicate), "支付，通知三次", "支付一次，通知商城三次"},
		{string(Late), "逾期支付", "支付过期五秒后款项才到账"},
	},
}

var languages = language.NewMatcher([]language.Tag{language.English, language.Chinese})

// wordsFor returns the words in the language of a charge, else in the one that the browser
// asks for.
func wordsFor(r *http.Request, c *Charge) words {
	if _, i := language.MatchStrings(languages, c.Language, r.Header.Get("Accept-Language")); i == 1 {
		return chinese
	}
	return english
}

func (p *Pages) show(w http.ResponseWriter, r *http.Request) {
	c, ok := p.charge(w, r)
	if !ok {
		return
	}
	say := wordsFor(r, c)
	v := view{
		Charge: c, Say: say, Amount: money.Amount{Minor: c.AmountMinor, Currency: c.Currency}.String(), Acts: say.Acts,
		Open: c.Status == "OPEN" && c.SettlesAt == nil && p.bank.now().Before(c.ExpiresAt),
	}
	switch {
	case v.Open:
	case c.Refunded > 0:
		v.Outcome = say.Returned
	case c.Status == "PAID":
		v.Outcome = say.Paid
	case c.SettlesAt != nil:
		v.Outcome = say.Coming
	case c.Status == "DECLINED":
		v.Outcome = say.Declined
	default:
		v.Outcome = say.Expired
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Accept-Language")
	if err := pageTemplate.Execute(w, v); err != nil {
		p.log.WarnContext(r.Context(), "sandbox page", slog.Any("error", err))
	}
}

func (p *Pages) qr(w http.ResponseWriter, r *http.Request) {
	c, ok := p.charge(w, r)
	if !ok {
		return
	}
	picture, err := qrCode(p.pageURL + "/pay/" + c.ID.String())
	if err != nil {
		http.Error(w, "no code", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("Cache-Control", "private, max-age=3600")
	_, _ = w.Write(picture)
}

// quietZone is the white border of a QR code, in modules (ISO/IEC 18004).
const quietZone = 4

func qrCode(text string) ([]byte, error) {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return nil, fmt.Errorf("qr code: %w", err)
	}
	modules := code.Bounds().Dx()
	side := modules * (qrSize / (modules + 2*quietZone)) // whole pixels per module
	scaled, err := barcode.Scale(code, side, side)
	if err != nil {
		return nil, fmt.Errorf("qr code: %w", err)
	}
	canvas := image.NewPaletted(image.Rect(0, 0, qrSize, qrSize), color.Palette{color.White, color.Black})
	corner := (qrSize - side) / 2
	draw.Draw(canvas, image.Rect(corner, corner, corner+side, corner+side), scaled, image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := png.Encode(&out, canvas); err != nil {
		return nil, fmt.Errorf("qr code: %w", err)
	}
	return out.Bytes(), nil
}

func (p *Pages) act(w http.ResponseWriter, r *http.Request) {
	c, ok := p.charge(w, r)
	if !ok {
		return
	}
	var err error
	switch name := r.PathValue("act"); name {
	case "decline":
		err = p.bank.Decline(r.Context(), c.ID, string(payment.CardDeclined))
	case "decline-funds":
		err = p.bank.Decline(r.Context(), c.ID, string(payment.InsufficientFunds))
	case string(Prompt), string(Delayed), string(Duplicate), string(Late):
		err = p.bank.Approve(r.Context(), c.ID, Habit(name))
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil && !errors.Is(err, ErrNotOpen) { // the page shows the state
		p.log.ErrorContext(r.Context(), "sandbox act", slog.Any("error", err))
		http.Error(w, "the sandbox bank is away; try again", http.StatusServiceUnavailable)
		return
	}
	http.Redirect(w, r, "/sandbox/pay/"+c.ID.String(), http.StatusSeeOther)
}

func file(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, name) }
}

func (p *Pages) charge(w http.ResponseWriter, r *http.Request) (*Charge, bool) {
	charge, err := uuid.Parse(r.PathValue("charge"))
	if err != nil {
		http.NotFound(w, r)
		return nil, false
	}
	c, err := p.bank.Charge(r.Context(), charge)
	switch {
	case errors.Is(err, ErrUnknown):
		http.NotFound(w, r)
	case err != nil:
		http.Error(w, "the sandbox bank is away; try again", http.StatusServiceUnavailable)
	}
	return c, err == nil
}
