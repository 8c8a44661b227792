package doctor

import (
	"context"
	"fmt"

	"seckill/internal/outbox/mail"
)

const areaMail = "mail"

// mail signs in at the mail server. Without one there is nothing to report: passwords are
// then reset by operators.
func (r *report) mail(ctx context.Context, d Deps) {
	server := d.Config.SMTP()
	if server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout())
	defer cancel()
	client, err := mail.Dial(ctx, *server, d.MailTLS)
	if err != nil {
		r.add(areaMail, Error, fmt.Sprintf("SECKILL_SMTP_URL: %v", err))
		return
	}
	found := fmt.Sprintf("the mail server %s:%s accepts this shop", server.Host, server.Port)
	if !client.International() {
		found += "; it has no SMTPUTF8, so that addresses such as 用户@example.com get no e-mail"
	}
	_ = client.Close()
	if server.Plain {
		r.add(areaMail, Warning, found+", without encryption: keep it on this host or a private network, or set SECKILL_SMTP_TLS=required")
		return
	}
	r.add(areaMail, OK, found)
}
