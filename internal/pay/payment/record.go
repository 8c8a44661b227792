package payment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"seckill/ent"
	"seckill/ent/paymentevent"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/platform/postgres"
)

const (
	// maxCallback bounds the body of a call-back in bytes.
	maxCallback = 64 << 10
	// retryLost is the delay after which the loop handles an event whose message has
	// not arrived.
	retryLost = 3 * time.Second
)

// Bounds of a provider's event; larger values are malformed.
const (
	maxEventID = 128
	maxText    = 128
)

// ErrMalformed reports an invalid event of a provider.
var ErrMalformed = errors.New("malformed payment event")

// Record stores a provider's event, once, and publishes the message to handle it. It
// returns the event's id, new or existing. Once it returns without an error, the event
// will be handled.
func (s *Service) Record(ctx context.Context, provider string, e Event) (id.Held, error) {
	if err := e.validate(); err != nil {
		return id.Held{}, err
	}
	if err := s.namePayer(ctx, provider, &e); err != nil {
		return id.Held{}, err // the provider reports it again, or is asked again
	}
	event, err := s.store(ctx, provider, e)
	if err != nil {
		return id.Held{}, fmt.Errorf("store event %s of %s: %w", e.ID, provider, err)
	}
	if s.cfg.Events != nil {
		if err := s.cfg.Events.Publish(ctx, event); err != nil {
			s.cfg.Log.WarnContext(ctx, "publish payment event", slog.String("event", event.String()), slog.Any("error", err))
		}
	}
	return event, nil
}

func (e Event) validate() error {
	switch {
	case e.ID == "" || len(e.ID) > maxEventID:
		return fmt.Errorf("%w: id of %d bytes", ErrMalformed, len(e.ID))
	case e.Payment.IsZero():
		return fmt.Errorf("%w: no payment", ErrMalformed)
	case !slices.Contains(eventKinds, e.Kind):
		return fmt.Errorf("%w: kind %q", ErrMalformed, e.Kind)
	case (e.Kind == EventRefundFailed) != (!e.Refund.IsZero()):
		return fmt.Errorf("%w: refund %s of kind %s", ErrMalformed, e.Refund, e.Kind)
	case len(e.Ref) > maxText || len(e.Transaction) > maxText:
		return fmt.Errorf("%w: overlong reference", ErrMalformed)
	case (e.Kind == EventSucceeded || e.Kind == EventRefunded) && len(e.Currency) != 3:
		return fmt.Errorf("%w: currency of %d letters", ErrMalformed, len(e.Currency))
	}
	return nil
}

func (s *Service) store(ctx context.Context, provider string, e Event) (id.Held, error) {
	if len(e.Currency) != 3 {
		e.Currency = money.NoCurrency
	}
	if e.Kind.declines() {
		e.Reason = string(DeclineOf(string(e.Decline)))
	}
	now := s.now()
	event := id.New[id.Held]()
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		create := tx.PaymentEvent.Create().SetID(event).SetProvider(provider).SetEventID(e.ID).SetPaymentID(e.Payment).
			SetKind(paymentevent.Kind(e.Kind)).SetAmountMinor(e.AmountMinor).SetCurrency(e.Currency).
			SetProviderRef(e.Ref).SetTransaction(e.Transaction).SetTryAt(now.Add(retryLost)).
			SetHappenedAt(e.At.UTC().Truncate(time.Microsecond)).SetCreatedAt(now).SetReason(fault.Shorten(e.Reason, maxReason))
		if payer := s.cfg.Persons.Payer(provider, e.Payer); payer != "" {
			create.SetPayer(payer)
		}
		if !e.Refund.IsZero() {
			create.SetRefundKey(e.Refund)
		}
		return create.Exec(ctx)
	})
	if err == nil {
		return event, nil
	}
	if !postgres.IsUnique(err) {
		return id.Held{}, err
	}
	known, err := s.known(ctx, provider, e.ID)
	if err != nil {
		return id.Held{}, err
	}
	if known == nil {
		return id.Held{}, errors.New("an event that was there is gone")
	}
	return known.ID, nil
}

// known returns the stored event with a provider's id, or nil.
func (s *Service) known(ctx context.Context, provider, event string) (*ent.PaymentEvent, error) {
	row, err := s.cfg.DB.Ent.PaymentEvent.Query().
		Where(paymentevent.Provider(provider), paymentevent.EventID(event)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return row, err
}

// Webhooks handles POST /webhooks/payments/{provider}. It acknowledges an event once
// it is stored, for the first time or again.
func (s *Service) Webhooks() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhooks/payments/{provider}", s.webhook)
	return mux
}

func (s *Service) webhook(w http.ResponseWriter, r *http.Request) {
	provider, err := s.provider(r.PathValue("provider"))
	if err != nil {
		http.Error(w, "no such provider", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCallback))
	if err != nil {
		http.Error(w, "body is not readable", http.StatusBadRequest)
		return
	}
	event, err := provider.Callback(r.Header, body)
	switch {
	case errors.Is(err, ErrForged):
		s.cfg.Log.WarnContext(r.Context(), "forged call-back", slog.String("provider", provider.Name()), slog.Any("error",
			err))
		s.forged.seen(r.Context(), provider.Name())
		http.Error(w, "not authentic", http.StatusUnauthorized)
		return
	case err != nil:
		http.Error(w, "malformed call-back", http.StatusBadRequest)
		return
	case event.ID == "":
		provider.Terms().Reply.write(w)
		return
	}
	known, err := s.match(r.Context(), provider.Name(), &event)
	if err == nil && known {
		known, err = s.fresh(r.Context(), provider.Name(), &event)
	}
	if err == nil && !known {
		provider.Terms().Reply.write(w)
		return
	}
	if err == nil {
		_, err = s.Record(r.Context(), provider.Name(), event)
	}
	switch {
	case errors.Is(err, ErrMalformed):
		http.Error(w, "malformed event", http.StatusBadRequest)
	case err != nil:
		s.cfg.Log.ErrorContext(r.Context(), "store call-back", slog.String("provider", provider.Name()), slog.Any("error",
			err))
		http.Error(w, "not stored; send it again", http.StatusServiceUnavailable)
	default:
		s.metrics.lag(provider.Name(), s.now().Sub(event.At))
		provider.Terms().Reply.write(w)
	}
}
