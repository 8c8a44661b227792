package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"

	"seckill/internal/account"
	"seckill/internal/clock"
	"seckill/internal/config"
	"seckill/internal/operator"
	"seckill/internal/order"
	"seckill/internal/sale"
)

// ExpireOrderInput is the input of ExpireOrder.
type ExpireOrderInput struct {
	Order   uuid.UUID
	Account string // of the operator in whose name it is done
	Note    string
}

// ExpireOrder expires an unpaid order in the name of an operator, for the command line.
// Beside a refusal it returns the order.
func ExpireOrder(ctx context.Context, cfg *config.Config, in ExpireOrderInput, log *slog.Logger) (_ *order.Order, err error) {
	a, err := forCommand(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.svc.Close()) }()
	admin := account.NewAdmin(account.AdminConfig{Store: account.NewStore(a.svc.db, clock.System{}, names(cfg)), Log: log})
	u, err := admin.ByAccount(ctx, in.Account)
	switch {
	case err != nil:
		return nil, err
	case u == nil || u.Disabled:
		return nil, fmt.Errorf("--operator %s: there is no such active user", in.Account)
	}
	return a.operator.ExpireOrder(ctx, operator.ExpireInput{By: sale.Actor{ID: u.ID, Role: u.Role}, Order: in.Order, Note: in.Note})
}
