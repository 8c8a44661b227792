package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/predicate"
	"seckill/ent/sandboxcharge"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
)

const (
	// perStep bounds one step.
	perStep = 100
	// parallel is how many call-backs are sent concurrently.
	parallel = 8
	// CallTimeout bounds one delivery.
	CallTimeout = 5 * time.Second
	// firstPause and maxPause bound the pause before a rejected call-back is sent
	// again; it doubles.
	firstPause = 500 * time.Millisecond
	maxPause   = time.Minute
	// lease prevents other processes from sending the same call-back concurrently.
	lease = 10 * time.Second
)

// Courier delivers the bank's call-backs to the merchant until they are accepted.
type Courier struct {
	bank   *Bank
	url    string
	signer *Signer
	client *http.Client
	log    *slog.Logger

	Timeout time.Duration // of one delivery; 0 = CallTimeout
}

// NewCourier returns a courier to the merchant's address,
// ".../webhooks/payments/sandbox".
func NewCourier(bank *Bank, url string, signer *Signer, log *slog.Logger) *Courier {
	return &Courier{bank: bank, url: url, signer: signer, client: &http.Client{}, log: log}
}

// Loop returns the delivery loop.
func (c *Courier) Loop() periodic.Loop {
	return periodic.Loop{Name: "sandbox call-backs", Every: 200 * time.Millisecond, Idle: time.Second,
		HasWork: c.bank.db.AnyRows(
			func() *sql.Selector { return postgres.Rows(sandboxcharge.Table, c.bank.settlesLate()...) },
			func() *sql.Selector { return postgres.Rows(sandboxcharge.Table, c.bank.callsDue()...) }),
		Timeout: 30 * time.Second, Step: c.Step, Log: c.log}
}

func (b *Bank) callsDue() []predicate.SandboxCharge {
	return []predicate.SandboxCharge{sandboxcharge.CallTimesGT(0), sandboxcharge.CallDueLTE(b.now())}
}

// Step settles late money and delivers due call-backs.
func (c *Courier) Step(ctx context.Context) (map[string]int, error) {
	if _, err := c.bank.SettleLate(ctx); err != nil {
		return nil, err
	}
	due, err := c.bank.db.Ent.SandboxCharge.Query().
		Where(c.bank.callsDue()...).
		Order(ent.Asc(sandboxcharge.FieldCallDue)).Limit(perStep).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find call-backs: %w", err)
	}
	var mu sync.Mutex
	var failed []error
	counts := map[string]int{}
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for _, of := range due {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			what, err := c.deliver(ctx, of)
			mu.Lock()
			defer mu.Unlock()
			counts[what]++
			if err != nil {
				failed = append(failed, err)
			}
		})
	}
	wg.Wait()
	return counts, errors.Join(failed...)
}

// deliver sends the call-back of a charge and records whether it was accepted.
func (c *Courier) deliver(ctx context.Context, of *ent.SandboxCharge) (string, error) {
	mine, err := c.update(ctx, of, func(u *ent.SandboxChargeUpdate) {
		u.SetCallDue(c.bank.now().Add(lease)).
			AddCallTries(1)
	})
	if err != nil || !mine {
		return "passed", err
	}
	of.CallTries++
	if err := c.post(ctx, of.Call); err != nil {
		c.log.InfoContext(ctx, "call-back not taken", slog.String("charge", of.ID.String()), slog.Any("error", err))
		pause := min(firstPause<<min(of.CallTries-1, 10), maxPause)
		_, err := c.update(ctx, of, func(u *ent.SandboxChargeUpdate) { u.SetCallDue(c.bank.now().Add(pause)) })
		return "refused", err
	}
	_, err = c.update(ctx, of, func(u *ent.SandboxChargeUpdate) { u.AddCallTimes(-1).SetCallDue(c.bank.now()) })
	return "delivered", err
}

// update changes the call-back of a charge unless another process has changed it since it was read.
func (c *Courier) update(ctx context.Context, of *ent.SandboxCharge, set func(*ent.SandboxChargeUpdate)) (bool, error) {
	changed := 0
	err := c.bank.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		u := tx.SandboxCharge.Update().Where(sandboxcharge.ID(of.ID), sandboxcharge.CallTries(of.CallTries),
			sandboxcharge.CallTimesGT(0))
		set(u)
		var err error
		changed, err = u.Save(ctx)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("write down call-back of charge %s: %w", of.ID, err)
	}
	return changed == 1, nil
}

func (c *Courier) post(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, CallTimeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(SignatureHeader, c.signer.Sign(body, c.bank.clock.Now()))
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 4<<10)) // so that the connection is reused
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("merchant answered %s", res.Status)
	}
	return nil
}

// Close closes idle connections.
func (c *Courier) Close() { c.client.CloseIdleConnections() }
