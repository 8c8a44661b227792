package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"seckill/internal/config"
	"seckill/internal/payment"
)

// ReconcileInput is the input of ReconcilePayments.
type ReconcileInput struct {
	Provider string
	Day      time.Time // UTC
}

// ReconcilePayments compares the payments of a day with their provider.
func ReconcilePayments(ctx context.Context, cfg *config.Config, in ReconcileInput, log *slog.Logger) (_ payment.Reconciled, err error) {
	a, err := forCommand(ctx, cfg, log)
	if err != nil {
		return payment.Reconciled{}, err
	}
	defer func() { err = errors.Join(err, a.svc.Close()) }()
	return a.payments.Reconcile(ctx, in.Provider, in.Day)
}
