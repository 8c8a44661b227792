// Command payment-service is a payment service for the table [payments.service] of the settings, in memory:
// its page approves or declines. A real one would keep its charges in a database, ask a
// bank, and repeat webhooks that are not answered with 2xx.
//
//	PAYMENT_SECRET=whsec_… go run ./examples/payment-service -listen 127.0.0.1:7070
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// charge is a payment of the shop with its current phase.
type charge struct {
	Payment     string    `json:"payment"`
	Description string    `json:"description"`
	AmountMinor int64     `json:"amountMinor"`
	Amount      string    `json:"amount"`
	Currency    string    `json:"currency"`
	ExpiresAt   time.Time `json:"expiresAt"`
	ReturnURL   string    `json:"returnUrl"`
	WebhookURL  string    `json:"webhookUrl"`
	Phase       string    `json:"phase"`
	Transaction string    `json:"transaction"`
	refunds     map[string]int64
}

type service struct {
	own     string // address of the page
	secret  *standardwebhooks.Webhook
	mu      sync.Mutex
	charges map[string]*charge // guarded by mu
}

func main() {
	listen := flag.String("listen", "127.0.0.1:7070", "address to listen on")
	flag.Parse()
	secret, err := standardwebhooks.NewWebhook(os.Getenv("PAYMENT_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(os.Stdout, "listening on http://"+l.Addr().String())
	s := &service{own: "http://" + l.Addr().String(), secret: secret, charges: map[string]*charge{}}
	http.HandleFunc("POST /{call}", s.call)
	http.HandleFunc("/pay/{payment}", s.page)
	log.Fatal((&http.Server{ReadHeaderTimeout: 5 * time.Second}).Serve(l))
}

// call answers the shop: create, query, close or refund. Repeating a call changes nothing.
func (s *service) call(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<10))
	if err != nil || s.secret.Verify(body, r.Header) != nil {
		http.Error(w, "not signed by the shop", http.StatusUnauthorized)
		return
	}
	var in struct {
		charge
		Refund string `json:"refund"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.charges[in.Payment]
	call := r.PathValue("call")
	if c == nil && call == "create" {
		c = &in.charge
		c.Phase, c.refunds = "OPEN", map[string]int64{}
		s.charges[c.Payment] = c
	}
	switch {
	case c == nil && call != "refund":
		s.reply(w, r, map[string]string{"phase": "UNKNOWN"})
	case call == "create":
		page := s.own + "/pay/" + c.Payment
		s.reply(w, r, map[string]string{"ref": c.Payment, "redirectUrl": page, "qrCode": page})
	case call == "query" || call == "close":
		if c.Phase == "OPEN" && (call == "close" || time.Now().After(c.ExpiresAt)) {
			c.Phase = "CLOSED"
		}
		s.reply(w, r, c)
	case call == "refund" && c.refund(in.Refund, in.AmountMinor):
		s.reply(w, r, struct{}{})
	default:
		http.Error(w, "refused", http.StatusConflict)
	}
}

// refund gives money back once per id, and never more than was paid.
func (c *charge) refund(id string, amount int64) bool {
	if c == nil || c.Phase != "PAID" {
		return false
	}
	c.refunds[id] = amount
	var all int64
	for _, minor := range c.refunds {
		all += minor
	}
	if all > c.AmountMinor {
		delete(c.refunds, id)
		return false
	}
	return true
}

// reply signs a reply under the id of its request.
func (s *service) reply(w http.ResponseWriter, r *http.Request, v any) {
	body, _ := json.Marshal(v)
	s.sign(w.Header(), r.Header.Get(standardwebhooks.HeaderWebhookID), body)
	_, _ = w.Write(body)
}

func (s *service) sign(header http.Header, id string, body []byte) {
	now := time.Now()
	signature, _ := s.secret.Sign(id, now, body)
	header.Set(standardwebhooks.HeaderWebhookID, id)
	header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	header.Set(standardwebhooks.HeaderWebhookSignature, signature)
}

// page lets the buyer approve or decline, sends the webhook, and redirects to the shop.
func (s *service) page(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.charges[r.PathValue("payment")]
	if c == nil {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		fmt.Fprintf(w, `<form method=post><button name=as value=succeeded>Pay %s %s</button><button name=as value=declined>Decline</button></form>`, c.Currency, c.Amount)
		return
	}
	as := r.FormValue("as")
	if phase := map[string]string{"succeeded": "PAID", "declined": "DECLINED"}[as]; c.Phase == "OPEN" && phase != "" &&
		time.Now().Before(c.ExpiresAt) {
		c.Phase, c.Transaction = phase, "tx_"+rand.Text()
		go s.report("payment."+as, *c)
	}
	http.Redirect(w, r, c.ReturnURL, http.StatusSeeOther)
}

func (s *service) report(kind string, c charge) {
	body, _ := json.Marshal(struct {
		Type string    `json:"type"`
		At   time.Time `json:"at"`
		charge
	}{kind, time.Now(), c})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.WebhookURL, bytes.NewReader(body))
	if err != nil {
		return
	}
	s.sign(req.Header, "evt_"+rand.Text(), body)
	if res, err := (&http.Client{}).Do(req); err == nil {
		_ = res.Body.Close()
	}
}
