package app

import (
	"cmp"
	"fmt"
	"net/http"

	"seckill/internal/buy/acceptance"
	"seckill/internal/buy/orderintake"
	"seckill/internal/gate/audit"
	"seckill/internal/gate/preload"
	"seckill/internal/gate/reconcile"
	"seckill/internal/gate/recordloss"
	"seckill/internal/identity/account"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/media"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/stream"
	"seckill/internal/staff/inbox"
	"seckill/internal/staff/operator"
	"seckill/internal/staff/report"
)

// scheduler holds the loops that preload sales and repair drift.
type scheduler struct {
	preloader *preload.Preloader
	preloads  periodic.Loop // of preloader
	reconcile periodic.Loop
	lostTasks periodic.Loop
	seals     periodic.Loop
	accepted  periodic.Loop
	record    periodic.Loop // notices that Postgres has lost commits
}

// schedulerParts are the stages that only the scheduler needs.
type schedulerParts struct {
	messages messages
	orders   orders
	payments payments
	users    *account.Directory
}

func newScheduler(b base, g gates, s stats, in schedulerParts) scheduler {
	m, o, p := in.messages, in.orders, in.payments
	preloader := preload.New(preload.Config{
		DB: b.svc.db, Gate: g.gate, Backlog: o.backlog, Versions: g.versions, Outbox: b.outbox, Figures: s.figures,
		Feed:    s.feed,
		Catalog: g.catalog, InFlightWait: orderintake.InFlightWait, Slot: b.cfg.LoadSlot, Slots: b.cfg.LoadSlots,
		NoteTimeout: b.scaled(preload.DefaultNoteTimeout), Clock: g.clock, Shared: g.clock, Log: b.log,
	})
	reconciler := reconcile.New(reconcile.Config{
		Catalog: g.catalog, Gates: preloader, Keys: b.keys,
		Auditor: audit.Auditor{DB: b.svc.db, Redis: b.svc.redis, Keys: b.keys, Clock: g.clock},
		Streams: stream.Appender{Client: b.svc.redis.Script},
		Orders:  o.store, Payments: p.service, DeadLetters: m.letters, Clock: g.clock, Registerer: b.registry, Log: b.log,
	})
	lost := orderintake.NewLostTasks(orderintake.LostTasksConfig{
		Orders: o.store, Writer: o.writer, Backlog: o.backlog, Clock: g.clock, Log: b.log,
		Gates: orderintake.RedisGates{Gate: g.gate, Stock: g.stock, Items: g.items},
	})
	sealer := &audit.Sealer{DB: b.svc.db, Clock: g.clock, Log: b.log}
	accepted := &acceptance.Logger{DB: b.svc.db, Clock: g.clock, Log: b.log}
	record := recordloss.NewWatch(recordloss.Config{
		DB: b.svc.db, Redis: b.svc.redis, Keys: b.keys, Cache: o.cache, Orders: o.store, Writer: o.writer,
		AfterCommit: o.afterCommit,
		Streams:     stream.Appender{Client: b.svc.redis.Script}, Gate: g.gate, Gates: preloader, Sales: g.sales,
		Versions: g.versions, Catalog: g.catalog,
		Users: in.users, Clock: g.clock, Registerer: b.registry, Log: b.log,
	})
	every := cmp.Or(b.cfg.PreloadEvery, preload.Every)
	return scheduler{
		preloader: preloader,
		preloads: periodic.Loop{
			Name: "preload", Every: every, Timeout: preload.StepTimeout, Retry: min(preload.RetryEvery, every),
			Step: preloader.Step, Due: preloader.Due, Log: b.log,
		},
		reconcile: reconciler.Loop(), lostTasks: lost.Loop(), seals: sealer.Loop(),
		accepted: accepted.Loop(), record: record.Loop(),
	}
}

// admin holds the use cases of operators.
type admin struct {
	operator *operator.Service
	reports  report.Source
	pictures http.Handler // nil = uploads are disabled
	bearer   bearer
}

// adminParts are the stages that only the admin stage needs.
type adminParts struct {
	waiting   waiting
	messages  messages
	orders    orders
	payments  payments
	scheduler scheduler
	accounts  accounts
}

func newAdmin(b base, g gates, s stats, in adminParts) (admin, error) {
	out := admin{
		operator: operator.New(operator.Config{
			DB: b.svc.db, Sales: g.sales, Versions: g.versions, Catalog: g.catalog,
			Codes: b.codes, Gate: g.gate, Orders: in.orders.store, Gates: in.scheduler.preloader,
			Stock: g.stock, Payments: in.payments.service, Waitlist: in.waiting.service, Facts: b.facts(), Outbox: b.outbox,
			Feed: s.feed, Inbox: in.messages.inbox, Security: in.accounts.security,
			Persons: account.NewPersons(b.svc.db, b.clock), ExternalCaptcha: b.cfg.CaptchaVerifyURL != "",
			Tokens: in.accounts.serviceTokens, PaymentWindow: b.cfg.PaymentWindow, Names: names(b.cfg),
			TwoPersonUnits: b.cfg.TwoPersonUnits, TwoPersonExtension: b.cfg.TwoPersonExtension,
			TwoPersonMoney: b.cfg.TwoPersonMoney, Clock: b.clock, Log: b.log,
		}),
		reports: report.Source{DB: b.svc.db, Sales: g.sales, Stats: s.figures, Clock: b.clock},
		bearer:  bearer{tokens: in.accounts.tokens, serviceTokens: in.accounts.serviceTokens, issuers: in.accounts.issuers},
	}
	if b.cfg.Media.Reveal() == "" {
		return out, nil
	}
	store, closeStore, err := media.Open(b.cfg.Media.Reveal())
	if err != nil {
		return out, fmt.Errorf("SECKILL_MEDIA: %w: choose a folder that this process may write, or s3://key:secret@host/bucket", err)
	}
	b.svc.onClose(closeStore)
	out.pictures = media.New(store).Handler(func(r *http.Request) error {
		_, err := out.bearer.operator(r, auth.CatalogueWrite)
		return err
	}, b.log)
	return out, nil
}

// inboxParts are the stages that only the inbox needs.
type inboxParts struct {
	admin    admin
	payments payments
	webhooks *webhook.Service
	waiting  waiting
}

func newInbox(b base, g gates, m messages, in inboxParts) *inbox.Inbox {
	return inbox.New(inbox.Config{
		Hub: m.hub, Sales: g.sales, Catalog: g.catalog, Stock: g.stock, Operator: in.admin.operator,
		Waitlist: in.waiting.service,
		Payments: in.payments.service, Providers: in.payments.service.Names(), Letters: m.letters, Webhooks: in.webhooks,
		Clock: b.clock, Log: b.log,
	})
}
