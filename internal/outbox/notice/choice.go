package notice

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/noticechoice"
	"seckill/ent/noticedelivery"
	"seckill/ent/pushsubscription"
	"seckill/ent/salereminder"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Choice says by which channels a user wants one kind of notice.
type Choice struct {
	Kind Kind
	Mail bool
	Hook bool
	Push bool
}

// byDefault returns the choice of a user who made none: e-mail, which reaches verified
// addresses only.
func byDefault(kind Kind) Choice { return Choice{Kind: kind, Mail: kind.arrivesBy(Mail)} }

func (c Choice) wants(channel Channel) bool {
	return channel == Mail && c.Mail || channel == Hook && c.Hook || channel == Push && c.Push
}

// Settings are the choices of a user, and what they can lead to.
type Settings struct {
	Choices  []Choice  // one of each kind
	Channels []Channel // that reach the user now
	Devices  []Device  // browsers that get notices, the newest first
}

// Settings returns the choices of a user.
func (s *Service) Settings(ctx context.Context, user id.User) (Settings, error) {
	row, err := s.cfg.DB.Ent.User.Get(ctx, user)
	if err != nil {
		return Settings{}, fmt.Errorf("read user of notices: %w", err)
	}
	rows, err := s.cfg.DB.Ent.NoticeChoice.Query().Where(noticechoice.UserID(user)).All(ctx)
	if err != nil {
		return Settings{}, fmt.Errorf("read choices of notices: %w", err)
	}
	devices, err := s.Devices(ctx, user)
	if err != nil {
		return Settings{}, err
	}
	set := Settings{Channels: s.reaching(row, len(devices)), Devices: devices}
	for _, kind := range Kinds() {
		set.Choices = append(set.Choices, choiceOf(rows, user, kind))
	}
	return set, nil
}

// reaching returns the channels that reach a user with a number of browsers.
func (s *Service) reaching(user *ent.User, devices int) []Channel {
	return slices.DeleteFunc(s.Channels(), func(c Channel) bool {
		return c == Mail && !readsMail(user) || c == Push && devices == 0
	})
}

// readsMail reports whether it is known that the user reads e-mails at the account's address.
func readsMail(user *ent.User) bool {
	return user.VerifiedAt != nil && strings.Contains(user.Account, "@")
}

// choiceOf returns the choice of a user among rows, or the default.
func choiceOf(rows []*ent.NoticeChoice, user id.User, kind Kind) Choice {
	for _, row := range rows {
		if row.UserID == user && Kind(row.Kind) == kind {
			return Choice{Kind: kind, Mail: row.Mail, Hook: row.Hook, Push: row.Push}
		}
	}
	return byDefault(kind)
}

// Choose stores choices of a user; the last one of a kind counts. Kinds that are not named
// stay as they are. Refusals: INVALID_INPUT for a channel that does not suit the kind.
func (s *Service) Choose(ctx context.Context, user id.User, choices []Choice) error {
	last := map[Kind]Choice{}
	for i, c := range choices {
		for _, channel := range []Channel{Mail, Hook, Push} {
			if c.wants(channel) && !c.Kind.arrivesBy(channel) {
				at := []string{"choices", strconv.Itoa(i), "channels"}
				return fault.BadField{At: at, Rule: fault.Rule{Code: "channel that suits the kind"}}
			}
		}
		last[c.Kind] = c
	}
	choose := func(ctx context.Context, tx *ent.Tx) error {
		for _, c := range last {
			if err := s.set(ctx, tx, user, c); err != nil {
				return err
			}
		}
		return nil
	}
	err := s.cfg.DB.WithTx(ctx, choose)
	if postgres.IsUnique(err) { // another request of the user wrote the first choice
		err = s.cfg.DB.WithTx(ctx, choose)
	}
	if err != nil {
		return fmt.Errorf("choose notices: %w", err)
	}
	return nil
}

func (s *Service) set(ctx context.Context, tx *ent.Tx, user id.User, c Choice) error {
	kind := noticechoice.Kind(c.Kind)
	n, err := tx.NoticeChoice.Update().Where(noticechoice.UserID(user), noticechoice.KindEQ(kind)).
		SetMail(c.Mail).SetHook(c.Hook).SetPush(c.Push).SetUpdatedAt(s.now()).Save(ctx)
	if err != nil || n > 0 {
		return err
	}
	return tx.NoticeChoice.Create().SetID(id.New[uuid.UUID]()).SetUserID(user).SetKind(kind).
		SetMail(c.Mail).SetHook(c.Hook).SetPush(c.Push).SetUpdatedAt(s.now()).Exec(ctx)
}

// ByMail reports whether a user wants e-mails of a kind, and returns the path of the link
// that ends them.
func (s *Service) ByMail(ctx context.Context, tx *ent.Tx, user id.User, kind Kind) (unsubscribe string, wanted bool,
	err error) {
	rows, err := tx.NoticeChoice.Query().Where(noticechoice.UserID(user), noticechoice.KindEQ(noticechoice.Kind(kind))).
		All(ctx)
	if err != nil {
		return "", false, fmt.Errorf("read choices of notices: %w", err)
	}
	if !choiceOf(rows, user, kind).Mail {
		return "", false, nil
	}
	unsubscribe, err = s.unsubscribePath(user, kind)
	return unsubscribe, err == nil, err
}

// Stored is what is stored for a user, as the user reads it.
type Stored struct {
	Choices   []StoredChoice `json:"choices"`
	Reminders []string       `json:"reminderSaleIds"`
	Devices   []StoredDevice `json:"devices"`
}

// StoredChoice is a choice that a user made.
type StoredChoice struct {
	Kind Kind `json:"kind"`
	Mail bool `json:"mail"`
	Hook bool `json:"hook"`
	Push bool `json:"push"`
}

// StoredOf returns what is stored for a user.
func StoredOf(ctx context.Context, db *ent.Client, user id.User) (Stored, error) {
	out := Stored{Choices: []StoredChoice{}, Reminders: []string{}}
	choices, err := db.NoticeChoice.Query().Where(noticechoice.UserID(user)).All(ctx)
	if err != nil {
		return out, fmt.Errorf("read choices of notices: %w", err)
	}
	for _, row := range choices {
		out.Choices = append(out.Choices, StoredChoice{Kind(row.Kind), row.Mail, row.Hook, row.Push})
	}
	reminders, err := db.SaleReminder.Query().Where(salereminder.UserID(user)).Limit(maxReminders).All(ctx)
	if err != nil {
		return out, fmt.Errorf("read reminders: %w", err)
	}
	for _, row := range reminders {
		out.Reminders = append(out.Reminders, row.SaleID.Public())
	}
	out.Devices, err = storedDevices(ctx, db, user)
	return out, err
}

// Erase removes what is stored for a user, in the caller's transaction.
func Erase(ctx context.Context, tx *ent.Tx, user id.User) error {
	_, err := tx.NoticeChoice.Delete().Where(noticechoice.UserID(user)).Exec(ctx)
	if err == nil {
		_, err = tx.SaleReminder.Delete().Where(salereminder.UserID(user)).Exec(ctx)
	}
	if err == nil {
		_, err = tx.NoticeDelivery.Delete().Where(noticedelivery.UserID(user)).Exec(ctx)
	}
	if err == nil {
		_, err = tx.PushSubscription.Delete().Where(pushsubscription.UserID(user)).Exec(ctx)
	}
	if err != nil {
		return fmt.Errorf("erase notices: %w", err)
	}
	return nil
}
