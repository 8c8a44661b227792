package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	"seckill/internal/config"
	"seckill/internal/id"
	"seckill/internal/seed"
)

// Demo runs everything in one process, with no service installed, until ctx
// ends. It says on out where to go and what to try.
func Demo(ctx context.Context, cfg *config.Config, log *slog.Logger, out io.Writer) error {
	cfg = cfg.ForDemo(config.Secret(rand.Text() + rand.Text()))
	svc, err := openEmbedded(ctx)
	if err != nil {
		return err
	}
	a, err := wire(ctx, cfg, allRoles(), svc, log)
	if err != nil {
		return errors.Join(unheard(ctx, cfg, allRoles(), err), svc.Close())
	}
	made, err := a.seeder(0).Demo(ctx, cfg.PaymentWindow)
	if err != nil {
		return errors.Join(fmt.Errorf("fill the demo: %w", err), svc.Close())
	}
	saleID, itemID := id.Format(id.Sale, made.Open.Sale), id.Format(id.Item, made.Open.Items[0])
	a.tabs = playgroundTabs(saleID, itemID)
	if _, err := io.WriteString(out, a.welcome(made)+walkThrough(saleID, itemID)); err != nil {
		return errors.Join(err, svc.Close())
	}
	return a.Run(ctx)
}

// welcome is what the demo prints.
func (a *App) welcome(made *seed.DemoResult) string {
	shop := "http://" + browsable(a.PublicAddr())
	var b strings.Builder
	fmt.Fprintf(&b, `
Seckill demo. Everything runs in this process; Ctrl-C stops it and forgets it.

  Shop        %s/
  Playground  %s/playground      (GraphQL, with the walk-through below in its tabs)
  GraphQL     %s/graphql         (POST; WebSocket and SSE for subscriptions)
  Metrics     http://%s/metrics

  Open now    %s   %s/s/%s
  Opens soon  %s   %s/s/%s  (at %s)

  Accounts    (password of all: %s)
`, shop, shop, shop, browsable(a.AdminAddr()), made.Open.Title, shop, made.Open.Slug,
		made.Soon.Title, shop, made.Soon.Slug, made.Soon.Opens.Local().Format("15:04:05"), seed.DemoPassword)
	for _, u := range made.Users {
		fmt.Fprintf(&b, "              %-24s %s\n", u.Account, strings.ToLower(string(u.Role)))
	}
	return b.String()
}

// browsable turns a listening address into one that a browser can open.
func browsable(addr net.Addr) string {
	if addr == nil {
		return "-"
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
