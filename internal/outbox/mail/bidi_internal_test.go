package mail

import (
	"strings"
	"testing"
	"time"

	"seckill/internal/platform/locale"
)

// Names from right to left do not mix with the words and numbers around them.
func TestNamesFromRightToLeftAreIsolated(t *testing.T) {
	t.Parallel()
	const name = "هاتف ذكي 5G (أسود)"
	isolated := "\u2068" + name + "\u2069"
	content := Content{
		Path: "/orders/1", Life: time.Hour,
		Notice:  NoticeContent{Name: name, Number: "1", Amount: "9.00 CNY", At: time.Now().Add(time.Hour)},
		Receipt: ReceiptContent{Number: "1", Item: name, Quantity: 2, Amount: "9.00 CNY", Buyer: name, At: time.Now(), Seller: name, Details: name, Tax: "1.00 CNY", TaxRate: "19", TaxName: name},
	}
	for _, kind := range append([]Kind{VerifyAddress, Receipt, RefundReceipt}, PaymentDeadline, Admitted) {
		for _, language := range []locale.Language{locale.English, locale.Chinese} {
			words, err := write(kind, language, "https://shop.example.com", content, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			for where, text := range map[string]string{"subject": words.subject, "text": words.plain, "page": words.html} {
				if strings.Count(text, name) != strings.Count(text, isolated) {
					t.Errorf("%s of %s in %s: %q", where, kind, language, text)
				}
			}
			if strings.Contains(words.html, "<p style") || !strings.Contains(words.html, `<p dir="auto"`) {
				t.Errorf("paragraphs of %s in %s: %s", kind, language, words.html)
			}
		}
	}
}
