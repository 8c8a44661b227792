package app

import (
	"context"
	"log/slog"
	"time"

	"seckill/internal/telemetry"
	"seckill/internal/tracing"
)

// tracesTimeout bounds sending the last spans of a process.
const tracesTimeout = 5 * time.Second

// trace starts tracing, if it is on.
func (b *base) trace() (err error) {
	b.tracer, err = tracing.New(tracing.Options{
		URL: b.cfg.TracesURL.Reveal(), Share: b.cfg.TracesShare, Version: telemetry.ReadBuild().Version, Registerer: b.registry, Log: b.log,
	})
	if b.tracer == nil || err != nil {
		return err
	}
	b.svc.redis.Trace()
	b.svc.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), tracesTimeout)
		defer cancel()
		if err := b.tracer.Close(ctx); err != nil {
			b.log.WarnContext(ctx, "the last traces were not sent", slog.Any("error", err))
		}
		return nil
	})
	return nil
}
