package system_test

import (
	"strings"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

func TestAReceiptIsMailedAfterPaymentAndAfterARefund(t *testing.T) {
	t.Parallel()
	server := testenv.NewLocalMailServer(t)
	s := newSite(t, func(c *config.Config) {
		c.SMTPURL, c.SMTPFrom, c.SMTPTLS = config.Secret("smtp://"+server.Host+":"+server.Port), "Shop <shop@shop.example>", config.SMTPTLSOff
		c.SellerName, c.SellerDetails, c.SellerTaxName, c.SellerTaxRate = "Example Ltd", "1 High Street | VAT ID GB123", "VAT", "20"
		c.Storefront = "https://store.example/mine/{number}"
	})
	s.start("api", "worker", "scheduler")
	ann := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	token, account := made.Users[0].AccessToken, made.Users[0].Account
	if _, err := s.database().SQL.ExecContext(t.Context(), `UPDATE users SET verified_at = now(), language = 'en' WHERE account = $1`, account); err != nil {
		t.Fatal(err)
	}
	if why := s.mutate(token, "updateNoticeSettings", "settings { reaching }", map[string]any{"choices": []any{map[string]any{"kind": "ORDER_PLACED", "channels": []string{}}}}).why(); why != "" {
		t.Fatal(why)
	}
	orderID := s.askedBack(token, made)
	var data struct {
		Order struct {
			Number  string
			Total   struct{ Amount, CurrencyCode string }
			Receipt struct {
				Number, Seller string
				SellerDetails  []string
				Tax            struct {
					Name, Rate string
					Amount     struct{ Amount string }
				}
			}
			Refunds []struct{ ID string }
		}
	}
	s.ask(token, `query($id: ID!) { order(by: { id: $id }) { number total { amount currencyCode } refunds { id }
		receipt { number seller sellerDetails tax { name rate amount { amount } } } } }`, map[string]any{"id": orderID}).into(t, &data)
	o := data.Order
	if r := o.Receipt; r.Number != o.Number || r.Seller != "Example Ltd" || strings.Join(r.SellerDetails, ";") != "1 High Street;VAT ID GB123" ||
		r.Tax.Name != "VAT" || r.Tax.Rate != "20" || r.Tax.Amount.Amount == "" {
		t.Errorf("receipt %+v", o)
	}
	amount := o.Total.CurrencyCode + " " + o.Total.Amount
	for nth, subject := range []string{"Receipt " + o.Number, "Refund for order " + o.Number} {
		if nth == 1 {
			if why := s.mutate(ann, "decideRefund", "order { status }", map[string]any{"refundId": o.Refunds[0].ID, "approve": true}).why(); why != "" {
				t.Fatal(why)
			}
		}
		m := server.To(t, account, nth+1)
		if m.Subject != subject || m.Link() != "https://store.example/mine/"+o.Number {
			t.Errorf("e-mail %q with the link %s", m.Subject, m.Link())
		}
		parts := []string{time.Now().UTC().Format("January 2006"), ", for ", " × 1: "}
		if nth == 0 {
			parts = append(parts, "paid by Test bank")
		}
		for _, part := range append(parts, amount, "Example Ltd, 1 High Street, VAT ID GB123", "20% VAT: ", o.Receipt.Tax.Amount.Amount) {
			if !strings.Contains(m.Plain, part) {
				t.Errorf("%q is not in %q", part, m.Plain)
			}
		}
	}
}

// A stranger can have named the address.
func TestNoReceiptGoesToAnAddressThatWasNotVerified(t *testing.T) {
	t.Parallel()
	server := testenv.NewLocalMailServer(t)
	s := newSite(t, func(c *config.Config) {
		c.SMTPURL, c.SMTPFrom, c.SMTPTLS = config.Secret("smtp://"+server.Host+":"+server.Port), "Shop <shop@shop.example>", config.SMTPTLSOff
	})
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	token := made.Users[0].AccessToken
	s.paid(token, s.bought(token, made))
	var mails int
	if err := s.database().SQL.QueryRowContext(t.Context(), `SELECT count(*) FROM mails`).Scan(&mails); err != nil || mails != 0 {
		t.Errorf("%d e-mails, %v", mails, err)
	}
}
