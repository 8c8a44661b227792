package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"seckill/internal/app"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/config"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

type webhooksCmd struct {
	List       webhookListCmd       `cmd:"" help:"List the endpoints that receive events."`
	Add        webhookAddCmd        `cmd:"" help:"Add an endpoint, and print its secret."`
	Update     webhookUpdateCmd     `cmd:"" help:"Change an endpoint, or enable it again."`
	Rotate     webhookRotateCmd     `cmd:"" help:"Give an endpoint a new secret; both sign for a day."`
	Remove     webhookRemoveCmd     `cmd:"" help:"Remove an endpoint and its deliveries."`
	Deliveries webhookDeliveriesCmd `cmd:"" help:"Show the delivery log of an endpoint."`
	Replay     webhookReplayCmd     `cmd:"" help:"Send deliveries again, or the events of a period."`
	Test       webhookTestCmd       `cmd:"" help:"Send a test event to an endpoint."`
}

func (webhooksCmd) Help() string {
	return "Events are sent as docs/webhooks.md describes.\n\n" + examples(
		"seckill webhooks add --url https://erp.example.com/seckill --events order.paid,order.refunded",
		"seckill webhooks deliveries whe_01jd8z3q4vftn8r2m5w6x7y8z9 --state given_up",
		"seckill webhooks test whe_01jd8z3q4vftn8r2m5w6x7y8z9",
		"seckill webhooks replay --endpoint whe_01jd8z3q4vftn8r2m5w6x7y8z9 --since 2026-11-20T20:00:00Z",
	)
}

// changeWebhooks runs fn on the webhooks of the installation.
func changeWebhooks(c *call, fn func(*webhook.Service) error) error {
	if err := c.cfg.Validate(config.NeedDatabase, config.NeedKeys); err != nil {
		return err
	}
	return inFlags(app.ChangeWebhooks(c.ctx, c.cfg, c.logger(), fn))
}

// inFlags names the flag or argument of a refused value.
func inFlags(err error) error {
	if bad, ok := errors.AsType[fault.BadField](err); ok && len(bad.At) == 1 {
		return fmt.Errorf("--%s: needs %s", bad.At[0], bad.Rule)
	}
	switch fault.ReasonOf(err) {
	case fault.Unknown:
		return errors.New("there is none with that id")
	case fault.Conflict:
		return errors.New("there are 20 endpoints, or the endpoint is disabled")
	default:
		return err
	}
}

func parsed[T ~[16]byte](kind id.Kind, text string) (T, error) {
	u, err := id.Parse(kind, text)
	if err != nil {
		return T{}, fmt.Errorf("%q is no id that starts with %s_", text, kind)
	}
	return T(u), nil
}

type webhookListCmd struct{}

func (webhookListCmd) Run(c *call) error {
	return changeWebhooks(c, func(hooks *webhook.Service) error {
		endpoints, err := hooks.Endpoints(c.ctx)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(c.env.stdout, 0, 0, 2, ' ', 0)
		for _, e := range endpoints {
			state := strings.ToLower(string(e.State))
			if e.FailingSince != nil {
				state += ", failing since " + e.FailingSince.Format(time.RFC3339)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", e.ID.Public(), state, kindNames(e.Kinds), e.URL, e.Description)
		}
		return w.Flush()
	})
}

func kindNames(kinds []webhook.Kind) string {
	if len(kinds) == 0 {
		return "all"
	}
	names := collect.Map(kinds, func(k webhook.Kind) string { return string(k) })
	return strings.Join(names, ",")
}

// eventKinds parses names of kinds; "all" selects all of them.
func eventKinds(names []string) (*[]webhook.Kind, error) {
	if names == nil {
		return nil, nil
	}
	kinds := []webhook.Kind{}
	for _, name := range names {
		if name == "all" && len(names) == 1 {
			break
		}
		if !slices.Contains(webhook.Kinds(), webhook.Kind(name)) {
			return nil, fmt.Errorf("%q: choose from %s, or all", name, kindNames(webhook.Kinds()))
		}
		kinds = append(kinds, webhook.Kind(name))
	}
	return &kinds, nil
}

type webhookAddCmd struct {
	URL         string   `name:"url" required:"" placeholder:"URL" help:"Where events are sent: https, a public address."`
	Description string   `placeholder:"TEXT" help:"What it is for."`
	Events      []string `default:"all" placeholder:"KIND" help:"Kinds of events, comma separated: order.paid,stock.low."`
}

func (a webhookAddCmd) Run(c *call) error {
	kinds, err := eventKinds(a.Events)
	if err != nil {
		return fmt.Errorf("--events %w", err)
	}
	return changeWebhooks(c, func(hooks *webhook.Service) error {
		made, secret, err := hooks.Create(c.ctx, id.User{}, webhook.EndpointInput{URL: &a.URL, Description: &a.Description,
			Kinds: kinds})
		if err == nil {
			fmt.Fprintf(c.env.stdout, "%s\n%s\n", made.ID.Public(), secret)
		}
		return err
	})
}

type webhookUpdateCmd struct {
	ID          string   `arg:"" name:"id" help:"Id of the endpoint."`
	URL         *string  `name:"url" placeholder:"URL" help:"Where events are sent."`
	Description *string  `placeholder:"TEXT" help:"What it is for."`
	Events      []string `placeholder:"KIND" help:"Kinds of events, comma separated, or all."`
	Enable      bool     `xor:"state" help:"Send events again."`
	Disable     bool     `xor:"state" help:"Send no more events."`
}

func (u webhookUpdateCmd) Run(c *call) error {
	endpoint, err := parsed[id.Endpoint](id.KindEndpoint, u.ID)
	if err != nil {
		return err
	}
	in := webhook.EndpointInput{URL: u.URL, Description: u.Description}
	if in.Kinds, err = eventKinds(u.Events); err != nil {
		return fmt.Errorf("--events %w", err)
	}
	if u.Enable || u.Disable {
		in.Enabled = &u.Enable
	}
	return changeWebhooks(c, func(hooks *webhook.Service) error {
		_, err := hooks.Update(c.ctx, id.User{}, endpoint, in)
		return err
	})
}

type webhookRotateCmd struct {
	ID string `arg:"" name:"id" help:"Id of the endpoint."`
}

func (r webhookRotateCmd) Run(c *call) error {
	endpoint, err := parsed[id.Endpoint](id.KindEndpoint, r.ID)
	if err != nil {
		return err
	}
	return changeWebhooks(c, func(hooks *webhook.Service) error {
		_, secret, err := hooks.Rotate(c.ctx, id.User{}, endpoint)
		if err == nil {
			fmt.Fprintln(c.env.stdout, secret)
		}
		return err
	})
}

type webhookRemoveCmd struct {
	ID string `arg:"" name:"id" help:"Id of the endpoint."`
}

func (r webhookRemoveCmd) Run(c *call) error {
	endpoint, err := parsed[id.Endpoint](id.KindEndpoint, r.ID)
	if err != nil {
		return err
	}
	return changeWebhooks(c, func(hooks *webhook.Service) error {
		_, err := hooks.Delete(c.ctx, id.User{}, endpoint)
		return err
	})
}

type webhookDeliveriesCmd struct {
	ID    string `arg:"" name:"id" help:"Id of the endpoint."`
	State string `enum:"all,pending,delivered,given_up" default:"all" help:"all, pending, delivered or given_up."`
}

// Run prints the deliveries, newest first.
func (d webhookDeliveriesCmd) Run(c *call) error {
	in := webhook.DeliveriesInput{Limit: 100}
	var err error
	if in.Endpoint, err = parsed[id.Endpoint](id.KindEndpoint, d.ID); err != nil {
		return err
	}
	if state := webhook.DeliveryState(strings.ToUpper(d.State)); d.State != "all" {
		in.State = &state
	}
	return changeWebhooks(c, func(hooks *webhook.Service) error {
		w := tabwriter.NewWriter(c.env.stdout, 0, 0, 2, ' ', 0)
		for {
			page, more, err := hooks.Deliveries(c.ctx, in)
			if err != nil {
				return err
			}
			for _, d := range page {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", d.ID.Public(), d.CreatedAt.Format(time.RFC3339),
					d.Kind, d.Subject, strings.ToLower(string(d.State)), d.Attempts, d.Error)
				in.After = d.ID
			}
			if err := w.Flush(); err != nil || !more {
				return err
			}
		}
	})
}

type webhookReplayCmd struct {
	Deliveries []string  `arg:"" optional:"" name:"id" help:"Ids of deliveries."`
	Endpoint   string    `placeholder:"ID" help:"Instead of ids: send the events of a period to this endpoint that it did not accept."`
	Since      time.Time `placeholder:"TIME" help:"Begin of the period, such as 2026-11-20T20:00:00Z."`
	Until      time.Time `placeholder:"TIME" help:"End of the period; now when it is left out."`
	All        bool      `help:"Also the events that the endpoint accepted."`
}

// Validate returns the fault of the arguments.
func (r webhookReplayCmd) Validate() error {
	if (len(r.Deliveries) > 0) == (r.Endpoint != "") || (r.Endpoint != "") == r.Since.IsZero() {
		return errors.New("give ids of deliveries, or --endpoint with --since")
	}
	return nil
}

// Run sends deliveries again.
func (r webhookReplayCmd) Run(c *call) error {
	if r.Endpoint != "" {
		return r.period(c)
	}
	return changeWebhooks(c, func(hooks *webhook.Service) error {
		for _, text := range r.Deliveries {
			delivery, err := parsed[id.Delivery](id.KindDelivery, text)
			if err != nil {
				return err
			}
			if _, err := hooks.Replay(c.ctx, delivery); err != nil {
				return err
			}
		}
		return nil
	})
}

// period sends the events of a period again.
func (r webhookReplayCmd) period(c *call) error {
	in := webhook.RangeInput{Since: r.Since, Until: r.Until, All: r.All}
	if in.Until.IsZero() {
		in.Until = time.Now()
	}
	var err error
	if in.Endpoint, err = parsed[id.Endpoint](id.KindEndpoint, r.Endpoint); err != nil {
		return err
	}
	return changeWebhooks(c, func(hooks *webhook.Service) error {
		for all := 0; ; {
			n, next, err := hooks.ReplayRange(c.ctx, in)
			if all += n; err != nil || next == nil {
				fmt.Fprintf(c.env.stdout, "%d events are sent again\n", all)
				return err
			}
			in.Since = *next
		}
	})
}

type webhookTestCmd struct {
	ID string `arg:"" name:"id" help:"Id of the endpoint."`
}

func (t webhookTestCmd) Run(c *call) error {
	endpoint, err := parsed[id.Endpoint](id.KindEndpoint, t.ID)
	if err != nil {
		return err
	}
	return changeWebhooks(c, func(hooks *webhook.Service) error {
		delivery, err := hooks.SendTest(c.ctx, endpoint)
		if err == nil {
			fmt.Fprintln(c.env.stdout, delivery.ID.Public())
		}
		return err
	})
}
