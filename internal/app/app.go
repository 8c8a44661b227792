// Package app wires the product by hand, once: read wire from top to bottom and
// you have the dependency graph. It starts and stops things in order, and knows
// which of them a role needs. The demo and the real server differ only in the
// services they stand on.
package app

import (
	"fmt"
	"log/slog"
	"net"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seckill/internal/account"
	"seckill/internal/admission/captcha"
	"seckill/internal/admission/path"
	"seckill/internal/admission/queue"
	"seckill/internal/auth"
	"seckill/internal/checkout"
	"seckill/internal/clock"
	"seckill/internal/config"
	"seckill/internal/notifier"
	"seckill/internal/order"
	"seckill/internal/orderintake"
	"seckill/internal/periodic"
	"seckill/internal/preload"
	"seckill/internal/ratelimit"
	"seckill/internal/reservation"
	"seckill/internal/sale"
	"seckill/internal/server"
	"seckill/internal/storefront"
	"seckill/internal/stream"
	"seckill/internal/telemetry"
	"seckill/internal/waitlist"
)

// Roles say what a process does.
type Roles struct {
	API       bool // answers buyers and operators
	Worker    bool // turns messages into orders
	Scheduler bool // loads sales and keeps their gates
}

// allRoles is a process that does everything.
func allRoles() Roles { return Roles{API: true, Worker: true, Scheduler: true} }

// rolesOf reads the names of roles: api, worker, scheduler.
func rolesOf(names []string) (Roles, error) {
	var r Roles
	for _, name := range names {
		switch name {
		case "api":
			r.API = true
		case "worker":
			r.Worker = true
		case "scheduler":
			r.Scheduler = true
		default:
			return r, fmt.Errorf("role %q: choose from api, worker, scheduler", name)
		}
	}
	return r, nil
}

// App is a process. Its parts are wired by wire and run by Run.
type App struct {
	cfg    *config.Config
	log    *slog.Logger
	clock  clock.Clock // of this host
	common clock.Clock // of all processes: what one writes and another judges goes by it
	roles  Roles
	svc    *services
	keys   reservation.Keys
	build  telemetry.Build

	registry      *prometheus.Registry
	orderMetrics  *order.Metrics
	streamMetrics *stream.Metrics

	catalog     *sale.Catalog
	stock       *reservation.StockCache
	gate        *reservation.Gate
	reserving   redis.UniversalClient // of Gate.Reserve alone
	preloader   *preload.Preloader
	cache       *order.Cache
	orders      *order.Store
	deadLetters *stream.DeadLetters
	letters     *orderintake.DeadLetters
	backlog     *orderintake.Backlog
	ender       *order.Writer // ends tasks that will not be written any more
	hub         *notifier.Hub
	bus         *notifier.Bus
	publisher   message.Publisher
	store       *storefront.Storefront
	checkout    *checkout.Checkout
	limits      *ratelimit.Limiter
	revocations *auth.Revocations
	tokens      *auth.Tokens
	people      *account.Store
	security    *account.SecurityLog
	accounts    *account.Service
	captchas    *captcha.Service
	paths       *path.Service
	queue       *queue.Service
	waitlist    *waitlist.Service
	outlooks    *waitlist.Outlooks
	cashier     *cashier
	office      *office
	listener    net.Listener   // the public one; nil without the API role
	worker      *worker        // nil without the role
	edge        *edge          // nil when the process only runs a command
	tabs        []server.Tab   // of the playground
	documents   *periodic.Loop // reads trusted documents again; nil without the setting
}
