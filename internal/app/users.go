package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"seckill/internal/account"
	"seckill/internal/auth"
	"seckill/internal/clock"
	"seckill/internal/config"
	"seckill/internal/fault"
	"seckill/internal/mail"
	"seckill/internal/servicetoken"
)

// Users holds the services with which the command line changes users.
type Users struct {
	Admin    *account.Admin
	Security *account.SecurityLog
	Tokens   *servicetoken.Service
}

// ChangeUsers calls fn with the services that change users of an installation. Running
// processes apply the changes within a second.
func ChangeUsers(ctx context.Context, cfg *config.Config, log *slog.Logger, fn func(Users) error) (err error) {
	svc, err := openServices(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	c := clock.System{}
	store := account.NewStore(svc.db, c, names(cfg))
	security := account.NewSecurityLog(svc.db, c, log)
	revocations := auth.NewRevocations(auth.RevocationsConfig{
		Client: svc.redis.Cmd, Prefix: cfg.RedisPrefix, Keep: cfg.AccessTokenTTL + leeway, Clock: c, Log: log,
	})
	admin := account.NewAdmin(account.AdminConfig{
		Store: store, Security: security, Log: log, Mail: notices(cfg, log),
		Directory:   account.NewDirectory(account.DirectoryConfig{Store: store, Client: svc.redis.Script, Prefix: cfg.RedisPrefix, Clock: c, Log: log}),
		Revocations: revocations,
	})
	return fn(Users{Admin: admin, Security: security, Tokens: servicetoken.New(servicetoken.Config{
		DB: svc.db, Revocations: revocations, Security: security, Clock: c, Log: log,
	})})
}

// ImportUsers creates customers from a file. It needs neither Redis nor a signing key.
func ImportUsers(ctx context.Context, cfg *config.Config, in account.Import) (_ account.Imported, err error) {
	svc, err := openDatabase(ctx, cfg)
	if err != nil {
		return account.Imported{}, err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	done, err := account.NewStore(svc.db, clock.System{}, names(cfg)).Import(ctx, in)
	if done.Created > 0 && !in.DryRun {
		account.NewSecurityLog(svc.db, clock.System{}, slog.New(slog.DiscardHandler)).Write(ctx,
			account.Event{Kind: account.EventImported, Detail: fmt.Sprintf("%d customers", done.Created)})
	}
	return done, err
}

// notices returns what writes e-mails about changed accounts; nil without a mail server or
// the signing key, which seals them.
func notices(cfg *config.Config, log *slog.Logger) *mail.Outbox {
	if cfg.SMTP() == nil {
		return nil
	}
	keys, err := signingKeys(cfg)
	if err != nil {
		log.Warn("users get no notice by e-mail", slog.Any("error", err))
		return nil
	}
	return mail.NewOutbox(keys, clock.System{})
}

// names returns the names of accounts.
func names(cfg *config.Config) account.Names { return account.Names{Country: cfg.PhoneCountry} }

// NewUser describes an account that the command line creates.
type NewUser struct {
	Account     string
	Role        string // CUSTOMER, OPERATOR or ADMIN
	DisplayName string
	Password    string
}

// CreateUser creates an account and returns its public id.
func CreateUser(ctx context.Context, cfg *config.Config, u NewUser) (_ string, err error) {
	svc, err := openDatabase(ctx, cfg)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	created, err := account.NewStore(svc.db, clock.System{}, names(cfg)).Create(ctx, account.NewUser{
		Account: u.Account, DisplayName: u.DisplayName, Password: u.Password,
	}, auth.Role(u.Role))
	if err != nil {
		return "", notMade(u, err)
	}
	return created.ID.Public(), nil
}

// notMade explains on the command line why an account was not created.
func notMade(u NewUser, err error) error {
	if fault.ReasonOf(err) == fault.AccountTaken {
		return fmt.Errorf("%s has an account already: sign in with it, or give another name", u.Account)
	}
	bad, ok := errors.AsType[fault.BadField](err)
	if !ok || len(bad.At) == 0 {
		return err
	}
	flag := map[string]string{"account": "--account", "displayName": "--name", "password": "--password"}[bad.At[len(bad.At)-1]]
	return fmt.Errorf("%s: %s", flag, inWords(bad.Rule))
}

// inWords describes the requirement behind a rule.
func inWords(rule fault.Rule) string {
	switch rule {
	case fault.EmailOrPhoneWithCountry:
		return "give an e-mail address, or a phone number with its country code"
	case fault.NotTheAccount:
		return "give another one than the account itself"
	case fault.NoControlCharacters:
		return "leave control characters out"
	}
	switch rule.Code {
	case fault.MinLengthCode:
		return fmt.Sprintf("give at least %s characters", rule.Bound)
	case fault.MaxLengthCode:
		return fmt.Sprintf("give at most %s characters", rule.Bound)
	}
	return "does not keep the rule " + rule.String()
}
