package sandbox

import (
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"

	"github.com/google/uuid"
	"github.com/skip2/go-qrcode"

	"seckill/internal/money"
	"seckill/internal/payment"
)

// qrSize is the width of the QR code in pixels.
const qrSize = 240

//go:embed page.html page.css
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
	mux.HandleFunc("GET /sandbox/page.css", p.css)
	return mux
}

// view is the data of the template.
type view struct {
	*Charge
	Amount  string
	Open    bool
	Outcome string
	Acts    []act
}

type act struct{ Path, Label, Hint string }

// acts are the buttons of the page, in their order.
var acts = []act{
	{string(Prompt), "Approve", "pays, and notifies the shop at once"},
	{"decline", "Decline", "refuses to pay"},
	{"decline-funds", "Decline: no money", "refuses to pay, because the account has too little"},
	{string(Delayed), "Approve, notify later", "pays now; the shop hears of it 20 seconds later"},
	{string(Duplicate), "Approve, notify three times", "pays once; the shop hears of it three times"},
	{string(Late), "Pay too late", "the money comes five seconds after the payment expired"},
}

func (p *Pages) show(w http.ResponseWriter, r *http.Request) {
	c, ok := p.charge(w, r)
	if !ok {
		return
	}
	amount := money.Amount{Minor: c.AmountMinor, Currency: c.Currency}
	v := view{Charge: c, Amount: amount.String(), Acts: acts, Open: c.Status == "OPEN" && c.SettlesAt == nil && p.bank.now().Before(c.ExpiresAt)}
	switch {
	case v.Open:
	case c.Refunded > 0:
		v.Outcome = "Paid, and given back."
	case c.Status == "PAID":
		v.Outcome = "Paid. You may go back to the shop."
	case c.SettlesAt != nil:
		v.Outcome = "Your money is on its way, and will be late."
	case c.Status == "DECLINED":
		v.Outcome = "Declined. You may go back to the shop and try again."
	default:
		v.Outcome = "This payment has expired."
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err := pageTemplate.Execute(w, v); err != nil {
		p.log.WarnContext(r.Context(), "sandbox page", slog.Any("error", err))
	}
}

func (p *Pages) qr(w http.ResponseWriter, r *http.Request) {
	c, ok := p.charge(w, r)
	if !ok {
		return
	}
	png, err := qrcode.Encode(p.pageURL+"/pay/"+c.ID.String(), qrcode.Medium, qrSize)
	if err != nil {
		http.Error(w, "no code", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("Cache-Control", "private, max-age=3600")
	_, _ = w.Write(png)
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

func (p *Pages) css(w http.ResponseWriter, r *http.Request) {
	http.ServeFileFS(w, r, files, "page.css")
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
