package waitlist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/reservation"
	"seckill/internal/identity/person"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// busyRetry is the RetryAfter of OVERLOADED.
const busyRetry = time.Second

// atItem is the input path of the item.
var atItem = []string{"itemId"}

// JoinInput is a request to join the waitlist of an item, or to enter its draw.
type JoinInput struct {
	Sale     id.Sale
	Item     id.Item
	User     id.User
	Persons  person.Keys    // by which the limits of the sale count the buyer
	Quantity int            // 1 to the sale's purchase limit; the caller checks it
	From     netip.Addr     // address of the request
	Captcha  captcha.Answer // to a challenge of the waitlist of this sale; zero = none was sent
	Waived   bool           // the sale requires no captcha now
	Nonce    string         // of the buyer, for the draw; "" = the sale is a rush
	Closes   time.Time      // until when the draw takes entries
	Card     bool           // the entry counts once a card is authorized for it

	claim captcha.Claim // of Captcha
}

func (in JoinInput) scope() captcha.Scope {
	return captcha.Scope{Purpose: captcha.Waitlist, Sale: in.Sale, User: in.User, From: in.From}
}

// joined is the result of one JoinInput.
type joined struct {
	entry   *Entry
	refusal error
	verdict captcha.Verdict // on an answer that is not right; "" = it was not needed, or right
}

// Join adds a user to the waitlist of an item. Joining again returns the same entry, without a
// captcha. Concurrent calls, as when an item has just sold out, share a batch. Refusals:
// reservation.AlreadyOrdered for a user with an order or an attempt,
// reservation.LimitReached (without the limit: the sale knows it) for a user whose orders
// use up the limit of the sale, fault.Throttled for a user with too many expired reservations,
// SALE_PAUSED, SALE_CLOSED, ForSale while units are for sale, reservation.NoneLeft if no unit
// can be released any more, and last captcha.Required or captcha.Invalid: an answer is used up
// just before the entry is written. Of a draw, fault.EntriesClosed; whether units are for sale does
// not matter.
func (s *Service) Join(ctx context.Context, in JoinInput) (*Entry, error) {
	if !in.Waived {
		var err error
		if in.Captcha, err = s.cfg.Captchas.Exchange(ctx, in.scope(), in.Captcha); err != nil {
			return nil, err
		}
		in.claim = s.cfg.Captchas.Claim(in.scope(), in.Captcha)
	}
	j, err := s.joins.Do(ctx, in)
	if errors.Is(err, batch.ErrFull) {
		err = &fault.Error{Code: fault.Overloaded, Message: "too many join at once", RetryAfter: busyRetry, Err: err}
	}
	if err == nil && j.verdict != "" {
		err = s.cfg.Captchas.Refuse(ctx, captcha.WrongAnswer{
			Scope: in.scope(), Answer: in.Captcha, Verdict: j.verdict, Kind: in.claim.Kind,
		})
	}
	return j.entry, cmp.Or(err, j.refusal)
}

// joinAll processes a batch of joins, item by item.
func (s *Service) joinAll(ctx context.Context, asked []JoinInput) []batch.Result[joined] {
	results := make([]batch.Result[joined], len(asked))
	for item, those := range byKey(asked, func(in JoinInput) id.Item { return in.Item }) {
		var inputs []JoinInput // one per user, in the order of arrival
		seen := map[id.User]bool{}
		for _, i := range those {
			if in := asked[i]; !seen[in.User] {
				seen[in.User] = true
				inputs = append(inputs, in)
			}
		}
		ends, err := s.joinItem(ctx, item, inputs)
		for _, i := range those {
			results[i] = batch.Result[joined]{Value: ends[asked[i].User], Err: err}
		}
	}
	return results
}

// joinItem processes the joins of one item.
func (s *Service) joinItem(ctx context.Context, item id.Item, inputs []JoinInput) (map[id.User]joined, error) {
	ends, err := s.openOf(ctx, item, inputs)
	if err != nil {
		return nil, err
	}
	if inputs = without(inputs, ends); len(inputs) == 0 {
		return ends, nil
	}
	if err := s.refusePersons(ctx, item, inputs, ends); err != nil {
		return nil, err
	}
	if inputs = without(inputs, ends); len(inputs) == 0 {
		return ends, nil
	}
	if err := s.refuseBuyers(ctx, item, inputs, ends); err != nil {
		return nil, err
	}
	if inputs = without(inputs, ends); len(inputs) == 0 {
		return ends, nil
	}
	draw := inputs[0].Nonce != "" // all are of the same sale
	var restock RestockOutlook
	if !draw {
		if restock, err = s.RestockOutlook(ctx, item); err != nil {
			return nil, err
		}
	}
	waiting := reservation.WaitingUnknown // the first may join after restock was read
	if restock.Waiting > 0 {
		waiting = reservation.BuyersWait
	}
	status, err := s.cfg.Gate.Status(ctx, inputs[0].Sale, item, waiting, statusUsers(inputs)...)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "The sale cannot be reached now. Please try again shortly.", err)
	}
	if !status.Loaded {
		return nil, fault.New(fault.Unavailable, "The sale is being loaded. Please try again.")
	}
	for i, in := range inputs {
		if why := refuse(in, restock, status, status.Users[i], s.now()); why != nil {
			ends[in.User] = joined{refusal: why}
		}
	}
	if err := s.checkAnswers(ctx, without(inputs, ends), ends); err != nil {
		return nil, err
	}
	return ends, s.enter(ctx, item, without(inputs, ends), ends)
}

// ForSale refuses a join while any buyer may take the units.
type ForSale struct{ fault.Refused }

// refuse returns the refusal of a join; nil if the user may join.
func refuse(in JoinInput, restock RestockOutlook, status reservation.GateStatus, user reservation.UserStatus,
	now time.Time) error {
	switch {
	case !user.Task.IsZero():
		return reservation.AlreadyOrdered{Task: user.Task, At: atItem}
	case status.Ended:
		return fault.Refused{Why: fault.SaleClosed, At: atItem}
	case !status.Open:
		return fault.Refused{Why: fault.SalePaused, At: atItem}
	case user.LimitLeft >= 0 && user.LimitLeft < in.Quantity:
		return reservation.LimitReached{Remaining: user.LimitLeft, By: user.LimitBy, WholeSale: true, At: atItem}
	case user.Wait > 0:
		return fault.Throttled{RetryAfter: user.Wait, Cause: fault.ExpiredReservations}
	case in.Nonce != "":
		if !now.Before(in.Closes) {
			return fault.Refused{Why: fault.EntriesClosed, At: atItem}
		}
	case user.Free >= in.Quantity && restock.Waiting == 0:
		return ForSale{fault.Refused{Why: fault.Conflict, At: atItem}}
	case restock.Gone():
		return reservation.NoneLeft{Item: in.Item}
	}
	return nil
}

// checkAnswers refuses users whose answers do not count, and uses up those of the others.
func (s *Service) checkAnswers(ctx context.Context, inputs []JoinInput, ends map[id.User]joined) error {
	var tries []captcha.Try
	for _, in := range inputs {
		if !in.Waived {
			tries = append(tries, captcha.Try{Scope: in.scope(), Claim: in.claim})
		}
	}
	if len(tries) == 0 {
		return nil
	}
	verdicts, err := s.cfg.Captchas.CheckAll(ctx, tries)
	if err != nil {
		return err
	}
	for i, try := range tries {
		if verdicts[i] != captcha.Right {
			ends[try.Scope.User] = joined{verdict: verdicts[i]}
		}
	}
	return nil
}

// enter writes the entries of users in one transaction and adds them to ends. A user
// who got an entry in the meantime, through another process, gets that entry.
func (s *Service) enter(ctx context.Context, item id.Item, inputs []JoinInput, ends map[id.User]joined) error {
	for range maxRaces {
		if len(inputs) == 0 {
			return nil
		}
		now, entryIDs := s.now(), make([]id.Waitlist, len(inputs))
		err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			status, card := waitlistentry.StatusWAITING, waitlistentry.CardNONE
			if inputs[0].Nonce != "" {
				status = waitlistentry.StatusENTERED
				counted := len(inputs)
				if inputs[0].Card { // all are of the same sale
					card, counted = waitlistentry.CardDUE, 0
				}
				if err := countEntries(ctx, tx, inputs[0].Sale, item, counted); err != nil {
					return err
				}
			}
			rows := make([]*ent.WaitlistEntryCreate, len(inputs))
			for i, in := range inputs {
				entryIDs[i] = id.New[id.Waitlist]()
				rows[i] = tx.WaitlistEntry.Create().SetID(entryIDs[i]).SetSaleID(in.Sale).SetItemID(in.Item).SetUserID(in.User).
					SetQuantity(in.Quantity).SetNillableContactKey(columnOf(in.Persons.Contact)).
					SetNillableAddressKey(columnOf(in.Persons.Address)).SetStatus(status).SetCard(card).
					SetNillableNonce(columnOf(in.Nonce)).
					SetNillableAccessKeys(columnOf(person.Key(in.Persons.Access()))).
					SetCreatedAt(now).SetUpdatedAt(now)
			}
			return tx.WaitlistEntry.CreateBulk(rows...).Exec(ctx)
		})
		if err == nil {
			if inputs[0].Nonce == "" {
				s.keepUnits(ctx, inputs[0].Sale, item)
			}
			return s.entered(ctx, item, entryIDs, ends)
		}
		if fault.ReasonOf(err) == fault.EntriesClosed {
			for _, in := range inputs {
				ends[in.User] = joined{refusal: err}
			}
			return nil
		}
		if !postgres.IsUnique(err) {
			return fmt.Errorf("join waitlist of item %s: %w", item, err)
		}
		there, err := s.openOf(ctx, item, inputs)
		if err != nil {
			return err
		}
		for user, end := range there {
			ends[user] = end
		}
		if err := s.refusePersons(ctx, item, without(inputs, ends), ends); err != nil {
			return err
		}
		inputs = without(inputs, ends)
	}
	return fault.New(fault.Unavailable, "The waitlist is being changed. Please try again.")
}

// keepUnits records at the gate that buyers wait.
func (s *Service) keepUnits(ctx context.Context, saleID id.Sale, item id.Item) {
	if _, err := s.cfg.Gate.Status(ctx, saleID, item, reservation.BuyersWait); err != nil {
		s.cfg.Log.WarnContext(ctx, "keep units for the waitlist", slog.Any("error", err)) // the next step of the loop does it
	}
}

// entered publishes new entries.
func (s *Service) entered(ctx context.Context, item id.Item, entryIDs []id.Waitlist, ends map[id.User]joined) error {
	s.metrics.turned("joined", len(entryIDs))
	rows, err := s.cfg.DB.Ent.WaitlistEntry.Query().Where(waitlistentry.IDIn(entryIDs...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read new entries of item %s: %w", item, err)
	}
	entries := make([]*Entry, len(rows))
	for i, row := range rows {
		entries[i] = fromRow(row)
		ends[row.UserID] = joined{entry: entries[i]}
	}
	s.publish(ctx, entries...)
	return nil
}

// openOf returns the open entries of users.
func (s *Service) openOf(ctx context.Context, item id.Item, inputs []JoinInput) (map[id.User]joined, error) {
	rows, err := s.cfg.DB.Ent.WaitlistEntry.Query().
		Where(waitlistentry.ItemID(item), waitlistentry.UserIDIn(usersOf(inputs)...),
			waitlistentry.StatusIn(openStatuses...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read waitlist entries: %w", err)
	}
	ends := make(map[id.User]joined, len(inputs))
	for _, row := range rows {
		ends[row.UserID] = joined{entry: fromRow(row)}
	}
	return ends, nil
}

// refusePersons refuses users whose contact or address has a place of another account, also of
// an earlier user of the same batch.
func (s *Service) refusePersons(ctx context.Context, item id.Item, inputs []JoinInput, ends map[id.User]joined) error {
	taken := map[person.Key]bool{}
	var contacts, addresses []string
	for _, in := range inputs {
		if in.Persons.Contact != "" {
			contacts = append(contacts, string(in.Persons.Contact))
		}
		if in.Persons.Address != "" {
			addresses = append(addresses, string(in.Persons.Address))
		}
	}
	if len(contacts)+len(addresses) == 0 {
		return nil
	}
	rows, err := s.cfg.DB.Ent.WaitlistEntry.Query().Where(
		waitlistentry.ItemID(item), waitlistentry.StatusIn(openStatuses...),
		waitlistentry.Or(waitlistentry.ContactKeyIn(contacts...), waitlistentry.AddressKeyIn(addresses...)),
	).All(ctx)
	if err != nil {
		return fmt.Errorf("read waitlist entries of persons: %w", err)
	}
	for _, row := range rows {
		taken[keyOf(row.ContactKey)], taken[keyOf(row.AddressKey)] = true, true
	}
	for _, in := range inputs {
		for _, key := range []person.Key{in.Persons.Contact, in.Persons.Address} {
			if key != "" && taken[key] {
				ends[in.User] = joined{refusal: reservation.PersonLimitReached(string(key[:1]), atItem...)}
			}
		}
		if _, refused := ends[in.User]; !refused {
			taken[in.Persons.Contact], taken[in.Persons.Address] = true, true
		}
	}
	return nil
}

// refuseBuyers refuses users with a live order of an item.
func (s *Service) refuseBuyers(ctx context.Context, item id.Item, inputs []JoinInput, ends map[id.User]joined) error {
	rows, err := s.cfg.DB.Ent.Order.Query().
		Where(entorder.ItemID(item), entorder.UserIDIn(usersOf(inputs)...), entorder.StatusIn(liveStatuses()...)).
		Select(entorder.FieldID, entorder.FieldUserID).All(ctx)
	if err != nil {
		return fmt.Errorf("look for live orders: %w", err)
	}
	for _, row := range rows {
		ends[row.UserID] = joined{refusal: reservation.AlreadyOrdered{Task: id.Task(row.ID), At: atItem}}
	}
	return nil
}

func statusUsers(inputs []JoinInput) []reservation.StatusUser {
	return collect.Map(inputs, func(in JoinInput) reservation.StatusUser {
		return reservation.StatusUser{User: in.User, Persons: in.Persons}
	})
}

func usersOf(inputs []JoinInput) []id.User {
	return collect.Map(inputs, func(in JoinInput) id.User { return in.User })
}

// without returns the inputs of users that have no result yet.
func without(inputs []JoinInput, ends map[id.User]joined) []JoinInput {
	var left []JoinInput
	for _, in := range inputs {
		if _, done := ends[in.User]; !done {
			left = append(left, in)
		}
	}
	return left
}

// byKey groups requests by key: for each key the indexes, in order.
func byKey[Q any, K comparable](asked []Q, key func(Q) K) map[K][]int {
	groups := map[K][]int{}
	for i, q := range asked {
		groups[key(q)] = append(groups[key(q)], i)
	}
	return groups
}
