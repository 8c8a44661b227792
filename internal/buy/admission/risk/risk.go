// Package risk asks a service of the installation whether a buyer may pass: a risk
// engine, a bot detector, a list of blocked users.
//
// It owns the protocol and its bounds. The question is sent by POST as JSON
//
//	{"version":1,"action":"issuePath","user":"usr_…","sale":"sal_…","item":"itm_…","address":"93.184.216.34",
//	 "secondsFromOpening":12.345,"orders":{"contact":0,"address":3,"payment":0,"network":7,"browser":2}}
//
// where orders counts those of the sale in the clusters of the buyer, as operators see them, and is left
// out while they are not known. The version grows when a field changes or goes; services ignore fields
// that they do not know. The reply is {"allow":true} or {"allow":false,"retryAfterMs":60000}. Without a
// reply in time the buyer passes, or is refused with a retryable error, as the settings
// say. It does not own the decision, nor what a refused buyer is shown.
package risk

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/telemetry"
)

const (
	// DefaultTimeout bounds one question.
	DefaultTimeout = 50 * time.Millisecond
	// maxQuestions bounds the connections to the service, and so the questions at a
	// time; further ones wait within their own timeout.
	maxQuestions = 64
	// maxReplyBytes bounds the reply.
	maxReplyBytes = 4 << 10
	// DefaultRetry is the retry interval of a refused buyer if the reply has none.
	DefaultRetry = time.Minute
	// maxRetry bounds the retry interval of the reply.
	maxRetry = time.Hour
)

// Action is what the buyer wants to do.
type Action string

// Actions.
const (
	IssuePath  Action = "issuePath"
	EnterQueue Action = "enterQueue"
	// JoinWaitlist is asked like the others: an offer needs no path token.
	JoinWaitlist Action = "joinWaitlist"
)

// Question describes a buyer and what they want to do.
type Question struct {
	Action Action
	User   id.User
	Sale   id.Sale
	Item   id.Item
	From   netip.Addr // address of the request
	// SinceOpening is the time since the opening of the sale; negative before.
	SinceOpening time.Duration
	Orders       *Orders // nil = not known now
}

// Orders are the numbers of orders of a sale that share something with a buyer, where several
// accounts share it.
type Orders struct {
	Contact int `json:"contact"`
	Address int `json:"address"` // of delivery
	Payment int `json:"payment"` // the means that the buyer paid by before
	Network int `json:"network"`
	Browser int `json:"browser"`
}

// version is that of the protocol.
const version = 1

// message is the form of a question.
type message struct {
	Version            int     `json:"version"`
	Action             Action  `json:"action"`
	User               string  `json:"user"`
	Sale               string  `json:"sale"`
	Item               string  `json:"item"`
	Address            string  `json:"address"`
	SecondsFromOpening float64 `json:"secondsFromOpening"`
	Orders             *Orders `json:"orders,omitempty"`
}

// Config holds the settings of a Hook.
type Config struct {
	URL     string
	Timeout time.Duration // of one question; 0 = DefaultTimeout
	// FailClosed refuses buyers while the service does not answer.
	FailClosed bool
	Registerer prometheus.Registerer // nil = not counted
}

// Hook asks the service. A nil Hook lets every buyer pass. It is safe for concurrent use.
type Hook struct {
	cfg     Config
	client  *http.Client
	answers *prometheus.CounterVec
}

// New returns a hook.
func New(cfg Config) *Hook {
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	h := &Hook{
		cfg: cfg,
		client: &http.Client{
			Transport: &http.Transport{
				MaxConnsPerHost: maxQuestions, MaxIdleConnsPerHost: maxQuestions, IdleConnTimeout: time.Minute,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		answers: telemetry.For(cfg.Registerer, "risk").
			Counters("answers_total", "Answers of the risk service, by answer: allow, refuse, none.", "answer"),
	}
	return h
}

// Close closes the idle connections.
func (h *Hook) Close() { h.client.CloseIdleConnections() }

// Ask returns nil if the buyer may pass, fault.Throttled if the service refuses, and
// UNAVAILABLE if it does not answer and the settings refuse then.
func (h *Hook) Ask(ctx context.Context, q Question) error {
	if h == nil {
		return nil
	}
	v, err := h.ask(ctx, q)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		h.answers.WithLabelValues("none").Inc()
		if h.cfg.FailClosed {
			return fault.Wrap(fault.Unavailable, "The check of this purchase does not answer. Please try again shortly.", err)
		}
		return nil
	case *v.Allow:
		h.answers.WithLabelValues("allow").Inc()
		return nil
	}
	h.answers.WithLabelValues("refuse").Inc()
	retry := min(time.Duration(v.RetryAfterMs)*time.Millisecond, maxRetry)
	if v.RetryAfterMs <= 0 || retry <= 0 {
		retry = DefaultRetry
	}
	return fault.Throttled{RetryAfter: retry}
}

// verdict is a reply of the service.
type verdict struct {
	Allow        *bool `json:"allow"` // required
	RetryAfterMs int64 `json:"retryAfterMs"`
}

func (h *Hook) ask(ctx context.Context, q Question) (verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	address := ""
	if q.From.IsValid() {
		address = q.From.Unmap().WithZone("").String()
	}
	body, err := json.Marshal(message{
		Version: version, Action: q.Action, User: q.User.Public(), Sale: q.Sale.Public(), Item: q.Item.Public(),
		Address: address, SecondsFromOpening: float64(q.SinceOpening.Milliseconds()) / 1000, Orders: q.Orders,
	})
	if err != nil {
		return verdict{}, fmt.Errorf("write question of risk: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return verdict{}, fmt.Errorf("ask about risk: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := h.client.Do(req)
	if err != nil {
		return verdict{}, fmt.Errorf("ask about risk: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return verdict{}, fmt.Errorf("ask about risk: status %d", res.StatusCode)
	}
	var v verdict
	if err := json.NewDecoder(io.LimitReader(res.Body, maxReplyBytes)).Decode(&v); err != nil {
		return verdict{}, fmt.Errorf("reply about risk: %w", err)
	}
	if v.Allow == nil {
		return verdict{}, errors.New("reply about risk: no field allow")
	}
	return v, nil
}
