package app

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/google/uuid"

	"seckill/internal/clock"
	"seckill/internal/config"
	"seckill/internal/operator"
	"seckill/internal/report"
	"seckill/internal/reservation"
	"seckill/internal/sale"
	"seckill/internal/stream"
)

// Report tells how a sale went. The error is report.ErrUnknownSale when there is
// no such sale. It signs nothing, and needs no key.
func Report(ctx context.Context, cfg *config.Config, saleID uuid.UUID, log *slog.Logger) (_ *report.Report, err error) {
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	a := &App{cfg: cfg, log: log, clock: clock.System{}, svc: svc, keys: reservation.Keys{Prefix: cfg.RedisPrefix}}
	a.deadLetters = stream.NewDeadLetters(stream.DeadLettersConfig{Client: svc.redis.Cmd, Key: a.keys.DeadLetters(), Log: log})
	return a.newOffice().reports.Build(ctx, saleID)
}

// Export writes the orders of a sale as CSV and returns how many there were. The
// error is report.ErrUnknownSale when there is no such sale. It reads the record
// alone.
func Export(ctx context.Context, cfg *config.Config, saleID uuid.UUID, out io.Writer) (orders int, err error) {
	svc, err := openDatabase(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	desk := operator.New(operator.Config{DB: svc.db, Sales: sale.NewStore(svc.db.Ent)})
	export, err := desk.OpenExport(ctx, saleID)
	if err != nil {
		return 0, err
	}
	if export == nil {
		return 0, report.ErrUnknownSale
	}
	return export.CSV(ctx, out)
}
