package main

import (
	"encoding/json"
	"fmt"
	"time"

	"seckill/internal/outbox/webhook"
)

// followEvery is the pause between two looks for new events.
const followEvery = time.Second

type eventsCmd struct {
	Follow bool     `help:"Wait for more, until the command is interrupted."`
	After  string   `placeholder:"CURSOR" help:"Only events after this one; the cursor is in each line."`
	Kinds  []string `placeholder:"KIND" help:"Only these kinds, comma separated: order.paid,stock.low."`
}

func (eventsCmd) Help() string {
	return "Prints one JSON object a line. Events are written while an endpoint is enabled or a service token with events:read exists.\n\n" + examples(
		"seckill events --follow --kinds order.paid,order.refunded",
	)
}

// Run prints events until there are no more, or with --follow until it is interrupted.
func (e eventsCmd) Run(c *call) error {
	in := webhook.EventsInput{Limit: webhook.MaxEvents}
	kinds, err := eventKinds(e.Kinds)
	if err != nil {
		return fmt.Errorf("--kinds %w", err)
	}
	if kinds != nil {
		in.Kinds = *kinds
	}
	if e.After != "" {
		if in.After, err = webhook.ParseCursor(e.After); err != nil {
			return fmt.Errorf("--after %q is no cursor", e.After)
		}
	}
	return changeWebhooks(c, func(hooks *webhook.Service) error {
		for {
			more, err := e.print(c, hooks, &in)
			switch {
			case c.ctx.Err() != nil && e.Follow:
				return nil // interrupted
			case err != nil:
				return err
			case more:
				continue
			case !e.Follow:
				return nil
			}
			select {
			case <-c.ctx.Done():
				return nil
			case <-time.After(followEvery):
			}
		}
	})
}

// print prints a page and moves the cursor.
func (eventsCmd) print(c *call, hooks *webhook.Service, in *webhook.EventsInput) (more bool, err error) {
	page, more, err := hooks.Events(c.ctx, *in)
	if err != nil {
		return false, err
	}
	out := json.NewEncoder(c.env.stdout)
	out.SetEscapeHTML(false)
	for _, r := range page {
		line := struct {
			Cursor  string          `json:"cursor"`
			ID      string          `json:"id"`
			Subject string          `json:"subject"`
			Event   json.RawMessage `json:"event"`
		}{r.Cursor.String(), r.ID.Public(), r.Subject, r.Payload}
		if err := out.Encode(line); err != nil {
			return false, fmt.Errorf("print event: %w", err)
		}
		in.After = r.Cursor
	}
	return more, nil
}
