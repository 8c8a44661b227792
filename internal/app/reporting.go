package app

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/google/uuid"

	"seckill/internal/config"
	"seckill/internal/report"
)

// Report tells how a sale went. The error is report.ErrUnknownSale when there is
// no such sale.
func Report(ctx context.Context, cfg *config.Config, sale uuid.UUID, log *slog.Logger) (_ *report.Report, err error) {
	a, err := unmanned(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.svc.Close()) }()
	return a.office.reports.Build(ctx, sale)
}

// Export writes the orders of a sale as CSV and returns how many there were. The
// error is report.ErrUnknownSale when there is no such sale.
func Export(ctx context.Context, cfg *config.Config, sale uuid.UUID, out io.Writer, log *slog.Logger) (orders int, err error) {
	a, err := unmanned(ctx, cfg, log)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, a.svc.Close()) }()
	export, err := a.office.desk.OrdersOf(ctx, sale)
	if err != nil {
		return 0, err
	}
	if export == nil {
		return 0, report.ErrUnknownSale
	}
	return export.CSV(ctx, out)
}
