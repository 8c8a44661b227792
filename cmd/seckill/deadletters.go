package main

import (
	"errors"
	"fmt"
	"slices"

	"seckill/internal/app"
	"seckill/internal/buy/orderintake"
	"seckill/internal/platform/config"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

type deadLettersCmd struct {
	Replay replayCmd `cmd:"" help:"Put dead letters back into their streams, for example after an outage."`
}

type replayCmd struct {
	Letters []string `arg:"" optional:"" name:"id" help:"Ids of dead letters, as deadLetters lists them."`
	All     bool     `help:"Replay all dead letters."`
	Note    string   `required:"" placeholder:"TEXT" help:"Why, for the log of decisions."`
}

func (replayCmd) Help() string {
	return "Workers handle a replayed message like a new one. A message whose order task has ended stays. May be run " +
		"again, and has no timeout: use it instead of the admin pages for thousands of messages.\n\n" + examples(
		"seckill deadletters replay --all --note 'the disk was full'",
		"seckill deadletters replay 019ac5f2-0e1c-7c3b-9d52-6f1f4a0b7c11 --note 'the trigger is dropped'",
	)
}

func (r replayCmd) Run(c *call) error {
	if r.All == (len(r.Letters) > 0) {
		return errors.New("give either --all or ids of dead letters")
	}
	if err := c.cfg.Validate(config.NeedDatabase, config.NeedRedis); err != nil {
		return err
	}
	return app.ChangeDeadLetters(c.ctx, c.cfg, silent(), func(letters *orderintake.DeadLetters) error {
		done, err := r.replay(c, letters)
		fmt.Fprintf(c.env.stdout, "replayed %d, refused %d\n", done.Replayed, done.Refused)
		return r.noteError(err)
	})
}

func (r replayCmd) replay(c *call, letters *orderintake.DeadLetters) (done orderintake.ReplayedAll, err error) {
	in := orderintake.Decision{Actor: id.User{}, Note: r.Note}
	if r.All {
		return letters.ReplayAll(c.ctx, in)
	}
	for _, in.Letter = range r.Letters {
		switch _, err := letters.Replay(c.ctx, in); fault.ReasonOf(err) {
		case fault.Unknown:
			return done, fmt.Errorf("there is no dead letter %s", in.Letter)
		case fault.Conflict:
			done.Refused++
		default:
			if err != nil {
				return done, err
			}
			done.Replayed++
		}
	}
	return done, nil
}

// noteError replaces the error of an unusable note by one that names its flag.
func (replayCmd) noteError(err error) error {
	if bad, ok := errors.AsType[fault.BadField](err); ok && slices.Equal(bad.At, []string{"note"}) {
		return fmt.Errorf("--note: give %s", bad.Rule)
	}
	return err
}
